"""The calculator's open queue: from arrivals, service times and servers to times and customers.

One server is M/G/1, in order of arrival and with a shared processor. Several are M/M/m, whose
formula is exact for exponential service only. Formulas and their sources: `loadtests.models`.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from frontend.lab import study
from frontend.lab.curves import STUDY_CURVE, Chart, Curve, chart
from frontend.lab.inputs import Inputs
from frontend.lab.quantities import time_unit
from loadtests.models.open_queue import SteadyState, Unstable, mgm, shared

MOST_SERVERS = 64
LEAST_S, MOST_S = 1e-9, 1e6
MOST_RATE = 1e9
MOST_CV = 100.0
PER_HOUR = 3600.0

FIELDS = ("arrivals", "arrivals_in", "service_time_s", "cv", "servers", "against")
ARRIVALS_IN = ("share", "per_s", "per_hour")
AGAINST = ("", "study")

STEPS = 160  # of a curve, from no load to MOST_LOAD
MOST_LOAD = 0.995
USUAL_LOAD = 0.9  # the chart's top is where the curves are at this load, or at the load asked for
ROOM = 1.15  # the chart's top is this times that point
LEAST_SHARE = 0.04  # a study's curve with less of the plot's width is a line upwards, and left out


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue. arrival_rate_per_s: λ, above 0. service_time_s: E[S]. cv: of S. servers: m."""

    arrival_rate_per_s: float
    service_time_s: float
    cv: float
    servers: int

    @property
    def capacity_per_s(self) -> float:
        """L = m/E[S], the rate that the queue cannot exceed."""
        return self.servers / self.service_time_s

    @property
    def utilisation(self) -> float:
        """ρ = λ/L; 1 or more where there is no steady state."""
        return self.arrival_rate_per_s / self.capacity_per_s

    def at(self, arrival_rate_per_s: float) -> "Queue":
        return replace(self, arrival_rate_per_s=arrival_rate_per_s)


@dataclass(frozen=True, slots=True)
class Model:
    """A model of a queue. key: in data. label: for people. curve: its number in charts."""

    key: str
    label: str
    curve: int
    solve: Callable[[Queue], SteadyState]


FCFS = Model(
    "fcfs",
    "M/G/1, in order of arrival",
    1,
    lambda queue: mgm(queue.arrival_rate_per_s, queue.service_time_s, queue.cv),
)
PS = Model(
    "ps",
    "M/G/1, shared processor",
    3,
    lambda queue: shared(queue.arrival_rate_per_s, queue.service_time_s),
)
MMM = Model(
    "mmm",
    "M/M/m, in order of arrival",
    1,
    lambda queue: mgm(queue.arrival_rate_per_s, queue.service_time_s, servers=queue.servers),
)


def models_of(queue: Queue) -> tuple[Model, ...]:
    """Return the models that are exact for a queue with so many servers."""
    return (FCFS, PS) if queue.servers == 1 else (MMM,)


@dataclass(frozen=True, slots=True)
class Answer:
    """The models' results for a queue, `states`; none if `unstable` says why.

    before: the answer for the study's queue, to compare with.
    """

    queue: Queue
    states: tuple[tuple[Model, SteadyState], ...]
    unstable: Unstable | None
    before: "Answer | None" = None

    @property
    def backlog_per_s(self) -> float:
        """By how many requests the queue grows each second where there is no steady state."""
        return self.queue.arrival_rate_per_s - self.queue.capacity_per_s

    def as_json(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            **asdict(self.queue),
            "capacity_per_s": self.queue.capacity_per_s,
            "utilisation": self.queue.utilisation,
            "is_stable": self.unstable is None,
            "detail": str(self.unstable) if self.unstable else None,
            "models": {model.key: _state(state) for model, state in self.states},
        }
        return content | ({"study": self.before.as_json()} if self.before else {})


def _state(state: SteadyState) -> dict[str, float]:
    names = ["waiting_time_s", "response_time_s", "customers", "customers_waiting"]
    if state.servers > 1:
        names.append("p_wait")
    return {name: getattr(state, name) for name in names}


