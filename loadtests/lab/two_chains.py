"""Stores the same flights twice: in a chain of the service, and as the study stored its blocks."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from loadtests.chains import Chain, generated, imported, write_studys_way
from loadtests.lab.experiment import Run
from loadtests.processes import Service, running
from loadtests.questions import Question, drawn, sample
from loadtests.servers.service import as_in_the_study

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

    def scanned(
        self, log: Path, run_blocks: int, *, emulated_disk: int = 0
    ) -> AbstractContextManager[Service]:
        """Run the service on our chain as the study's ran, until the `with` block ends.

        run_blocks, emulated_disk: as in `as_in_the_study`.
        """
        settings = as_in_the_study(
            self.ours.block_bytes, self.blocks, emulated_disk=emulated_disk, run_blocks=run_blocks
        )
        return running(self.ours.folder, log, ONLY_HTTP, settings=settings)


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
