"""Nodes of streams, trees and views: how many there are of how many rows, and which answer."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.acceptance import face
from tests.acceptance.tools.trees import Recorder, days, grown, rows, shapes

pytestmark = pytest.mark.usefixtures("quick_disk")


def test_stream__groups_of_four_and_eight_leaves_are_reduced_together(calls: Any) -> None:
    """Four leaves alone, four thinned ones together, and then eight at a time."""
    stream = face.stream(method=Recorder(), size=5, leaf_size=40, random_state=0)
    held = {4: 10, 6: 10 + 20, 8: 10, 12: 10 + 40, 16: 10 + 10, 24: 10 + 20, 32: 10}
    for leaves in range(1, 33):
        stream.partial_fit(rows(40 * leaves)[40 * (leaves - 1) :])
        if leaves in held:
            assert stream.n_held == held[leaves]
    expected = {
        ("reduce", 40, 10): 4 + 2 + 1,  # leaves, two groups of four, and four of eight leaves
        ("thin", 40, 10): 28,
        ("reduce", 20, 10): 1,
        ("reduce", 80, 10): 3,
    }
    assert Counter(shapes(calls)) == expected
    assert stream.coreset().provenance["levels"] == 6
    assert stream.coreset().provenance["leaf_size"] == 40


def test_stream__thinned_leaves_hold_twice_the_rows_of_a_node() -> None:
    for sampling in ("systematic", "multinomial"):
        draw = face.MergeReduce(sampling=sampling)
        stream = face.stream(
            method=face.Uniform(), size=20, leaf_size=400, random_state=0, draw=draw
        )
        stream.partial_fit(np.random.default_rng(0).normal(size=(6 * 400 + 5, 2)))
        if sampling == "systematic":
            assert stream.n_held == 40 + 2 * 80 + 5
        assert stream.rows().total_weight == pytest.approx(2405, rel=1e-9)
        copy = pickle.loads(pickle.dumps(stream))
        assert copy.coreset().equals(stream.coreset())
        copy.partial_fit(np.ones((400, 2)))
        assert (copy.n_rows, stream.n_rows) == (2805, 2405)
        assert stream.coreset().total_weight == pytest.approx(2405, rel=1e-9)
        assert stream.coreset().provenance["sampling"] == sampling


def test_window__of_few_leaves_is_answered_from_its_leaves(calls: Any, tmp_path: Path) -> None:
    tree = grown(tmp_path / "t", days(8), method=Recorder())
    windows: list[tuple[Any, int]] = [
        (None, 8), (slice(0, 4), 4), (slice(1, 8), 7), (3, 1),
        (["d0", "d2", "d3", "d7"], 4), (slice(None, None, 2), 4),
    ]  # fmt: skip
    for window, n_nodes in windows:
        calls.clear()
        tree.coreset(window)
        assert shapes(calls) == [("finish", 20 * n_nodes, 10)], window


def test_view__is_answered_from_up_to_sixteen_nodes(calls: Any, tmp_path: Path) -> None:
    for i, part in enumerate(days(17, 24)):
        np.save(tmp_path / f"{i:02d}.npy", part)
    view = face.follow(f"{tmp_path}/*.npy", tmp_path / "v", method=Recorder(), size=10)
    assert 5 <= view.depth <= 7
    calls.clear()
    view.coreset()
    assert shapes(calls) == [("finish", 16 * 20, 10)]
    calls.clear()
    view.coreset(slice(4, 7))
    assert shapes(calls) == [("finish", 3 * 20, 10)]
