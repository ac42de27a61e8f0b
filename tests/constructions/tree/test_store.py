"""`CoresetTree`: few nodes a change, old or new whatever is killed, one of two writers."""

from __future__ import annotations

import shutil
import threading
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskcoreset import CoresetTree, WeightedPoints
from daskcoreset.constructions.tree import changes, persistence, versions
from daskcoreset.constructions.tree.kept import Kept
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.versions import commit
from daskcoreset.core.errors import (
    CoresetWarning,
    InvalidInputError,
    InvalidTypeError,
    StoreError,
)
from daskcoreset.testing import assert_mean
from tests.tools import killing
from tests.tools.trees import day, made, refuse_late_writers


@pytest.fixture
def reduced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Leaves under every node that is computed."""
    seen: list[int] = []
    original = changes._reduced

    def counted(settings: Any, part: Any, held: Any) -> Any:
        seen.append(part.stop - part.start)
        return original(settings, part, held)

    monkeypatch.setattr(changes, "_reduced", counted)
    return seen


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
        Kept, "commit", lambda kept, _, __, ___, value: setattr(kept, "value", value)
    )
    monkeypatch.setattr(versions, "sweep", lambda *_: None)


# --- changes -------------------------------------------------------------------------------


def test_changes__compute_only_the_nodes_above(tmp_path: Path, reduced: list[int]) -> None:
    tree = made(tmp_path / "t")
    for number in range(20):
        reduced.clear()
        tree.append(day(number), name=str(number))
        # The nodes above the new leaf, from the bottom up: all hold it, so all differ in size.
        assert len(reduced) <= np.log2(number + 1) + 1
        assert reduced == sorted(set(reduced))
    reduced.clear()
    tree.replace("12", day(99))
    assert len(reduced) == tree.depth == 5
    reduced.clear()
    tree.delete("12")
    assert len(reduced) <= 5


@pytest.mark.usefixtures("in_memory")
def test_changes__stay_cheap_over_a_long_history(tmp_path: Path, reduced: list[int]) -> None:
    """Windows that slide and random deletions: depth is logarithmic in the living leaves."""
    rng = np.random.default_rng(0)
    tree = made(tmp_path / "t", size=3)
    total = 0
    for number in range(220):
        reduced.clear()
        tree.append(day(number, 8), name=str(number))
        total += len(reduced)
        if number < 150 and len(tree) > 9:
            tree.delete(tree.leaves[0].name if number < 80 else str(rng.choice(tree.leaves.names)))
        assert tree.depth <= max(6, 2 * np.log2(len(tree))) + 2
    assert total <= 220 * 6


def test_changes__leave_no_garbage(tmp_path: Path) -> None:
    tree = made(tmp_path / "t", size=3)
    for number in range(12):
        tree.append(day(number, 8), name=str(number))
        if len(tree) > 3:
            tree.delete(tree.leaves[0].name)
    # Two manifests, three leaves and the nodes above, of this version and the one before.
    assert len(list((tmp_path / "t" / "versions").glob("*/*"))) <= 2 + 4 + 3 + 3
    assert len(list((tmp_path / "t" / "versions").glob("0*"))) <= 7


def test_delete__leads_back_to_the_tree_without_the_leaf(tmp_path: Path) -> None:
    tree = made(tmp_path / "t", 11)
    before = tree.coreset()
    tree.append(day(77, 500), name="bad")
    assert not WeightedPoints.equals(before, tree.coreset())
    tree.delete("bad")
    assert WeightedPoints.equals(before, tree.coreset())
    assert tree.leaves == made(tmp_path / "u", 11).leaves


def test_tree__same_history_same_bits_and_reopened(tmp_path: Path) -> None:
    def history(path: Path, reopen: bool) -> CoresetTree:
        tree = made(path, 5)
        for step in range(3):
            tree = CoresetTree.open(path) if reopen else tree
            if step == 0:
                tree.replace("day 2", day(50, 80))
            elif step == 1:
                tree.delete(["day 0", "day 3"])
            else:
                tree.append(day(51), name="new")
        return tree

    one, two = history(tmp_path / "a", False), history(tmp_path / "b", True)
    assert WeightedPoints.equals(one.coreset(), two.coreset())
    assert one.leaves == two.leaves
    two.verify()


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


def test_append__out_of_core_labels_and_dropped_rows(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[5] = np.nan
    y = np.where(X[:, 0] > 0, "up", "down")
    tree = made(tmp_path / "t", on_invalid="drop")
    lazy = [da.from_array(part, chunks=(400, *part.shape[1:])) for part in (X, y)]
    assert tree.append(*lazy).n_dropped == 1
    tree.append(X[100:200], y[100:200])
    c = tree.coreset()
    assert c.provenance["n"] == 3099
    every = np.concatenate([X, X[100:200]])
    assert (c.points == every[c.indices]).all()
    assert c.labels is not None
    assert set(c.labels) == {"up", "down"}
    frame = pd.DataFrame(X[:50], columns=["a", "b"]).fillna(0.0)
    named = made(tmp_path / "named")
    named.append(frame)
    assert named.coreset(normalize=True).provenance["columns"] == ("a", "b")


# --- bad input -----------------------------------------------------------------------------


def test_append__names_of_labels_and_weights_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(40.0), "y": np.arange(40) % 2, "w": np.full(40, 2.0)})
    frame.to_parquet(tmp_path / "rows.parquet")
    tree = CoresetTree.create(tmp_path / "tree", size=10, random_state=0)
    # Rows in memory have none: such a tree is kept as it was before there were names.
    tree.append(frame[["a"]].to_numpy(), frame["y"], frame["w"])
    form: Any = tree._manifest.to_json()["form"]
    assert "keys" not in form
    old = persistence.RowSchema.from_json(form)
    assert old == tree._manifest.schema
    assert not {"y", "sample_weight"} & {*tree.coreset().provenance}
    with pytest.warns(CoresetWarning, match="had no names"):
        tree.append(tmp_path / "rows.parquet", "y", "w")
    names = {"y": "y", "sample_weight": "w"}
    for found in (tree, CoresetTree.open(tmp_path / "tree")):
        assert names.items() <= dict(found.coreset().provenance).items()
    tree.append(frame[["a"]], frame["y"], frame["w"])
    assert names.items() <= dict(tree.coreset().provenance).items()


def test_changes__bad_input_changes_nothing(tmp_path: Path) -> None:
    tree = made(tmp_path / "t", 3)
    before = tree.coreset()
    bad = np.full((9, 2), np.nan)
    wrong: Any = 7
    for call, error, match in (
        (lambda: tree.append(day(1), name="day 1"), InvalidInputError, "a leaf 'day 1' already"),
        (lambda: tree.append(day(1), name=""), InvalidInputError, "name is empty"),
        (lambda: tree.append(day(1), name=wrong), InvalidTypeError, "name is an int"),
        (lambda: tree.append(day(1), time=[1]), InvalidTypeError, "time is a list"),
        (lambda: tree.append(day(1), time=np.datetime64("NaT")), InvalidInputError, "time is NaT"),
        (lambda: tree.append(day(1), time=float("nan")), InvalidInputError, "time is nan"),
        (
            lambda: tree.append(day(1), time="monday"),
            InvalidInputError,
            "'monday', which is no date",
        ),
        (lambda: tree.append(day(1), time=np.inf), InvalidInputError, "'inf', which is no date"),
        (
            lambda: tree.replace("day 1", day(1), time="now"),
            InvalidInputError,
            "'now', which is no",
        ),
        (lambda: tree.append(np.ones((9, 3))), InvalidInputError, "X has 3 features"),
        (lambda: tree.append(day(1), np.ones(60)), InvalidInputError, "y is given"),
        (lambda: tree.append(bad), InvalidInputError, "X contains NaN"),
        (lambda: tree.append(np.empty((0, 3))), InvalidInputError, "X has 3 features"),
        (lambda: tree.replace("day 9", day(1)), InvalidInputError, "there is no leaf 'day 9'"),
        (lambda: tree.delete("day 9"), InvalidInputError, "there is no leaf 'day 9'"),
        (lambda: tree.delete([]), InvalidInputError, "leaves is empty"),
        (lambda: tree.coreset(["day 1", "day 1"]), InvalidInputError, "names 'day 1' twice"),
        (
            lambda: tree.coreset([wrong]),
            InvalidTypeError,
            "leaves holds 7; pass names, .* as one number or a slice",
        ),
        (lambda: tree.coreset(slice("day 2", "day 1")), InvalidInputError, "back to"),
        (lambda: tree.coreset(slice("day 0", None, 2)), InvalidInputError, "slice with step"),
        (lambda: tree.locate(np.array([180])), InvalidInputError, "the leaves have 180 rows"),
        (lambda: made(tmp_path / "t"), StoreError, "exists; CoresetTree.open"),
        (lambda: made(tmp_path / "u", size=0), InvalidInputError, "size must be at least 1"),
    ):
        with pytest.raises(error, match=match):
            call()
    assert tree.version == 3
    assert WeightedPoints.equals(before, CoresetTree.open(tmp_path / "t").coreset())


def test_tree__without_leaves(tmp_path: Path) -> None:
    tree = made(tmp_path / "t")
    for opened in (tree, CoresetTree.open(tmp_path / "t")):
        assert len(opened) == opened.depth == opened.version == 0
        with pytest.raises(InvalidInputError, match="has no leaves"):
            opened.coreset()
    tree.append(day(0))
    tree.delete("leaf-0")
    again = CoresetTree.open(tmp_path / "t")
    assert (len(again), again.version) == (0, 2)
    assert again.append(day(0)).name == "leaf-1"


# --- the disk ------------------------------------------------------------------------------


def test_repr__counts_the_leaves(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "t", size=20, random_state=0)
    for count in ("0 leaves", "1 leaf", "2 leaves"):
        assert f"{count}, size 20" in repr(tree)
        tree.append(day(0))


def test_changes__of_two_writers_one_wins(tmp_path: Path, monkeypatch: Any) -> None:
    tree = made(tmp_path / "t", 3)
    refuse_late_writers(tree, lambda: CoresetTree.open(tmp_path / "t"))
    # Both past the first look: the rename decides.
    rivals = [CoresetTree.open(tmp_path / "t") for _ in range(2)]
    barrier, results = threading.Barrier(2), []

    def together(*args: Any) -> Any:
        barrier.wait()
        return commit(*args)

    monkeypatch.setattr(versions, "commit", together)

    def write(tree: CoresetTree, name: str) -> None:
        try:
            tree.append(day(9), name=name)
            results.append(name)
        except StoreError as error:
            results.append(str(error))

    threads = [
        threading.Thread(target=write, args=(t, n)) for t, n in zip(rivals, "ab", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum("another writer" in result for result in results) == 1
    last = CoresetTree.open(tmp_path / "t")
    assert last.leaves.names[-1] in results
    last.verify()


def test_open__damage_and_other_versions(tmp_path: Path, monkeypatch: Any) -> None:
    made(tmp_path / "t", 2)
    files = [p for p in (tmp_path / "t").rglob("*") if p.is_file() and p.name != ".lock"]
    assert len(files) > 15
    for file in files:
        content = file.read_bytes()
        flipped = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
        for damaged in (content[: len(content) // 2], flipped, None):
            if damaged is None:
                file.unlink()
            else:
                file.write_bytes(damaged)
            with pytest.raises(StoreError):
                CoresetTree.open(tmp_path / "t").verify()
        file.write_bytes(content)
    CoresetTree.open(tmp_path / "t").verify()
    with pytest.raises(StoreError):
        CoresetTree.open(tmp_path / "nowhere")
    monkeypatch.setattr(persistence, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(persistence, "OLDEST_VERSION", 3)
    with pytest.raises(StoreError, match="schema version 2 instead of 3"):
        CoresetTree.open(tmp_path / "t")


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


KILLED = """
from pathlib import Path
import numpy as np
from daskcoreset import CoresetTree, WeightedPoints

