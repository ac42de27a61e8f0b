"""Draw the figures of the pages: ``python docs/_draw.py FOLDER [NAME ...]``, or one as FILE.png.

A figure is a file ``docs/figures/NAME.py`` with the function ``draw(theme)``, which returns a
matplotlib figure. A page shows it, in the colors of the reader's theme, by::

    ```{drawing} NAME
    What the picture shows, for those who cannot see it.
    ```
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import Directive

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "figures"))

from theme import RESULTS, THEMES, Theme  # noqa: E402 - it lies in the folder of the figures

NAMES = sorted(path.stem for path in (HERE / "figures").glob("*.py") if path.stem != "theme")

# Parts of a figure that take the ink of a theme by default.
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")


def write(folder: Path, names: Sequence[str] = NAMES) -> None:
    """Draw the figures that are not there yet, or older than their file or their results."""
    folder.mkdir(exist_ok=True)
    for name, (kind, theme) in product(names, THEMES.items()):
        path, sources = folder / f"{name}-{kind}.svg", [HERE / "figures" / f"{name}.py"]
        sources += RESULTS.glob("*.json") if name.startswith("bench_") else ()
        newest = max(source.stat().st_mtime for source in sources)
        if not path.exists() or path.stat().st_mtime < newest:
            with mpl.rc_context(_style(name, theme)):
                figure = importlib.import_module(name).draw(theme)
                figure.savefig(path, metadata={"Date": None}, transparent=True)


def write_png(path: Path, *, width: int = 1600, colors: int = 64) -> None:
    """Draw the figure that a file is named after, on the light ground, for pages elsewhere."""
    from PIL import Image

    theme = THEMES["light"]
    with mpl.rc_context(_style(path.stem, theme)):
        figure = importlib.import_module(path.stem).draw(theme)
        figure.savefig(path, dpi=width / figure.get_figwidth(), facecolor=theme.ground)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(colors).save(path, optimize=True)


def _style(name: str, theme: Theme) -> dict[str, Any]:
    ink = dict.fromkeys(_INKED, theme.ink)
    return {
        **ink,
        "axes.facecolor": "none",
        "svg.hashsalt": name,
        "savefig.dpi": 150,
        "font.size": 11,
    }


class Drawing(Directive):
    """An image for each theme. The page shows one of them, and phones scroll it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the two images."""
        (name,) = self.arguments
        alt = " ".join(self.content)
        if name not in NAMES or not alt:
            raise self.error(
                f"{name!r} is not one of {NAMES}, or the text that describes it is missing"
            )
        images = [
            nodes.image(
                uri=f"/_figures/{name}-{kind}.svg", alt=alt, classes=["figure", f"only-{kind}"]
            )
            for kind in THEMES
        ]
        return [nodes.container("", *images, classes=["drawing", f"drawing-{name}"])]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if target.suffix == ".png":
        write_png(target)
    else:
        write(target, sys.argv[2:] or NAMES)
