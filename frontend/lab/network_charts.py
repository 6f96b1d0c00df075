"""Charts of a closed network: throughput, response time and utilisation against the customers."""

from collections.abc import Callable, Sequence

from frontend.filters import counted
from frontend.lab.closed_network_form import Answer
from frontend.lab.curves import STUDY_CURVE, Chart, Curve, chart
from frontend.lab.quantities import rate, significant, time, time_unit
from loadtests.models.mva import Solution

OURS, STUDY, BALANCED, ASYMPTOTIC = 1, STUDY_CURVE, 3, 5  # numbers of curves
MOST_STATIONS = 6  # the curves of so many can be distinguished
MOST_IN_WORDS = 60  # up to so many customers, the charts say each number in words
ROOM = 1.05  # the chart's top is this times the highest point


def throughput(answer: Answer) -> Chart:
    """Return a chart of X(N), of its bounds, and of the study's X(N)."""
    bounds = ("throughput_low_per_s", "throughput_high_per_s", "asymptotic_throughput_per_s")
    curves = _bounded(answer, ("Throughput", "X"), "throughput_per_s", bounds, 1.0)
    return _chart(answer, curves, "requests a second", lambda s: rate(s.throughput_per_s))


def response(answer: Answer) -> Chart:
    """Return a chart of R(N), of its bounds, and of the study's R(N)."""
    factor, unit = time_unit(answer.curve.last.response_time_s)
    bounds = ("response_low_s", "response_high_s", "asymptotic_response_time_s")
    curves = _bounded(answer, ("Response time", "R"), "response_time_s", bounds, factor)
    return _chart(answer, curves, f"response time, {unit}", lambda s: time(s.response_time_s))


def utilisation(answer: Answer) -> Chart:
    """Return a chart of U(N) of the busiest stations; delays have no U."""
    last = map(answer.curve.last.at, answer.curve.queues)
    busiest = sorted(last, key=lambda station: -station.utilisation)[:MOST_STATIONS]
    names = [station.name for station in busiest]
    curves = [
        _curve(answer, f"utilisation {name}", name, number, is_marked=True)
        for number, name in enumerate(names, start=1)
    ]

    def in_words(solution: Solution) -> str:
        return ", ".join(f"{n} {significant(solution.at(n).utilisation, 3)}" for n in names)

    return _chart(answer, curves, "share of the time", in_words, 1.0)


def _chart(
    answer: Answer,
    curves: Sequence[Curve],
    unit: str,
    in_words: Callable[[Solution], str],
    top: float | None = None,
) -> Chart:
    """Return a chart as high as its exact curves if `top` is not given; bounds are cut off."""
    if top is None:
        exact = (curve for curve in curves if curve.number in {OURS, STUDY})
        top = ROOM * max(y for curve in exact for _, y in curve.points)
    solutions = answer.curve.solutions if len(answer.curve.solutions) <= MOST_IN_WORDS else ()
    texts = [f"{counted(s.customers, 'customer')}: {in_words(s)}" for s in solutions]
    return chart(curves, answer.network.customers, top, unit, is_counted=True, texts=texts)


def _bounded(
    answer: Answer, name: tuple[str, str], column: str, bounds: Sequence[str], factor: float
) -> list[Curve]:
    """Return our curve and its bounds; the study's, too, unless one would be flat beside it.

    name: of what is drawn, and its symbol. column, bounds: of the rows of `mva.Curve`.
    """
    low, high, asymptotic = bounds
    curves = [_curve(answer, column, " ".join(name), OURS, factor, is_marked=True)]
    if before := answer.before:
        ratio = getattr(answer.curve.last, column) / getattr(before.curve.last, column)
        if 1 / 20 <= ratio <= 20:
            study = f"{name[0]} of the study's Pi"
            curves.append(_curve(before, column, study, STUDY, factor, is_marked=True))
    if answer.curve.balanced:
        curves.append(_curve(answer, f"balanced_{low}", "Balanced-job bounds", BALANCED, factor))
        curves.append(_curve(answer, f"balanced_{high}", "", BALANCED, factor))
    return [*curves, _curve(answer, asymptotic, "Asymptotic bound", ASYMPTOTIC, factor)]


def _curve(
    answer: Answer,
    column: str,
    name: str,
    number: int,
    factor: float = 1.0,
    *,
    is_marked: bool = False,
) -> Curve:
    points = [(float(row["customers"]), row[column] / factor) for row in answer.curve.rows()]
    return Curve(name, number, points, is_marked=is_marked)
