"""The table of leaves."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from daskcoreset.constructions.tree.leaf_table import LeafTable
from daskcoreset.core.errors import InvalidInputError
from tests.acceptance.tools.trees import day, made

# In the colour of the table: themes of notebooks have greys that are not read on every ground.
CAPTION = '<table><caption style="color:inherit"'


def test_leaves__table(tmp_path: Path) -> None:
    tree = made(tmp_path / "t")
    leaf = tree.append(day(0), time=dt.date(2026, 3, 1))
    assert (leaf.name, leaf.rows, leaf.time, leaf.weight) == ("2026-03-01", 60, "2026-03-01", 60.0)
    tree.append(day(1), sample_weight=np.full(60, 0.5))
    tree.append(day(2), name="<b>", time="2026-03-03")
    assert tree.leaves.names == ["2026-03-01", "leaf-1", "<b>"]
    assert tree.replace("<b>", day(3), time="2026-03").time == "2026-03"
    assert tree.replace("<b>", day(3)).time == "2026-03"
    assert tree.leaves["leaf-1"].weight == 30.0
    assert isinstance(tree.leaves[:2], LeafTable)
    assert hash(tree.leaves) == hash(LeafTable(list(tree.leaves)))
    assert "&lt;b&gt;" in tree.leaves._repr_html_()
    assert tree._repr_html_().partition(">CoresetTree(")[0].endswith(CAPTION)
    many = LeafTable([tree.leaves[0]] * 100)
    assert many._repr_html_().count("<tr>") == 1 + 15 + 1 + 15
    assert "70 more" in many._repr_html_()
    window = tree[-2:]._repr_html_()
    assert window.partition(">TreeWindow(2 of 3 leaves: ")[0].endswith(CAPTION)
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


def test_times__of_a_tree_are_of_one_kind(tmp_path: Path) -> None:
    tree = made(tmp_path / "t")
    tree.append(day(0), name="a", time=20260302)  # as a number, or a day without hyphens
    tree.append(day(2), name="c", time="2026-03-03T12:00+01:00")
    with pytest.raises(InvalidInputError, match="time is '7', a number, and that of leaf 'c' is"):
        tree.append(day(3), time=7)
    assert tree.coreset(dt.date(2026, 3, 2)).provenance["n"] == 60
    tree.append(day(1), name="b")
    assert tree.leaves.names == ["a", "c", "b"]
    # What is replaced has no other time any more.
    assert tree.replace("c", day(2), time=7).time == "7"
    with pytest.raises(
        InvalidInputError, match="'2026-03-04', a date, and that of leaf 'c' is '7'"
    ):
        tree.replace("a", day(3), time=np.datetime64("2026-03-04"))
