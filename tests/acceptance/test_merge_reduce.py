"""Streams and trees: which nodes are made of which rows, and what windows and changes hold."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools.trees import Recorder, days, grown, rows, shapes


def test_stream__levels_are_the_digits_of_the_number_of_leaves(calls: Any) -> None:
    """Algorithm 2: two coresets of a level are united, and reduced to one of the next."""
    stream = face.stream(method=Recorder(), size=5, leaf_size=40, random_state=0)
    for leaves in range(1, 8):
        stream.partial_fit(rows(40 * leaves)[40 * (leaves - 1) :])
        digits = [i for i in range(5) if leaves >> i & 1]
        assert sorted(stream.levels) == digits
        assert 10 * len(digits) <= stream.n_held <= 20 * len(digits)
        assert stream.n_rows == 40 * leaves
        assert stream.total_weight == 40 * leaves
        c = stream.coreset()
        assert len(c) == 5
        assert c.weights.sum() == pytest.approx(40 * leaves)
    made = [one for one in shapes(calls) if one[0] != "finish"]
    assert [one[1:] for one in made].count((40, 10)) >= 7
    assert {one[2] for one in made} == {10}
    assert all(one[1] % 10 == 0 for one in made)
    # Two coresets at least are united before rows are drawn from them once more.
    assert len(made) <= 7 + 3
    draws = [call[4] for call in calls if call[0] != "finish"]
    assert len(set(draws)) == len(draws)


def test_stream__default_leaf_and_sizes(calls: Any) -> None:
    """A leaf of 32 times the rows of the coreset, and nodes of twice as many."""
    stream = face.stream(method=Recorder(), size=6, random_state=0)
    stream.partial_fit(rows(191))
    assert (calls, stream.n_held, stream.levels) == ([], 191, ())
    stream.partial_fit(rows(1))
    assert shapes(calls) == [("reduce", 192, 12)]
    assert stream.n_held == 12
    calls.clear()
    draw = face.MergeReduce(inner_size=9)
    other = face.stream(method=Recorder(), size=6, leaf_size=30, random_state=0, draw=draw)
    other.partial_fit(rows(95))
    assert shapes(calls) == [("reduce", 30, 9)] * 3
    assert other.n_held == 9 + 9 + 9 + 5
    with pytest.raises(face.errors.InvalidInputError, match="leaf_size"):
        face.stream(method=Recorder(), size=6, leaf_size=12)
    with pytest.raises(face.errors.InvalidInputError, match="inner_size"):
        face.stream(size=6, draw=face.MergeReduce(inner_size=5))


@pytest.mark.parametrize("split_every", [2, 3, 16])
def test_build__merges_neighbours_and_draws_once_at_the_root(calls: Any, split_every: int) -> None:
    X = da.from_array(rows(350), chunks=(50, 2))
    draw = face.MergeReduce(split_every=split_every)
    c = face.build(X, size=5, method=Recorder(), random_state=0, draw=draw)
    assert len(c) == 5
    assert c.weights.sum() == pytest.approx(350)
    made = shapes(calls)
    assert made.count(("reduce", 50, 10)) == 7
    last = [one for one in made if one[0] == "finish"]
    assert len(last) == 1
    assert last[0][2] == 5
    if split_every == 16:
        assert last[0][1] == 70
    assert len(made) == 8 + {2: 5, 3: 2, 16: 0}[split_every]
    assert len({call[4] for call in calls}) == len(calls)


def test_tree__is_as_deep_as_a_logarithm_and_changes_as_few_nodes(
    calls: Any, tmp_path: Path
) -> None:
    tree = grown(tmp_path / "t", [], method=Recorder())
    for n, part in enumerate(days(16), 1):
        calls.clear()
        tree.append(part, name=f"d{n}")
        assert (n - 1).bit_length() <= tree.depth <= 2 + (n - 1).bit_length()
        nodes = [call for call in calls if call[0] == "reduce"]
        assert len(nodes) <= 1 + tree.depth
        assert tree.version == n
    calls.clear()
    c = tree.coreset()
    assert [call[0] for call in calls] == ["finish"]
    assert c.weights.sum() == pytest.approx(16 * 60)
    calls.clear()
    tree.replace("d5", days(1)[0])
    assert len([call for call in calls if call[0] == "reduce"]) <= 1 + tree.depth
    assert tree.version == 17
    tree.delete("d7")
    assert len(tree) == 15
    assert "d7" not in tree


def test_tree__holds_what_its_leaves_hold_however_it_came_to_them(tmp_path: Path) -> None:
    parts = days(5)
    plain = grown(tmp_path / "a", parts)
    other = grown(tmp_path / "b", [parts[0], parts[0] * 7, *parts[2:], parts[0]])
    other.replace("d1", parts[1])
    other.delete("d5")
    for tree in (plain, other, face.CoresetTree.open(tmp_path / "b")):
        c = tree.coreset()
        assert [leaf.name for leaf in tree.leaves] == [f"d{i}" for i in range(5)]
        names, numbers = tree.locate(c.indices)
        own = np.array(
            [parts[int(name[1:])][row] for name, row in zip(names, numbers, strict=True)]
        )
        assert np.array_equal(c.points, own)
        assert c.provenance["n"] == 300
        tree.verify()
    assert face.CoresetTree.open(tmp_path / "b").coreset().equals(other.coreset())


WINDOWS: list[tuple[Any, list[int]]] = [
    (slice(-2, None), [3, 4]),
    (slice(0, 2), [0, 1]),
    (slice(None, None, 2), [0, 2, 4]),
    (-1, [4]),
    (-5, [0]),
    (2, [2]),
    (["d1", "d4"], [1, 4]),
    ("d3", [3]),
    (slice("d1", "d3"), [1, 2, 3]),
    (slice(dt.date(2026, 3, 2), dt.date(2026, 3, 4)), [1, 2, 3]),
    (slice(dt.date(2026, 3, 4), None), [3, 4]),
    (slice(None, dt.date(2026, 3, 2)), [0, 1]),
    (dt.date(2026, 3, 3), [2]),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> face.CoresetTree:
    made: face.CoresetTree = grown(tmp_path_factory.mktemp("tree") / "t", days(5))
    return made


@pytest.mark.parametrize(("window", "days_of"), WINDOWS, ids=str)
def test_window__holds_its_leaves_and_no_others(
    window: Any, days_of: list[int], tree: face.CoresetTree
) -> None:
    c = tree.coreset(window)
    names, _ = tree.locate(c.indices)
    assert set(names) == {f"d{i}" for i in days_of}
    assert c.weights.sum() == pytest.approx(60 * len(days_of), rel=0.7)
    scaled = tree.coreset(window, normalize=True)
    assert scaled.weights.sum() == pytest.approx(60 * len(days_of))
    if isinstance(window, (slice, int, list)):
        assert tree[window].coreset().equals(c)
        assert len(tree[window]) == len(days_of)
