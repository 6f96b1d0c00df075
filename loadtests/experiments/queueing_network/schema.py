"""Draws figure 6, the network with its routing, as SVG in the style of the other figures."""

from collections.abc import Mapping
from fractions import Fraction

WIDTH, HEIGHT = 700, 270
_INK = "stroke: var(--ink); fill: none; stroke-width: 1.4"
_WORDS = "fill: var(--ink); font: 13px sans-serif; text-anchor: middle"
_SMALL = "fill: var(--ink); font: 12px sans-serif; text-anchor: middle"
_PLACES = {"cpu": (270, "--data-4"), "disk": (440, "--data-1"), "delay": (610, "--data-6")}
_MIDDLE = 130
_TERMINAL = 75


def schema(
    routing: Mapping[str, Mapping[str, Fraction]], service_ms: Mapping[str, float], think_s: float
) -> str:
    """The SVG element: stations with their mean service times, arrows with probabilities."""
    stations = "".join(
        _station(x, colour, name.upper(), f"{service_ms[name]:g} ms")
        for name, (x, colour) in _PLACES.items()
    )

    def share(origin: str, target: str) -> str:
        found = routing[origin][target]
        return f"{found.numerator}/{found.denominator}"

    arrows = "".join(
        [
            _arrow("M 110 130 H 205", 158, 122, "1"),
            _arrow("M 296 147 C 300 262, 75 262, 75 172", 180, 252, share("cpu", "terminal")),
            _arrow("M 290 108 C 330 30, 190 30, 216 110", 256, 42, share("cpu", "cpu")),
            _arrow("M 307 130 H 375", 342, 122, share("cpu", "disk")),
            _arrow("M 477 130 H 545", 511, 122, "1"),
            _arrow("M 630 108 C 630 35, 400 35, 386 110", 510, 45, share("delay", "disk")),
            _arrow("M 640 142 C 690 255, 180 255, 212 154", 450, 245, share("delay", "cpu")),
        ]
    )
    return (
        f'<svg aria-hidden="true" focusable="false" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'xmlns="http://www.w3.org/2000/svg"><defs><marker id="network-tip" markerWidth="8" '
        'markerHeight="8" refX="7" refY="4" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" '
        f'style="fill: var(--ink)"/></marker></defs>{_terminal(think_s)}{stations}{arrows}</svg>'
    )


def _terminal(think_s: float) -> str:
    """Some circles for customers who think, because there is no queue here."""
    circles = "".join(
        f'<circle cx="{_TERMINAL}" cy="{y}" r="11" style="{_INK}"/>' for y in (104, 130, 156)
    )
    return (
        circles
        + _text(_TERMINAL, 60, "TERMINAL", _WORDS)
        + _text(_TERMINAL, 78, f"{think_s:g} s", _SMALL)
    )


def _station(x: int, colour: str, name: str, service: str) -> str:
    """A queue, open to the left, with its server."""
    left, right, top, bottom = x - 52, x - 4, _MIDDLE - 18, _MIDDLE + 18
    queue = f"M {left} {top} H {right} V {bottom} H {left}"
    slots = "".join(f" M {right - at} {top} V {bottom}" for at in (12, 24, 36))
    return (
        f'<path d="{queue}{slots}" style="{_INK}"/>'
        f'<circle cx="{x + 15}" cy="{_MIDDLE}" r="19" '
        f'style="stroke: var({colour}); fill: none; stroke-width: 3"/>'
        + _text(x - 24, 176, name, _WORDS)
        + _text(x - 24, 193, service, _SMALL)
    )


def _arrow(path: str, x: int, y: int, words: str) -> str:
    return f'<path d="{path}" style="{_INK}" marker-end="url(#network-tip)"/>' + _text(
        x, y, words, _SMALL
    )


def _text(x: int, y: int, words: str, style: str) -> str:
    return f'<text x="{x}" y="{y}" style="{style}">{words}</text>'
