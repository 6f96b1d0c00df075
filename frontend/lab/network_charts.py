"""Charts of a closed network: throughput, response time and utilisation against the customers."""

from collections.abc import Callable, Sequence

from frontend.lab.closed_network_form import Answer
from frontend.lab.curves import STUDY_CURVE, Chart, Curve, chart
from frontend.lab.quantities import rate, significant, time, time_unit
from loadtests.models.bounds import Bounds
from loadtests.models.mva import Solution

OURS, STUDY, BALANCED, ASYMPTOTIC = 1, STUDY_CURVE, 3, 5  # numbers of curves
MOST_STATIONS = 6  # the curves of so many can be told apart
MOST_TOLD = 60  # up to so many customers, the charts tell each number in words
ROOM = 1.05  # the chart's top is this times the highest point


def throughput(found: Answer) -> Chart:
    """A chart of X(N), of its upper bounds, and of the study's X(N)."""
    curves = [
        _means("Throughput X", OURS, found, lambda each: each.throughput_per_s),
        *_studied("Throughput of the study's Pi", found, lambda each: each.throughput_per_s),
        *_balanced(
            found, lambda each: each.throughput_low_per_s, lambda each: each.throughput_high_per_s
        ),
        _bound(found, lambda each: each.throughput_high_per_s),
    ]
    texts = [f"{_customers(one)}: {rate(one.throughput_per_s)}" for one in _told(found)]
    return _chart(found, curves, "requests a second", texts)


def response(found: Answer) -> Chart:
    """A chart of R(N), of its lower bounds, and of the study's R(N)."""
    factor, unit = time_unit(found.last.response_time_s)
    curves = [
        _means("Response time R", OURS, found, lambda each: each.response_time_s / factor),
        *_studied(
            "Response time of the study's Pi", found, lambda each: each.response_time_s / factor
        ),
        *_balanced(
            found,
            lambda each: each.response_low_s / factor,
            lambda each: each.response_high_s / factor,
        ),
        _bound(found, lambda each: each.response_low_s / factor),
    ]
    texts = [f"{_customers(one)}: {time(one.response_time_s)}" for one in _told(found)]
    return _chart(found, curves, f"response time, {unit}", texts)


def utilisation(found: Answer) -> Chart:
    """A chart of U(N) of the busiest stations; delays have no U."""
    queues = {each.name for each in found.network.stations if not each.is_delay}
    busiest = sorted(
        (each for each in found.last.stations if each.name in queues),
        key=lambda each: -each.utilisation,
    )[:MOST_STATIONS]
    curves = [
        _means(each.name, number, found, _utilisation_of(each.name))
        for number, each in enumerate(busiest, start=1)
    ]
    names = [each.name for each in busiest]
    texts = [
        f"{_customers(one)}: "
        + ", ".join(f"{name} {significant(one.at(name).utilisation, 3)}" for name in names)
        for one in _told(found)
    ]
    return chart(
        curves, found.network.customers, 1.0, "share of the time", is_counted=True, texts=texts
    )


def _utilisation_of(name: str) -> Callable[[Solution], float]:
    return lambda one: one.at(name).utilisation


def _chart(found: Answer, curves: Sequence[Curve], unit: str, texts: Sequence[str]) -> Chart:
    """A chart as high as its exact curves; bounds beyond are cut off."""
    exact = [y for curve in curves if curve.number in {OURS, STUDY} for _, y in curve.points]
    top = ROOM * max(exact)
    return chart(curves, found.network.customers, top, unit, is_counted=True, texts=texts)


def _means(name: str, number: int, found: Answer, value: Callable[[Solution], float]) -> Curve:
    points = [(float(one.customers), value(one)) for one in found.solutions]
    return Curve(name, number, points, is_marked=True)


def _studied(name: str, found: Answer, value: Callable[[Solution], float]) -> list[Curve]:
    """The study's curve, unless one of the two curves would be flat beside the other."""
    if found.before is None:
        return []
    ratio = value(found.last) / value(found.before.last)
    is_seen = 1 / 20 <= ratio <= 20
    return [_means(name, STUDY, found.before, value)] if is_seen else []


def _balanced(
    found: Answer, low: Callable[[Bounds], float], high: Callable[[Bounds], float]
) -> list[Curve]:
    return [
        Curve(name, BALANCED, [(float(one.customers), value(one)) for one in found.balanced])
        for name, value in (("Balanced-job bounds", low), ("", high))
        if found.balanced
    ]


def _bound(found: Answer, value: Callable[[Bounds], float]) -> Curve:
    points = [(float(one.customers), value(one)) for one in found.asymptotic]
    return Curve("Asymptotic bound", ASYMPTOTIC, points)


def _told(found: Answer) -> Sequence[Solution]:
    return found.solutions if len(found.solutions) <= MOST_TOLD else ()


def _customers(one: Solution) -> str:
    return f"{one.customers} customer{'' if one.customers == 1 else 's'}"
