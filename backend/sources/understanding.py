"""Says what a file of flights was taken for."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from backend.base.day_orders import WRITTEN
from backend.base.words import counted
from backend.sources.kinds import Reading

SHOWN_TITLES = 3


@dataclass(slots=True)
class Understanding:
    """What a file was taken for.

    reading: what its columns mean. dates: one of `ORDERS`; None if it has no column of days, or no
    day that tells. sample: returns its first rows as flights, with what is no valid value as it is.
    emptied: how many cells that mean nothing were emptied in the latest reading, by field.
    repeated_headers: how many lines were left out in it because they repeat the header.
    """

    reading: Reading
    dates: str | None
    sample: Callable[[], list[dict[str, object]]]
    emptied: Counter[str] = field(default_factory=Counter)
    repeated_headers: int = 0

    def joined(self, other: "Understanding | None") -> "Understanding":
        """Add what another reading of the same file has counted."""
        if other is not None:
            self.emptied.update(other.emptied)
            self.repeated_headers += other.repeated_headers
        return self

    def __str__(self) -> str:
        """Return one line for people."""
        reading = self.reading
        parts = [reading.kind.name]
        parts += [f"days are written {WRITTEN[self.dates]}"] if self.dates else []
        parts += [f"{fields} from {what}" for what, fields in reading.derivations.items()]
        if reading.left_empty:
            parts.append(f"left empty: {', '.join(reading.left_empty)}")
        if reading.not_used:
            more = len(reading.not_used) - SHOWN_TITLES
            titles = [*reading.not_used[:SHOWN_TITLES], *([f"{more} more"] if more > 0 else [])]
            parts.append(f"not used: {', '.join(titles)}")
        parts += [
            f"{counted(count, 'cell')} of {name} emptied, as what stood there means nothing"
            for name, count in self.emptied.items()
        ]
        if self.repeated_headers:
            parts.append(f"{counted(self.repeated_headers, 'repeated header')} left out")
        return "; ".join(parts)
