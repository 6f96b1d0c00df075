"""The parameters of study 003, its tables 1 and 2, beside ours."""

from collections.abc import Iterator, Mapping

from loadtests.experiments.mixed_clients.plan import HTTP, LOCAL, Plan
from loadtests.lab.published import BOOKS, WORKLOAD
from loadtests.lab.report.content import Cell, Table
from loadtests.scenarios import BATCH_FLIGHTS, FREQUENT, RARE, SHARES, STEPS

NONE = "–"


def parameter_tables(plan: Plan) -> Iterator[Table]:
    """Tables 1 and 2 of the study, with what `plan` has instead."""
    columns = ("Parameter", "Meaning", "The study", "Ours", "")
    for title, rows, ours in (
        ("Table 1 of the study: the workload", WORKLOAD, _workload(plan)),
        ("Table 2 of the study: the books", BOOKS, _FLIGHTS),
    ):
        yield Table(title, columns, [(*row, *ours[row.name]) for row in rows])


def _workload(plan: Plan) -> Mapping[str, tuple[Cell, str]]:
    """Name of a parameter -> our value, and what it is."""
    counts = (plan.counts[LOCAL], plan.counts[HTTP])
    warm_up = " and ".join(dict.fromkeys(f"{one.warm_up}" for one in counts))
    measured = " and ".join(dict.fromkeys(f"{one.measured}" for one in counts))
    each = "interactions of each client (in process and over HTTP, if two)"
    return {
        "numBooksToBuy": (STEPS["reading"], "questions, one after the other"),
        "numBookCopiesToBuy": (NONE, "nothing is bought"),
        "numEditorPicksToGet": (NONE, "what is asked about is drawn beforehand"),
        "numAddCopies": (1, "flight is added"),
        "numBooksToAdd": (BATCH_FLIGHTS, "flights in a batch"),
        "numBooksWithLeastCopies": (1, "block is looked up, the newest"),
        "warmUpRuns": (warm_up, each),
        "numActualRuns": (measured, each),
        "percentRareStockManagerInteraction": (f"{SHARES[RARE]:g}%", "of interactions"),
        "percentFrequentStockManagerInteraction": (f"{SHARES[FREQUENT]:g}%", "of interactions"),
    }


_FLIGHTS: Mapping[str, tuple[Cell, str]] = {
    "numCopies": (NONE, "a flight is there once"),
    "bookTitleLength": (19, "values make a flight, four of them names of cities and states"),
    "authorNameLength": (NONE, "as above"),
    "editorPickProbability": (NONE, "all flights are alike"),
}
