"""Notes the costs of a scan: seconds by stage, and where its blocks came from.

The storage and the scan note what they do in a `Costs` that they are given, if any, and the API
reports it. Each belongs to one scan, and so to one thread.
"""

from dataclasses import dataclass, field
from time import perf_counter

FILE = "file"  # reading frames from block files
EMULATED = "emulated"  # waits of an emulated disk, what of them the real reading left over
DECOMPRESS = "decompress"  # bodies
HASH = "hash"  # the rest of checking: checksum, header, hashes, proof of work
DECODE = "decode"  # the columns that the question needs
FILTER = "filter"  # looking at the flights, and the whole of a block that has some
STAGES = (FILE, EMULATED, DECOMPRESS, HASH, DECODE, FILTER)


@dataclass(slots=True)
class Costs:
    """The costs of a scan. stage_s: seconds by stage.

    read_blocks: blocks read from files; refills: in how many runs. last_blocks, random_blocks:
    blocks found in the caches of these names.
    """

    stage_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    read_blocks: int = 0
    refills: int = 0
    last_blocks: int = 0
    random_blocks: int = 0

    def spend(self, stage: str, start_s: float) -> float:
        """Add the time since `start_s` to `stage`; returns now, where the next stage starts."""
        now_s = perf_counter()
        self.stage_s[stage] += now_s - start_s
        return now_s
