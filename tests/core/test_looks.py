"""How methods look: no two alike, seen on white and on black, and the same wherever drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb

from daskcoreset.core.looks import CLASSES, INK, LOOKS, look_of
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


def test_pictures__name_no_colours_of_their_own() -> None:
    """Library, benchmarks and pages take them from the table; C0, C1 ... depend on the style."""
    files = [*(ROOT / "daskcoreset").rglob("*plot*.py"), *(ROOT / "benchmarks").glob("*.py")]
    files.append(ROOT / "docs/figures.py")
    for path in files:
        found = re.findall(_OWN, path.read_text())
        assert not found, (path.name, found)


# C0 and C1, also as f"C{i}", and #0a7d91.
_OWN = r"[\"']C(?:\d|\{)[^\"'=]{0,20}[\"']|[\"']#[0-9a-fA-F]{6}[\"']"
