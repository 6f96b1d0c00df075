"""How much the tests try: what finds a fault in the usual run, and far more where it is looked for.

The usual run tries the same examples every time, so that more of them find nothing new; the profile
`explore` is for new ones, for every moment instead of some, and for finer statistics.
"""

from hypothesis import settings

EXPLORE, QUICK = "explore", "quick"


def tries(usual: int, exploring: int, quick: int | None = None) -> int:
    """The number of tries in the profile that this run of pytest has; quick: None as usual."""
    profile = settings.get_current_profile_name()
    if profile == QUICK and quick is not None:
        return quick
    return exploring if profile == EXPLORE else usual


def examples(usual: int) -> int:
    """A number of Hypothesis's examples: ten times as many where new ones are looked for."""
    return tries(usual, exploring=10 * usual, quick=min(usual, 10))
