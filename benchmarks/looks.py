"""How pictures look: one colour, marker and dash for a method, wherever it is drawn.

Every figure of the benchmarks takes them from `LOOKS`. No two
methods share colour and marker, so that they are told apart without colours too; the colours
are seen on white and on black, and most of them are those of Okabe and Ito, which people who
are colour-blind tell apart.
"""

from __future__ import annotations

import colorsys
import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple


class Look(NamedTuple):
    """Colour, marker and dash of a line, by the names of matplotlib."""

    color: str
    marker: str
    dash: str

    @property
    def line(self) -> dict[str, Any]:
        """The same as keywords of a line."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.dash}


BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, OLIVE, GREY, BROWN = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999933", "#7F7F7F",
    "#8C564B",
)  # fmt: skip

LOOKS: dict[str, Look] = {
    "uniform": Look(PINK, "s", ":"),
    "uniform, as many rows": Look(PINK, "v", "-."),
    "uniform, as many seconds": Look(PINK, "x", "--"),
    "lightweight": Look(BLUE, "o", "-"),
    "lightweight, paper": Look(BLUE, "d", "--"),
    "kmeans": Look(ORANGE, "^", "-."),
    "kmeans, paper": Look(ORANGE, "v", ":"),
    "kmeans, pilot": Look(ORANGE, "x", "--"),
    "kmeans, starts": Look(ORANGE, "<", "--"),
    "kmeans, centroids": Look(ORANGE, "*", "-"),
    "svm": Look(GREEN, "D", "-"),
    "svm, paper": Look(GREEN, "o", "--"),
    "svm, stream": Look(GREEN, "^", "-."),
    "svm, tree": Look(GREEN, "P", ":"),
    "logistic": Look(OLIVE, "p", "-"),
    "least_squares": Look(OLIVE, "X", "--"),
    "mixture": Look(YELLOW, "h", "-"),
    "coverage": Look(SKY, "<", "-"),
    "lightweight_bregman": Look(BLUE, ">", "-"),
    "strong_bregman": Look(ORANGE, "D", "-."),
    "margin": Look(SKY, "s", "-"),
    "active": Look(SKY, "^", "-."),
    "csvrg": Look(SKY, "D", "--"),
    "csvrg, paper": Look(SKY, "x", ":"),
    "svc": Look(OLIVE, "s", ":"),
    "nystroem": Look(YELLOW, "s", "--"),
    "nystroem, same rows": Look(YELLOW, "D", "-."),
    "nystroem, ridge": Look(YELLOW, "^", "-"),
    "nystroem, logistic": Look(YELLOW, "v", ":"),
    "fourier": Look(PINK, "^", "--"),
    "fourier, same rows": Look(PINK, "d", "-."),
    "lightgbm": Look(GREY, "*", "-"),
    "boosting": Look(GREY, "P", ":"),
    "sgd": Look(GREY, "o", "-"),
    "random": Look(PINK, "o", ":"),
    "uncertainty": Look(YELLOW, "o", "--"),
    "exact": Look(BLUE, "p", "-."),
    "merge": Look(GREY, "D", "-"),
}
"""By the name of a method, and for some by a variant behind a comma."""

# Of methods that the table does not know.
_MARKERS, _DASHES = "os^vD<>pPX*h", ("-", "--", "-.", ":")

# Of their colours, in degrees: eyes tell fewer greens and blues apart than reds and violets.
_HUES = (0, 22, 48, 95, 165, 190, 228, 265, 295, 330)

# Of their colours, by the measure of WCAG: as far from white as from black, 4.6 to one.
_LUMINANCE, _SATURATION = 0.18, 0.75

CLASSES: tuple[tuple[str, str], ...] = (
    (BLUE, "o"), (ORANGE, "^"), (GREEN, "s"), (PINK, "D"), (YELLOW, "v"),
    (SKY, "P"), (GREY, "X"), (BROWN, "*"), (OLIVE, "<"), ("#6A4C93", ">"),
)  # fmt: skip
"""Colour and marker of the first, second, ... label or cluster."""


def look_of(method: object) -> Look:
    """Return how a method looks; one that the table does not know, by its name.

    Parameters
    ----------
    method : str
        A key of `LOOKS`, in any case; ``"kmeans, 5 clusters"`` looks like ``"kmeans"``.

    Returns
    -------
    Look

    Examples
    --------
    >>> look_of("uniform").color, look_of("Lightweight, default") == look_of("lightweight")
    ('#CC79A7', True)
    >>> look_of("my own") == look_of("My own")
    True
    """
    return looks_of([method])[0]


def looks_of(methods: Iterable[object]) -> list[Look]:
    """Return how the methods of one picture look.

    Those that the table does not know have the look of their name in every picture, whatever
    their order, unless two of one picture would share a colour: then the one whose name comes
    later in the alphabet takes the next colour that is free.

    Examples
    --------
    >>> looks_of(["my own", "uniform"]) == [look_of("my own"), look_of("uniform")]
    True
    """
    names = [str(method).lower() for method in methods]
    found = {name: look for name in names if (look := _known(name))}
    n_hues = len(_HUES)
    hues, taken = Counter[int](), set[int]()
    for name in sorted(set(names) - set(found)):
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).digest()
        own = int.from_bytes(digest[:8], "big")
        turned = ((own + i) % (n_hues * len(_MARKERS)) for i in range(n_hues * len(_MARKERS)))
        place = min(turned, key=lambda place: (hues[place % n_hues], place in taken))
        hues[place % n_hues] += 1
        taken.add(place)
        color, marker = _color(_HUES[place % n_hues]), _MARKERS[place // n_hues]
        found[name] = Look(color, marker, _DASHES[digest[8] % len(_DASHES)])
    return [found[name] for name in names]


def _known(name: str) -> Look | None:
    return LOOKS.get(name) or LOOKS.get(name.partition(",")[0].strip())


def _color(hue: float) -> str:
    """Return the colour of a hue, in degrees, that is seen on white and on black alike."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        rgb = colorsys.hls_to_rgb(hue / 360, middle, _SATURATION)
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        dark = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] < _LUMINANCE
        low, high = (middle, high) if dark else (low, middle)
    return "#" + "".join(f"{round(255 * c):02X}" for c in rgb)
