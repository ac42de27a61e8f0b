"""Random histories of a source and its view: changes, kills, and a comparison with a fresh view."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from tests.acceptance.face import CoresetTree, MergeReduce, errors, follow
from tests.acceptance.tools.disk import Disk, Fault, Killed

OPTIONS: dict[str, Any] = {
    "method": "uniform",
    "draw": MergeReduce(sampling="multinomial"),
    "size": 8,
    "random_state": 3,
}

CHUNK = 5


def assert_alike(view: CoresetTree, other: CoresetTree) -> None:
    """Assert that two views have the same leaves and coresets, bit by bit."""
    assert view.leaves == other.leaves
    assert [leaf.node for leaf in view.leaves] == [leaf.node for leaf in other.leaves]
    for window in (slice(0, None), slice(-3, None), slice(0, 1)):
        if not sum(leaf.rows for leaf in view.leaves[window]):
            continue
        one, two = view[window].coreset(), other[window].coreset()
        for name in ("points", "weights", "indices"):
            a, b = getattr(one, name), getattr(two, name)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


class ViewHistory:
    """A source that changes at random, and its view, which is killed at random.

    Parameters
    ----------
    folder : Path
        Empty.
    seed : int
    kind : {"array", "files"}
    disk : Disk
        Installed.
    """

    def __init__(self, folder: Path, seed: int, kind: str, disk: Disk) -> None:
        self.rng = np.random.default_rng(seed)
        self.folder, self.kind, self.disk = folder, kind, disk
        self.seen: Counter[str] = Counter()
        if kind == "array":
            array = zarr.create_array(
                folder / "rows.zarr", shape=(12, 2), chunks=(CHUNK, 2), dtype="f8"
            )
            array[:] = self.rows(12)
            self.source: Any = str(folder / "rows.zarr")
        else:
            (folder / "files").mkdir()
            self.source = str(folder / "files" / "*.npy")
            for _ in range(3):
                self.change()
        self.disk.calls = 20

    def rows(self, n: int) -> Any:
        """Return rows that were not there before."""
        return self.rng.normal(size=(n, 2))

    def change(self) -> None:
        """Append, overwrite, delete or insert rows."""
        what = str(self.rng.choice(["append", "overwrite", "delete", "insert"]))
        self.seen[what] += 1
        (self._change_array if self.kind == "array" else self._change_files)(what)

    def _change_array(self, what: str) -> None:
        array: Any = zarr.open_array(self.folder / "rows.zarr")
        n = array.shape[0]
        if what in {"append", "insert"}:  # also in the middle of a chunk
            more = int(self.rng.integers(1, 12))
            array.resize((n + more, 2))
            array[n:] = self.rows(more)
        elif what == "overwrite":
            start = int(self.rng.integers(n))
            stop = min(n, start + int(self.rng.integers(1, 8)))
            array[start:stop] = self.rows(stop - start)
        else:
            array.resize((max(2, n - int(self.rng.integers(1, 9))), 2))

    def _change_files(self, what: str) -> None:
        folder = self.folder / "files"
        there = sorted(folder.iterdir())
        rows = self.rows(int(self.rng.integers(0, 30)))
        if what == "append" or len(there) < 2:
            np.save(folder / f"{900 + self.rng.integers(100)}.npy", rows)
        elif what == "insert":
            np.save(folder / f"{self.rng.integers(900)}.npy", rows)
        elif what == "overwrite":
            np.save(self.rng.choice(np.array(there)), rows)
        else:
            self.rng.choice(np.array(there)).unlink()

    def follow(self, path: str) -> CoresetTree:
        """Open the view, or make it."""
        place = self.folder / path
        try:
            return follow(self.source, place, **OPTIONS)
        except errors.InvalidInputError:  # it has shrunk
            view = CoresetTree.open(place)
            view.refresh(self.source, allow_shrink=True)
            return view

    def refresh(self) -> None:
        """Bring the view up to date, and be killed where the dice say so."""
        kind = str(self.rng.choice(["none", "killed", "data lost", "power cut"]))
        fault = Fault(kind, float(self.rng.random()))  # type: ignore[arg-type] # one of these
        self.seen[kind] += 1
        try:
            with self.disk.armed(self.folder, fault, lambda: None):
                self.follow("view")
        except Killed:
            self.seen["died"] += 1

    def check(self) -> None:
        """Refresh in peace, and compare with a view that is made from the source as it is."""
        view = self.follow("view")
        view.verify()
        fresh = self.follow("fresh")
        assert_alike(view, fresh)
        assert not view.refresh().read
        shutil.rmtree(self.folder / "fresh")

    def run(self, steps: int) -> Counter[str]:
        """Change and refresh, some times before every comparison."""
        for _ in range(steps):
            for _ in range(int(self.rng.integers(1, 4))):
                self.change()
                self.refresh()
            self.check()
        return self.seen


def run_history(folder: Path, seed: int, kind: str, steps: int = 3) -> Counter[str]:
    """Run one history in a folder of its own, which is removed."""
    home = folder / f"{kind}-{seed}"
    home.mkdir()
    with Disk().installed() as disk:
        seen = ViewHistory(home, seed, kind, disk).run(steps)
    shutil.rmtree(home)
    return seen
