"""What the workloads of customers share inside Locust: a user is a customer, who takes turns."""

from argparse import Namespace
from collections.abc import Iterator
from math import inf
from random import Random
from time import monotonic

from locust import User, task
from locust.exception import StopUser

from loadtests.generation.asking import Asker, Place, wait_until
from loadtests.generation.node import Node, Part


class Customer(User):
    """A customer. `node`: that of this process; its part of the work says what there is to do."""

    abstract = True
    node: Node

    @task
    def work(self) -> None:
        """Take turns until this customer has had all of its own, or its time is over."""
        mine = self.node.part
        if mine is None:
            raise StopUser
        chosen, customer = self.environment.parsed_options, mine.take_number()
        asker = Place(mine.host).asker(keep_alive=bool(chosen.keep_alive), timeout_s=chosen.timeout)
        random = Random(f"{chosen.seed}/{customer}")  # noqa: S311  a load, no secrets
        most = self.turns_of_each(chosen)
        until_s = inf if most else mine.start_s + chosen.duration
        for done, due_s in enumerate(self.turns(mine, customer, asker, random)):
            if most and done == most:
                break
            wait_until(due_s)
            if self.node.is_stopping or monotonic() >= until_s:
                break
        asker.close()
        self.node.finish_one(mine)
        raise StopUser

    def turns_of_each(self, chosen: Namespace) -> int:
        """The number of turns of each customer; 0: until --duration has passed."""
        raise NotImplementedError

    def turns(self, mine: Part, customer: int, asker: Asker, random: Random) -> Iterator[float]:
        """Yield when the next turn is due, take it when resumed, and go on so without end."""
        raise NotImplementedError
