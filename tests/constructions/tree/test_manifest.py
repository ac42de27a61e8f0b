"""The manifest of a tree: what a change writes of it, and what is read again."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest  # noqa: TC002 - of a fixture

from daskcoreset.constructions.draws import MergeReduce
from daskcoreset.constructions.tree import persistence
from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.leaves import Leaf, LeafTable
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.persistence import RowSchema, settings_values
from daskcoreset.constructions.tree.place import Files, place_at
from daskcoreset.core.points import WeightedPoints
from daskcoreset.storage.disk import DiskFolder

N = 10_000
SETTINGS = Settings.of("uniform", 1, None, 0, "raise", MergeReduce())
ONE = WeightedPoints(np.ones((1, 1)), np.ones(1), np.arange(1))


def leaf(number: int) -> Leaf:
    name = f"leaf-{number}"
    return Leaf(
        name,
        1000,
        None,
        1000.0,
        node=f"leaf-{blake2b(name.encode(), digest_size=16).hexdigest()}",
    )


def grown(before: Manifest, numbers: range) -> tuple[Manifest, dict[str, Files]]:
    leaves = LeafTable([*before.leaves, *map(leaf, numbers)])
    schema = RowSchema(1, "float64", sparse=False, has_labels=False)
    changed = replace(before, leaves=leaves, n_added=numbers.stop, schema=schema)
    made = {leaf(number).node: ONE for number in numbers}
    after, objects = before.followed_by(SETTINGS, changed, made)
    root = before.root.followed_by(after.main, after.keep)
    root = before.place.commit(before.root, root, objects)
    return replace(after, root=root), objects


def test_append__writes_few_objects_and_little_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At ten thousand leaves: objects, and bytes of manifest, of some appends."""
    node = {"zarr.json": b""}  # nodes are neither made nor written here
    monkeypatch.setattr(persistence, "state_files", lambda *_: node)
    monkeypatch.setattr(Manifest, "read_node", lambda *_: ONE)
    monkeypatch.setattr(type(SETTINGS), "reduce", lambda *_: ONE)
    monkeypatch.setattr(DiskFolder, "put", lambda *_: None)
    place = place_at("path", tmp_path / "t", "coreset-tree", "objects")
    draft = place.draft(settings_values(SETTINGS), "")
    tree = Manifest(place, place.commit(draft, draft.followed_by(None, 2), {}))
    tree, objects = grown(tree, range(N))
    assert len(objects) > 2 * N
    n_objects, n_bytes = [], []
    for number in range(N, N + 20):
        tree, objects = grown(tree, range(number, number + 1))
        pages = [files for files in objects.values() if files is not node]
        n_objects.append(len(objects))
        n_bytes.append(sum(len(data) for files in pages for data in files.values()))
    assert max(n_objects) <= 2 * np.log2(N)
    assert max(n_bytes) <= 1536
    assert sum(n_bytes) <= 1100 * len(n_bytes)
