"""The figures of some flights as the service names them, and of several groups together. Pure."""

from collections.abc import Sequence

from frontend.backend_client import Json

COUNTS = ("flights", "arrived", "cancelled", "no_arrival")
MEANS = {
    "average_delay": "arrived",
    "on_time_share_of_arrived": "arrived",
    "on_time_share_of_scheduled": "flights",
}
"""Figures that are means, and the counts of what they are means of."""
FIGURES = (
    *("flights", "arrived", "cancelled", "no_arrival", "average_delay"),
    *("average_departure_delay", "on_time_share_of_arrived", "on_time_share_of_scheduled"),
)

FEW_ARRIVALS = 100
"""With fewer, chance matters. Delays of single flights scatter by about 40 minutes (standard
deviation), so a mean of 100 is uncertain by 2 * 40 / sqrt(100) = 8 minutes at least, and the 90th
percentile rests on the ten flights beyond it."""
FEW_IN_A_SLOT = 10


def together(groups: Sequence[Json]) -> Json:
    """Return the figures of several groups as those of one."""
    figures: Json = {count: sum(group[count] for group in groups) for count in COUNTS}
    for mean, count in MEANS.items():
        total = sum((group[mean] or 0) * group[count] for group in groups)
        figures[mean] = total / figures[count] if figures[count] else None
    return figures
