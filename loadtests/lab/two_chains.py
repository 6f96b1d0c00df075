"""The same flights twice: in a chain of the service, and as the study stored its blocks."""

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
    """blocks: of BLOCK_FLIGHTS flights each; ours has an empty first one besides.

    questions: one of each kind, kind -> question, that has flights for an answer.
    """

    blocks: int
    ours: Chain
    study: Path
    questions: Mapping[str, Question]

    @property
    def flights(self) -> int:
        """In each of the two."""
        return self.blocks * BLOCK_FLIGHTS


def two_chains(run: Run, blocks: int) -> TwoChains:
    """Both, of made-up flights, in the scratch folder of `run`. Raises ProgramFailed."""
    folder = run.scratch / "study"
    run.say(f"importing {blocks * BLOCK_FLIGHTS:,} generated flights")
    ours = imported(generated(blocks * BLOCK_FLIGHTS), run.scratch / "ours", run.log)
    with running(ours.folder, run.log, ONLY_HTTP, settings={"workers": 1}) as service:
        run.say("writing the same blocks the study's way")
        write_studys_way(service, folder)
        asked = drawn(sample(service, SAMPLED_BLOCKS), 1, run.options.seed)
    return TwoChains(blocks, ours, folder, {kind: one for kind, (one,) in asked.items()})
