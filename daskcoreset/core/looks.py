"""How pictures look: one colour, marker and dash for a method, wherever it is drawn.

Every figure of the library, of its benchmarks and of its pages takes them from `LOOKS`. No two
methods share colour and marker, so that they are told apart without colours too; the colours
are seen on white and on black, and most of them are those of Okabe and Ito, which people who
are colour-blind tell apart.
"""

from __future__ import annotations

import colorsys
import hashlib
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from daskcoreset.core.errors import InvalidTypeError
from daskcoreset.core.optional import need_matplotlib
from daskcoreset.core.validation import a_type

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Look(NamedTuple):
    """Colour, marker and dash of a line, by the names of matplotlib."""

    color: str
    marker: str
    dash: str

    @property
    def line(self) -> dict[str, Any]:
        """The same as keywords of a line."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.dash}


BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, OLIVE, GREY = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999933", "#7F7F7F",
)  # fmt: skip

# Read on white and on black alike: a contrast of 4.5 to one.
INK = "#767676"

# Of audits, which are of any method, and so have the colour of none.
AUDITED = "#8C564B"

GROUNDS = {"light": ("#ffffff", "#555555"), "dark": ("#14181e", "#b4b9c2")}
"""Ground of the pages in both themes, and what is read best on it."""

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
    (SKY, "P"), (GREY, "X"), (AUDITED, "*"), (OLIVE, "<"), ("#6A4C93", ">"),
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


def axes_for(ax: Axes | None) -> Axes:
    """Return the axes that were given, or new ones of pyplot."""
    if ax is None:
        created: Axes = new_axes((1, 1))[0, 0]
        return created
    if not callable(getattr(ax, "errorbar", None)):
        raise InvalidTypeError(f"ax is {a_type(ax)}; pass matplotlib's Axes, or None.")
    return ax


def new_axes(shape: tuple[int, int], **options: Any) -> Any:
    """Return new axes of pyplot, as `subplots` does, that are read on white and on black.

    Their background is clear and their ink is `INK`, unless a style with a background of its own
    is in use.
    """
    style = nullcontext() if _has_style() else need_matplotlib().rc_context(_CLEAR)
    pyplot = need_matplotlib("matplotlib.pyplot")
    with style:
        _, axes = pyplot.subplots(*shape, squeeze=False, layout="constrained", **options)
    return axes


def ink_of(ax: Axes) -> Any:
    """Return the colour of the words of axes."""
    return ax.xaxis.label.get_color()


def add_legend(ax: Axes, **options: Any) -> Any:
    """Draw a legend in the ink of the axes, on a background that lets them through."""
    face: Any = ax.get_facecolor()
    look = {"labelcolor": ink_of(ax), "facecolor": face if face[3] else "none", "edgecolor": INK}
    return ax.legend(**(look | options))


_CLEAR = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def _has_style() -> bool:
    """Whether a user chose colours."""
    mpl = need_matplotlib()
    return any(
        mpl.rcParams[name] != mpl.rcParamsDefault[name]
        for name in ("figure.facecolor", "axes.facecolor", "text.color", "axes.labelcolor")
    )