def day(i):
    return np.random.default_rng(i).normal(i, 1.0, size=(50, 2))

def step(tree, i):
    if i % 3 == 2:
        tree.replace(tree.leaves[-1].name, day(100 + i))
    elif i % 5 == 4:
        tree.delete(tree.leaves[0].name)
    else:
        tree.append(day(i), name=f"{i}")

def opened(path):
    if not Path(path).exists():
        return CoresetTree.create(path, "lightweight", 10, random_state=0)
    return CoresetTree.open(path)

def work(path):
    tree = opened(path)
    for i in range(tree.version, 7):
        step(tree, i)

def report(path):
    import os
    os.fsync = lambda *_: None  # what is compared with need not last
    if not Path(path).exists():
        return -1
    tree = CoresetTree.open(path)
    tree.verify()
    import shutil
    shutil.rmtree(path + "-again", ignore_errors=True)
    again = opened(path + "-again")
    for i in range(tree.version):
        step(again, i)
    assert again.leaves == tree.leaves
    if len(tree):
        assert WeightedPoints.equals(again.coreset(), tree.coreset())
    return tree.version
"""


@pytest.mark.slow
@pytest.mark.parametrize("timed", [pytest.param(True, marks=pytest.mark.nightly), False])
def test_changes__that_are_killed_leave_the_old_tree_or_the_new(
    tmp_path: Path, timed: bool
) -> None:
    """`report` compares, after every kill, with a tree of as many changes made in peace."""
    found = killing.run(KILLED, tmp_path, seed=2, timed=timed, step=97)
    versions = found["reports"]
    assert found["kills"] >= (1 if timed else 2)  # how often, decides the machine
    assert versions == sorted(versions)
    assert versions[-1] == 7
    assert not list((tmp_path / "store" / "versions").glob(".0*"))


@given(changes=st.lists(st.tuples(st.sampled_from("ard"), st.integers(0, 30)), max_size=10))
@settings(max_examples=5)
def test_tree__any_history_gives_the_tree_of_what_is_left(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, int]]
) -> None:
    """Rows of the coreset come from the leaves as they are, with weights that add up."""
    tree = made(tmp_path_factory.mktemp("h") / "t", method="uniform", size=40)
    held: dict[str, Any] = {}
    for number, (what, which) in enumerate(changes):
        names = list(held)
        if what == "a" or not names:
            held[f"{number}"] = day(which, 20 + which)
            tree.append(held[f"{number}"], name=f"{number}")
        elif what == "r":
            held[names[which % len(names)]] = day(which + 50, 30)
            tree.replace(names[which % len(names)], day(which + 50, 30))
        else:
            del held[names[which % len(names)]]
            tree.delete(names[which % len(names)])
    assert tree.leaves.names == list(held)
    if held:
        c = tree.coreset()
        rows = np.concatenate(list(held.values()))
        assert (c.points == rows[c.indices]).all()
        np.testing.assert_allclose(c.weights.sum(), len(rows))


def test_coreset__of_rows_that_were_all_left_out(tmp_path: Path) -> None:
    tree = CoresetTree.create(tmp_path / "t", size=5, random_state=0, on_invalid="drop")
    tree.append(np.full((3, 2), np.nan))
    with pytest.raises(InvalidInputError, match="all were left out as not finite"):
        tree.coreset()
