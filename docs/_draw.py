"""Draw the figures of the pages: ``python docs/_draw.py FOLDER [NAME ...]``.

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

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import Directive

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "figures"))

from theme import THEMES  # noqa: E402 - it lies in the folder of the figures

NAMES = sorted(path.stem for path in (HERE / "figures").glob("*.py") if path.stem != "theme")

# Parts of a figure that take the ink of a theme by default.
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")


def write(folder: Path, names: Sequence[str] = NAMES) -> None:
    """Draw the figures that are not there yet, or older than their file."""
    folder.mkdir(exist_ok=True)
    for name, (kind, theme) in product(names, THEMES.items()):
        path, source = folder / f"{name}-{kind}.svg", HERE / "figures" / f"{name}.py"
        if not path.exists() or path.stat().st_mtime < source.stat().st_mtime:
            ink = dict.fromkeys(_INKED, theme.ink)
            clear = {"axes.facecolor": "none", "svg.hashsalt": name, "font.size": 11}
            with mpl.rc_context({**ink, **clear}):
                figure = importlib.import_module(name).draw(theme)
                figure.savefig(path, metadata={"Date": None}, transparent=True)


class Drawing(Directive):
    """One image of each theme, of which the page shows one."""

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
        return [
            nodes.image(
                uri=f"/_figures/{name}-{kind}.svg", alt=alt, classes=["figure", f"only-{kind}"]
            )
            for kind in THEMES
        ]


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:] or NAMES)
