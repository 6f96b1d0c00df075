"""Prepares ledgers for runs that write, each of which has a fresh copy.

A run that adds flights would change what the next run measures. So each such run has its own copy
of a chain that was imported once, and on that copy its own service, which has not mined before.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from loadtests.chains import Chain, Source, copy_served, generated, imported
from loadtests.lab.experiment import Run
from loadtests.processes import Service, running
from loadtests.questions import FEW_BLOCKS, Flight, Questions, all_blocks, drawn, sample

FLIGHTS_PER_BLOCK = 1000
QUESTIONS_OF_EACH_KIND = 2000
OTHER_SEED = 7919  # makes the flights to be added differ from those of the chains


@dataclass(frozen=True, slots=True)
class Material:
    """Holds chains and flights for runs."""

    chains: Mapping[int, Chain | None]  # by number of full blocks; None for an empty ledger
    questions: Questions  # about flights of the shortest chain
    new: Sequence[Flight]  # that no chain has


def prepared(run: Run, blocks: Sequence[int], new_flights: int) -> Material:
    """Import chains of these lengths; draw questions about the shortest; make flights to be added.

    At least one of `blocks` must not be 0. Raises ProgramFailed.
    """
    chains: dict[int, Chain | None] = {}
    for length in blocks:
        run.say(f"preparing a ledger of {length} blocks")
        source = generated(length * FLIGHTS_PER_BLOCK)
        home = run.scratch / f"blocks-{length}"
        chains[length] = imported(source, home, run.log) if length else None
    run.say("drawing questions, and generating flights to be added")
    shortest = min((chain for chain in chains.values() if chain), key=lambda chain: chain.flights)
    with running(shortest.folder, run.log) as service:
        flights = sample(service, FEW_BLOCKS)
    questions = drawn(flights, QUESTIONS_OF_EACH_KIND, run.options.seed)
    return Material(chains, questions, _others(run, new_flights))


def _others(run: Run, count: int) -> list[Flight]:
    source = Source("others", ("--generate", str(count), "--seed", str(OTHER_SEED)))
    chain = imported(source, run.scratch / "others", run.log)
    with running(chain.folder, run.log) as service:
        return [flight for block in all_blocks(service) for flight in block]


def fresh_service(
    run: Run, chain: Chain | None, name: str, settings: Mapping[str, object] | None = None
) -> AbstractContextManager[Service]:
    """Run a service on a fresh copy of a chain, ready to answer and to mine."""
    return copy_served(chain, run.scratch / "fresh" / name, run.log, settings)
