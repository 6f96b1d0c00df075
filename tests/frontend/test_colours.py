"""Colours of the pages stand out from their grounds as WCAG 2.2 AA asks, light and dark."""

import re
from itertools import product

import pytest

from frontend import static_files

STYLE = (static_files.FOLDER / "style.css").read_text(encoding="utf-8")
COLOURS = re.findall(r"--([\w-]+): light-dark\((#[\da-f]{6}), (#[\da-f]{6})\);", STYLE)
LIGHT, DARK = ({name: pair[scheme] for name, *pair in COLOURS} for scheme in (0, 1))
TEXT, SHAPES = 4.5, 3.0  # the least contrasts
WORDS = ("ink", "soft", "accent", "good", "warn", "bad")
PAIRS = {
    **dict.fromkeys(product(WORDS, ("ground", "surface")), TEXT),
    **{("ink", f"{name}tint"): TEXT for name in ("", "good-", "warn-", "bad-")},
    **{(name, f"{name}-tint"): TEXT for name in ("good", "warn", "bad")},
    ("accent", "tint"): TEXT,
    ("accent-ink", "accent"): TEXT,
    **{(f"data-{number}", "surface"): SHAPES for number in range(1, 7)},
    **dict.fromkeys(product(["field"], ("ground", "surface")), SHAPES),
}


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`, as WCAG defines it."""
    shares = [value / 255 for value in bytes.fromhex(colour[1:])]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares]
    return sum(part * x for part, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first: str, second: str) -> float:
    dark, bright = sorted(map(luminance, (first, second)))
    return (bright + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_from_their_grounds(colours: dict[str, str]) -> None:
    weak = {
        pair: round(ratio, 2)
        for pair, least in PAIRS.items()
        if (ratio := contrast(*(colours[name] for name in pair))) < least
    }
    assert weak == {}


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_dots_that_are_seen_through_stand_out_from_their_ground(colours: dict[str, str]) -> None:
    (found,) = re.findall(r"\.day-dots \{.*stroke-opacity: ([\d.]+);", STYLE)
    opacity, ground = float(found), bytes.fromhex(colours["ground"][1:])
    line = bytes.fromhex(colours["data-1"][1:])
    mixed = (round(below + opacity * (x - below)) for x, below in zip(line, ground, strict=True))
    assert contrast(f"#{bytes(mixed).hex()}", colours["ground"]) >= SHAPES
