"""Stores the same flights twice: in a chain of the service, and as the study stored its blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadtests.chains import Chain, generated, imported, write_studys_way
from loadtests.lab.experiment import Run
from loadtests.processes import running
from loadtests.questions import Question, drawn, sample

BLOCK_FLIGHTS = 1000
SAMPLED_BLOCKS = 20
ONLY_HTTP = ("serve", "--only-http")


@dataclass(frozen=True, slots=True)
class TwoChains:
    """Two chains of the same flights. blocks: number of blocks of BLOCK_FLIGHTS flights each.

    ours has an empty first block besides. questions: kind -> a question that has an answer.
    """

    blocks: int
    ours: Chain
    study: Path
    questions: Mapping[str, Question]

    @property
    def flights(self) -> int:
        """The number of flights in each chain."""
        return self.blocks * BLOCK_FLIGHTS


def two_chains(run: Run, blocks: int) -> TwoChains:
    """Make both chains, of generated flights, in the scratch folder. Raises ProgramFailed."""
    folder = run.scratch / "study"
    run.say(f"importing {blocks * BLOCK_FLIGHTS:,} generated flights")
    ours = imported(generated(blocks * BLOCK_FLIGHTS), run.scratch / "ours", run.log)
    with running(ours.folder, run.log, ONLY_HTTP, settings={"workers": 1}) as service:
        run.say("writing the same blocks in the study's way")
        write_studys_way(service, folder)
        asked = drawn(sample(service, SAMPLED_BLOCKS), 1, run.options.seed)
    return TwoChains(blocks, ours, folder, {kind: one for kind, (one,) in asked.items()})
