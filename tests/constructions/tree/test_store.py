"""`CoresetTree`: few nodes a change, old or new whatever is killed, one of two writers."""

from __future__ import annotations

import shutil
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskcoreset import CoresetTree, WeightedPoints
from daskcoreset.constructions.tree import versions
from daskcoreset.constructions.tree.kept import Kept
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.core.errors import (
    InvalidInputError,
    StoreError,
)
from daskcoreset.testing import assert_mean
from tests.acceptance.tools.trees import day, made


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep nodes in memory, for tests of hundreds of changes that are not about the disk."""
    nodes: dict[tuple[Path | str, str], WeightedPoints] = {}

    def hold(manifest: Manifest, made: dict[str, WeightedPoints]) -> dict[str, WeightedPoints]:
        nodes.update({(manifest.place.path, name): points for name, points in made.items()})
        return made

    def follow(manifest: Manifest, _: Any) -> tuple[Manifest, dict[str, Any]]:
        return replace(manifest, head=manifest.head.followed_by("sha256:0")), {}

    def read(manifest: Manifest, name: str) -> WeightedPoints:
        return nodes[manifest.place.path, name]

    monkeypatch.setattr(Manifest, "read_node", read)
    monkeypatch.setattr(Manifest, "check_current", lambda _: None)
    monkeypatch.setattr(Manifest, "groups", hold)
    monkeypatch.setattr(Manifest, "to_write", follow)
    monkeypatch.setattr(
        Kept, "commit", lambda kept, _, __, ___, value, _____: setattr(kept, "value", value)
    )
    monkeypatch.setattr(versions, "sweep", lambda *_: None)


# --- changes -------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.usefixtures("in_memory")
def test_coreset__is_unbiased_after_changes(tmp_path: Path) -> None:
    """Total weight and a cost of what is left after replacing and deleting; 1e-6."""
    left = np.concatenate([day(0), day(9, 90), day(2)])
    found = []
    for seed in range(200):
        tree = made(tmp_path / str(seed), 4, size=15, random_state=seed)
        tree.replace("day 1", day(9, 90))
        tree.delete("day 3")
        c = tree.coreset()
        found.append([c.weights.sum(), c.weights @ (c.points**2).sum(axis=1)])
        shutil.rmtree(tmp_path / str(seed))
    assert_mean(np.array(found), np.array([len(left), (left**2).sum()]))


# --- questions -----------------------------------------------------------------------------


def test_coreset__of_windows_reads_few_nodes(tmp_path: Path, monkeypatch: Any) -> None:
    tree = made(tmp_path / "t", 20)
    seen: list[str] = []

    original = Manifest.read_node

    def counted(manifest: Manifest, name: str) -> WeightedPoints:
        seen.append(name)
        return original(manifest, name)

    monkeypatch.setattr(Manifest, "read_node", counted)
    tree.coreset()
    assert len(seen) == 1
    seen.clear()
    window = tree.coreset(slice("day 3", "day 17"))
    assert len(seen) <= 6
    assert window.provenance["n"] == 15 * 60
    names, rows = tree.locate(window.indices)
    assert set(names) <= {f"day {i}" for i in range(3, 18)}
    for point, name, row in zip(window.points, names, rows, strict=True):
        assert (point == day(int(name[4:]))[row]).all()
    some = tree.coreset(["day 1", "day 19"])
    assert some.provenance["leaves"] == (
        {"name": "day 1", "offset": 60, "rows": 60},
        {"name": "day 19", "offset": 1140, "rows": 60},
    )
    assert tree.coreset("day 4").provenance["n"] == 60
    exact = tree.coreset(slice(None, "day 2"), normalize=True)
    np.testing.assert_allclose(exact.weights.sum(), 180)


# --- the disk ------------------------------------------------------------------------------


def test_open__nodes_that_are_swapped_or_inconsistent(tmp_path: Path) -> None:
    tree = made(tmp_path / "t", 3)
    root = tmp_path / "t" / "versions"
    one, two = root / f"{1:012d}" / "node-0", root / f"{2:012d}" / "node-0"
    one.rename(tmp_path / "kept")
    shutil.copytree(two, one)
    with pytest.raises(StoreError, match="holds the node of another tree"):
        tree.verify()
    manifest = tree._manifest
    inconsistent: list[dict[str, Any]] = [
        {"nodes": {}},
        {"entries": [astuple(leaf) for leaf in manifest.leaves[::-1]]},
        {"entries": [[*astuple(manifest.leaves[0])[:-2], 8, 0]] * 2},
        {"entries": 3},
        {"digests": {"leaf-0-0": "sha256:0"}},
    ]
    for wrong in inconsistent:
        with pytest.raises((KeyError, TypeError, ValueError)):
            Manifest.from_json(manifest.place, manifest.head, {**manifest.to_json(), **wrong}, 9)


def test_coreset__of_rows_that_were_all_left_out(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "t", size=5, random_state=0, on_invalid="drop")
    tree.append(np.full((3, 2), np.nan))
    with pytest.raises(InvalidInputError, match="all were left out as not finite"):
        tree.coreset()
