"""How methods look: no two alike, seen on white and on black, and the same wherever drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib.colors import to_rgb

from daskcoreset.core.errors import InvalidTypeError
from daskcoreset.core.looks import CLASSES, INK, LOOKS, axes_for, ink_of, look_of, looks_of
from daskcoreset.metrics.plot_errors import plot_error
from daskcoreset.sensitivities import CONSTRUCTIONS

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("agg")


def contrast(color: str, ground: float) -> float:
    """As WCAG measures it, against a grey of this luminance."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    own = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    return (max(own, ground) + 0.05) / (min(own, ground) + 0.05)


def test_looks__differ_without_colours() -> None:
    assert len({(look.marker, look.dash) for look in LOOKS.values()}) >= 18
    assert len({look[:2] for look in LOOKS.values()}) == len(LOOKS)
    assert len({marker for _, marker in CLASSES}) == len(CLASSES)


def test_looks__are_seen_on_white_and_on_black() -> None:
    for color in {look.color for look in LOOKS.values()} | {color for color, _ in CLASSES}:
        assert contrast(color, 1.0) > 2.0, color
        assert contrast(color, 0.0) > 3.0, color
    assert min(contrast(INK, 1.0), contrast(INK, 0.0)) > 4.5


def test_look_of__every_method_has_one_and_keeps_it() -> None:
    assert set(CONSTRUCTIONS) <= set(LOOKS)
    assert look_of("Uniform, default") == LOOKS["uniform"]


def test_axes_for__makes_axes_for_light_and_dark_pages() -> None:
    ax = axes_for(None)
    assert ink_of(ax) == INK
    face: Any = ax.get_facecolor()
    assert face[3] == 0.0
    assert mpl.rcParams["text.color"] == mpl.rcParamsDefault["text.color"]
    with mpl.style.context("dark_background"):  # a style of the user's own
        assert ink_of(axes_for(None)) == "white"
    with pytest.raises(InvalidTypeError, match="pass matplotlib's Axes"):
        axes_for(3)  # type: ignore[arg-type]


def test_pictures__name_no_colours_of_their_own() -> None:
    """Library, benchmarks and pages take them from the table; C0, C1 ... depend on the style."""
    files = [*(ROOT / "daskcoreset").rglob("*plot*.py"), *(ROOT / "benchmarks").glob("*.py")]
    files.append(ROOT / "docs/figures.py")
    for path in files:
        found = re.findall(_OWN, path.read_text())
        assert not found, (path.name, found)


# C0 and C1, also as f"C{i}", and #0a7d91.
_OWN = r"[\"']C(?:\d|\{)[^\"'=]{0,20}[\"']|[\"']#[0-9a-fA-F]{6}[\"']"


def test_notebooks__draw_methods_as_the_project_does() -> None:
    """By `plot_error`, which takes looks from the table, and without styles of their own."""
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = [cell for cell in json.loads(path.read_text())["cells"] if "outputs" in cell]
        # Stored outputs are shown in place of new ones, however old.
        assert not any(cell["outputs"] for cell in cells), path.name
        code = "\n".join("".join(cell["source"]) for cell in cells)
        assert not re.findall(r"[\"']#[0-9a-fA-F]{6}[\"']", code), path.name
        assert not re.findall(r"[\"'][ovsx^][-:][-.]?[\"']|\.loglog\(", code), path.name


def test_look_of__unknown_methods_stay_apart() -> None:
    many = looks_of(f"method {i}" for i in range(40))
    assert len({look[:2] for look in many}) == len(many)
    few = ["my own", "stratified", "theirs", "leverage scores", "k-medoids", "another"]
    assert len({look.color for look in looks_of(few)}) == len(few)
    assert looks_of(few) == looks_of(few[::-1])[::-1]
    assert not {look.color for look in many} & {look.color for look in LOOKS.values()}
    for look in many:
        assert min(contrast(look.color, 1.0), contrast(look.color, 0.0)) > 4.4, look.color


def test_plot_error__one_look_for_one_name_wherever_it_stands() -> None:
    errors = {1000: [0.5, 0.6], 5000: [0.2, 0.25]}
    alone = plot_error({"my own": errors})
    among = plot_error(dict.fromkeys(["uniform", "theirs", "lightweight", "my own"], errors))
    first, *_, last = [line for ax in (alone, among) for line in _named(ax)]
    assert first.get_label() == last.get_label() == "my own"
    assert (first.get_color(), first.get_marker()) == (last.get_color(), last.get_marker())
    assert len({line.get_color() for line in _named(among)}) == 4


def _named(ax: Any) -> list[Any]:
    """Return the lines of the methods, in their order, with their names."""
    for box in ax.containers:
        box.lines[0].set_label(box.get_label())
    return [box.lines[0] for box in ax.containers]
