"""The table of leaves."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from daskcoreset.constructions.tree.leaf_table import LeafTable
from tests.tools.trees import day, made


def test_leaves__table(tmp_path: Path) -> None:
    tree = made(tmp_path / "t")
    leaf = tree.append(day(0), time=dt.date(2026, 3, 1))
    assert (leaf.name, leaf.rows, leaf.time, leaf.weight) == ("2026-03-01", 60, "2026-03-01", 60.0)
    tree.append(day(1), sample_weight=np.full(60, 0.5))
    tree.append(day(2), name="<b>", time=3)
    assert tree.leaves.names == ["2026-03-01", "leaf-1", "<b>"]
    assert tree.replace("<b>", day(3), time="later").time == "later"
    assert tree.replace("<b>", day(3)).time == "later"
    assert tree.leaves["leaf-1"].weight == 30.0
    assert isinstance(tree.leaves[:2], LeafTable)
    assert hash(tree.leaves) == hash(LeafTable(list(tree.leaves)))
    assert "&lt;b&gt;" in tree.leaves._repr_html_()
    assert tree._repr_html_().startswith("<table><caption>CoresetTree(")
    many = LeafTable([tree.leaves[0]] * 100)
    assert many._repr_html_().count("<tr>") == 1 + 15 + 1 + 15
    assert "70 more" in many._repr_html_()
    window = tree[-2:]._repr_html_()
    assert window.startswith("<table><caption>TreeWindow(2 of 3 leaves: ")
    assert window.count("<tr>") == 1 + 2
    assert "<td>30</td>" in window
    assert "&lt;b&gt;" in window.partition("</caption>")[2]
    assert "2026-03-01" not in window
    assert "name" in repr(tree.leaves)
    frame = tree.leaves.to_dataframe()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["rows"]) == [60, 60, 60]
    assert "<b>" in tree
    table: Any = tree.leaves
    assert "<b>" in table
    assert table[0] in table
    assert "b" not in table
    assert "3 leaves" in repr(tree)
    assert bool(made(tmp_path / "empty"))
