"""Charts of a closed network: throughput, response time and utilisation against the customers."""

from collections.abc import Callable, Sequence

from frontend.filters import counted
from frontend.lab.closed_network_form import Answer
from frontend.lab.curves import STUDY_CURVE, Chart, Curve, chart
from frontend.lab.quantities import rate, significant, time, time_unit
from loadtests.models.bounds import Bounds
from loadtests.models.mva import Solution

OURS, STUDY, BALANCED, ASYMPTOTIC = 1, STUDY_CURVE, 3, 5  # numbers of curves
MOST_STATIONS = 6  # the curves of so many can be distinguished
MOST_IN_WORDS = 60  # up to so many customers, the charts say each number in words
ROOM = 1.05  # the chart's top is this times the highest point


def throughput(answer: Answer) -> Chart:
    """Return a chart of X(N), of its upper bounds, and of the study's X(N)."""
    curves = [
        *_means("Throughput", "X", answer, lambda solution: solution.throughput_per_s),
        *_balanced(
            answer,
            lambda bound: bound.throughput_low_per_s,
            lambda bound: bound.throughput_high_per_s,
        ),
        _bound(answer, lambda bound: bound.throughput_high_per_s),
    ]
    return _chart(answer, curves, "requests a second", lambda s: rate(s.throughput_per_s))


def response(answer: Answer) -> Chart:
    """Return a chart of R(N), of its lower bounds, and of the study's R(N)."""
    factor, unit = time_unit(answer.curve.last.response_time_s)
    curves = [
        *_means("Response time", "R", answer, lambda solution: solution.response_time_s / factor),
        *_balanced(
            answer,
            lambda bound: bound.response_low_s / factor,
            lambda bound: bound.response_high_s / factor,
        ),
        _bound(answer, lambda bound: bound.response_low_s / factor),
    ]
    return _chart(answer, curves, f"response time, {unit}", lambda s: time(s.response_time_s))


def utilisation(answer: Answer) -> Chart:
    """Return a chart of U(N) of the busiest stations; delays have no U."""
    queues = {station.name for station in answer.network.stations if not station.is_delay}
    last = [station for station in answer.curve.last.stations if station.name in queues]
    busiest = sorted(last, key=lambda station: -station.utilisation)[:MOST_STATIONS]
    names = [station.name for station in busiest]

    def of_station(name: str) -> Callable[[Solution], float]:
        return lambda solution: solution.at(name).utilisation

    curves = [
        _curve(name, number, answer, of_station(name)) for number, name in enumerate(names, start=1)
    ]

    def in_words(solution: Solution) -> str:
        return ", ".join(f"{name} {significant(of_station(name)(solution), 3)}" for name in names)

    return _chart(answer, curves, "share of the time", in_words, 1.0)


def _chart(
    answer: Answer,
    curves: Sequence[Curve],
    unit: str,
    in_words: Callable[[Solution], str],
    top: float | None = None,
) -> Chart:
    """A chart that is as high as its exact curves if `top` is not given; bounds are cut off."""
    if top is None:
        exact = (curve for curve in curves if curve.number in {OURS, STUDY})
        top = ROOM * max(y for curve in exact for _, y in curve.points)
    solutions = answer.curve.solutions if len(answer.curve.solutions) <= MOST_IN_WORDS else ()
    texts = [f"{counted(s.customers, 'customer')}: {in_words(s)}" for s in solutions]
    return chart(curves, answer.network.customers, top, unit, is_counted=True, texts=texts)


def _means(
    name: str, symbol: str, answer: Answer, value: Callable[[Solution], float]
) -> list[Curve]:
    """Our curve, and the study's, unless one of the two would be flat beside the other."""
    curves = [_curve(f"{name} {symbol}", OURS, answer, value)]
    if answer.before and 1 / 20 <= value(answer.curve.last) / value(answer.before.curve.last) <= 20:
        curves.append(_curve(f"{name} of the study's Pi", STUDY, answer.before, value))
    return curves


def _curve(name: str, number: int, answer: Answer, value: Callable[[Solution], float]) -> Curve:
    points = [(float(solution.customers), value(solution)) for solution in answer.curve.solutions]
    return Curve(name, number, points, is_marked=True)


def _balanced(
    answer: Answer, low: Callable[[Bounds], float], high: Callable[[Bounds], float]
) -> list[Curve]:
    balanced = answer.curve.balanced
    return [
        Curve(name, BALANCED, [(float(bound.customers), value(bound)) for bound in balanced])
        for name, value in (("Balanced-job bounds", low), ("", high))
        if balanced
    ]


def _bound(answer: Answer, value: Callable[[Bounds], float]) -> Curve:
    points = [(float(bound.customers), value(bound)) for bound in answer.curve.asymptotic]
    return Curve("Asymptotic bound", ASYMPTOTIC, points)
