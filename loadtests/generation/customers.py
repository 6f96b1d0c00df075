"""What the workloads of customers share inside Locust: a user is a customer, who has work to do."""

from locust import User, task
from locust.exception import StopUser

from loadtests.generation.node import Node, Part


class Customer(User):
    """A customer. `node`: that of this process; its part of the work says what there is to do."""

    abstract = True
    node: Node

    @task
    def work(self) -> None:
        """Do everything until this customer is done, or its time is over."""
        mine = self.node.part
        if mine is None:
            raise StopUser
        self.do_all(mine, mine.take_number())
        self.node.finish_one(mine)
        raise StopUser

    def do_all(self, mine: Part, customer: int) -> None:
        """Do the work of the customer of this number."""
        raise NotImplementedError
