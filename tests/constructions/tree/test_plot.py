"""The picture of a stored tree: leaves, nodes, ages and windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from daskcoreset import CoresetTree
from daskcoreset.core.errors import InvalidInputError


def test_plot__shows_leaves_windows_and_ages(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "tree", size=5, random_state=0)
    with pytest.raises(InvalidInputError, match="no leaves"):
        tree.plot()
    rows = np.random.default_rng(0).normal(size=(60, 2))
    for name in "abcd":
        tree.append(rows[: 20 + ord(name) % 7], name=name)
    tree.replace("b", rows[:30])
    ax: Any = tree.plot(ax=Figure().add_subplot())
    (nodes,) = [one for one in ax.collections if isinstance(one, PolyCollection)]
    assert len(nodes.get_paths()) == 7
    # a, b, the node above them, c, d, the node above them, the top.
    assert [text.get_text() for text in ax.texts] == ["4", "0", "0", "2", "1", "1", "0"]
    assert [text.get_text() for text in ax.get_xticklabels()] == list("abcd")
    assert [text.get_text() for text in ax.get_yticklabels()][:2] == ["rows", "leaves"]
    opacity: Any = np.array(nodes.get_facecolor())[:, 3]
    assert opacity[1] > opacity[3] > opacity[0]
    window: Any = tree.plot(slice("b", "d"), ax=Figure().add_subplot()).collections[1]
    assert len(window.get_paths()) == 2
    assert window.get_hatch()
    with pytest.raises(InvalidInputError, match="nobody"):
        tree.plot("nobody")
