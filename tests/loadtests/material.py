"""A short chain, flights that are not in it, and questions about those."""

from pathlib import Path

from backend.chain.flight import as_mapping
from loadtests.chains import generated, imported
from loadtests.questions import drawn
from tests.flights import flights

FLIGHTS = 1500
NEW = [dict(as_mapping(flight)) for flight in flights(600, start=10**9)]
QUESTIONS = drawn(NEW, 40, seed=1)


def imported_chain(home: Path) -> Path:
    """A chain of two blocks below `home`."""
    return imported(generated(FLIGHTS), home, home / "import.log").folder
