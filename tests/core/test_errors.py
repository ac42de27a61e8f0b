"""Errors and warnings of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from daskcoreset import CoresetStream, CoresetTree, build, build_many
from daskcoreset.errors import CoresetWarning, InvalidTypeError


def test_warnings__point_at_the_line_that_called() -> None:
    # Between it and the warning there are functions of contextlib, for the time limit.
    with pytest.warns(CoresetWarning, match="nothing was reduced") as caught:
        build(np.ones((3, 2)), size=10)
    assert caught[0].filename == __file__


def test_trees__say_how_they_are_opened_and_what_to_fit(tmp_path: Path) -> None:
    not_opened: Any = CoresetTree
    with pytest.raises(InvalidTypeError, match=r"CoresetTree.open\(path\)"):
        not_opened(tmp_path / "tree")
    tree = CoresetTree.create(tmp_path / "tree", size=10)
    tree.append(np.ones((20, 2)))
    stream = CoresetStream(size=10)
    members = build_many(np.ones((20, 2)), methods=["uniform"], sizes=5)
    for part, remedy in (
        (tree, r"tree\.coreset"),
        (tree[-1:], r"window\.coreset"),
        (stream, r"stream\.coreset"),
        (members, r"portfolio\[name\]"),
    ):
        with pytest.raises(InvalidTypeError, match=f"not an array of rows; .*{remedy}"):
            KMeans().fit(part)