def read(given: Mapping[str, str]) -> Queue:
    """Return the queue that a form describes. Raises Refused."""
    inputs = Inputs(given, FIELDS)
    service_time_s = inputs.number("service_time_s", LEAST_S, MOST_S)
    servers = inputs.whole("servers", 1, MOST_SERVERS)
    cv = inputs.number("cv", 0, MOST_CV)
    unit = inputs.choice("arrivals_in", ARRIVALS_IN, "share")
    inputs.choice("against", AGAINST, "")
    arrivals = inputs.number("arrivals", 0, MOST_RATE)
    if arrivals == 0:
        inputs.refuse("arrivals", "must be above 0")
    inputs.check()
    factors = {"share": servers / service_time_s, "per_s": 1.0, "per_hour": 1 / PER_HOUR}
    return Queue(arrivals * factors[unit], service_time_s, cv, servers)


def answer(queue: Queue) -> Answer:
    try:
        states = tuple((model, model.solve(queue)) for model in models_of(queue))
    except Unstable as unstable:
        return Answer(queue, (), unstable)
    return Answer(queue, states, None)


def answer_to(given: Mapping[str, str]) -> Answer:
    """Return the answer to a form, beside the study's if it asks for that. Raises Refused."""
    queue = read(given)
    before = studied(queue.arrival_rate_per_s) if given.get("against") == "study" else None
    return replace(answer(queue), before=answer(before) if before else None)


def studied(arrival_rate_per_s: float) -> Queue:
    return Queue(arrival_rate_per_s, study.SERVICE_TIME_S, study.CV, 1)


def curve_rows(queue: Queue) -> list[dict[str, float]]:
    """Return response times of each model from no load to MOST_LOAD, for the twin and the chart."""
    rows = []
    for step in range(STEPS + 1):
        at = queue.at(MOST_LOAD * step / STEPS * queue.capacity_per_s)
        times = {f"{m.key}_response_time_s": m.solve(at).response_time_s for m in models_of(queue)}
        rate = at.arrival_rate_per_s
        rows.append({"utilisation": at.utilisation, "arrival_rate_per_s": rate, **times})
    return rows


def response_chart(answer: Answer) -> Chart:
    """Return the response time against the arrival rate, with what was asked for marked."""
    queue, before = answer.queue, answer.before
    right = max(queue.capacity_per_s, min(queue.arrival_rate_per_s, 1.25 * queue.capacity_per_s))
    tops = _tops(answer)
    if before:
        wider = max(right, before.queue.capacity_per_s)
        right = wider if queue.capacity_per_s >= LEAST_SHARE * wider else right
        if not LEAST_SHARE * right <= before.queue.capacity_per_s <= right * (1 + 1e-9):
            before = None  # its curve would not be seen
    if before:
        tops += _tops(before)
    factor, unit = time_unit(ROOM * max(tops))
    curves = [_curve(answer, model, factor, model.label, model.curve) for model in models_of(queue)]
    if before:
        name = "The study's Pi, in order of arrival"
        curves.append(_curve(before, FCFS, factor, name, STUDY_CURVE))
    return chart(curves, right, ROOM * max(tops) / factor, f"response time, {unit}")


def _tops(answer: Answer) -> list[float]:
    """Return what should fit below the chart's top, in seconds."""
    usual = answer.queue.at(USUAL_LOAD * answer.queue.capacity_per_s)
    solved = [state.response_time_s for _, state in answer.states[:1]]
    return [models_of(usual)[0].solve(usual).response_time_s, *solved]


def _curve(answer: Answer, model: Model, factor: float, name: str, number: int) -> Curve:
    key = f"{model.key}_response_time_s"
    points = [(row["arrival_rate_per_s"], row[key] / factor) for row in curve_rows(answer.queue)]
    marked = [
        (state.arrival_rate_per_s, state.response_time_s / factor)
        for solved, state in answer.states
        if solved == model
    ]
    return Curve(name, number, points, marked=marked)
