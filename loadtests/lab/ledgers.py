"""Ledgers to be written to: a fresh copy for every run, and flights that are not in it yet.

A run that adds flights changes what the next one would measure. So each gets a copy of its own of
a chain that was imported once, and a service of its own on that, which has mined nothing before.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.chains import Chain, Source, copied, generated, imported
from loadtests.lab.experiment import Run
from loadtests.processes import Service, running
from loadtests.questions import Flight, Questions, drawn, flights_of_block, sample

FLIGHTS_PER_BLOCK = 1000
QUESTIONS_OF_EACH_KIND = 2000
SAMPLED_BLOCKS = 20
OTHER_SEED = 7919  # of the flights to be added, so that they are others than those of the chains


@dataclass(frozen=True, slots=True)
class Material:
    """What runs are made of. chains: by the number of full blocks, None for an empty ledger.

    new: flights that are in none of them.
    """

    chains: Mapping[int, Chain | None]
    questions: Questions
    new: Sequence[Flight]


def prepared(run: Run, blocks: Sequence[int], new_flights: int) -> Material:
    """Import the chains; draw questions about the shortest of them and read flights to be added.

    At least one of `blocks` is not 0. Raises ProgramFailed.
    """
    chains: dict[int, Chain | None] = {}
    for length in blocks:
        run.say(f"a ledger of {length} blocks")
        source = generated(length * FLIGHTS_PER_BLOCK)
        home = run.scratch / f"blocks-{length}"
        chains[length] = imported(source, home, run.log) if length else None
    run.say("questions, and flights to be added")
    shortest = min((chain for chain in chains.values() if chain), key=lambda chain: chain.flights)
    with running(shortest.folder, run.log) as service:
        flights = sample(service, SAMPLED_BLOCKS)
    questions = drawn(flights, QUESTIONS_OF_EACH_KIND, run.options.seed)
    return Material(chains, questions, _others(run, new_flights))


def _others(run: Run, count: int) -> list[Flight]:
    source = Source("others", ("--generate", str(count), "--seed", str(OTHER_SEED)))
    chain = imported(source, run.scratch / "others", run.log)
    with running(chain.folder, run.log) as service:
        height: int = service.get("/tip")["height"]
        return [flight for at in range(1, height + 1) for flight in flights_of_block(service, at)]


@contextmanager
def fresh_folder(run: Run, chain: Chain | None, name: str) -> Iterator[Path]:
    """A copy of a chain for one run, gone afterwards."""
    with copied(chain, run.scratch / "fresh" / name) as folder:
        yield folder


@contextmanager
def fresh_service(
    run: Run, chain: Chain | None, name: str, settings: Mapping[str, object] | None = None
) -> Iterator[Service]:
    """A service on such a copy, ready to be asked and to mine."""
    with (
        fresh_folder(run, chain, name) as folder,
        running(folder, run.log, asking="/health/ready", settings=settings) as service,
    ):
        yield service
