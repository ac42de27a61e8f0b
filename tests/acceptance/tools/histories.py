"""State machines of stored trees and streams, against plain models, on a disk that fails.

The same changes in peace are the other judge: what is stored has their bits.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from obstore.store import MemoryStore
from zarr.storage import ObjectStore

from tests.acceptance.face import (
    Coreset,
    CoresetStream,
    CoresetTree,
    MergeReduce,
    WeightedPoints,
    create_tree,
    errors,
    stream as make_stream,
)
from tests.acceptance.tools.disk import Connection, Disk, Fault, Killed, faults
from tests.acceptance.tools.object_stores import Objects

MAX_LEAVES = 7

# Coresets of the one size reduce; those of the other keep every row, which is compared exactly:
# histories have fewer rows.
EXACT = 5000
SIZES = st.sampled_from([3, EXACT])

# Independent draws need no order of the rows, whose loops would be compiled.
OPTIONS: dict[str, Any] = {
    "method": "uniform",
    "draw": MergeReduce(sampling="multinomial"),
    "random_state": 1,
}


@dataclass(frozen=True)
class Held:
    """A leaf, or a batch, as it must come back."""

    name: str
    first: int
    n: int

    @property
    def rows(self) -> Any:
        """No two rows are alike, so that one that is lost or doubled is seen."""
        numbers = np.arange(self.first, self.first + self.n, dtype=float)
        return np.column_stack([numbers, numbers % 5])

    @property
    def weights(self) -> Any:
        """Some rows count more than others."""
        return 1.0 + np.arange(self.first, self.first + self.n) % 3


def _memory_disk() -> str | None:
    # Faults are simulated, and what is on this disk is deleted by the test.
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def files_of(folder: Path) -> list[str]:
    """Return the names of all files."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Change:
    """A change of a tree, or a batch for a stream."""

    what: str
    leaf: Held
    also: tuple[str, ...] = ()

    def apply(self, tree: Any) -> None:
        """Make it."""
        leaf = self.leaf
        if self.what == "feed":
            tree.partial_fit(leaf.rows, sample_weight=leaf.weights)
        elif self.what == "delete":
            tree.delete([leaf.name, *self.also])
        elif self.what == "replace":
            tree.replace(leaf.name, leaf.rows, sample_weight=leaf.weights)
        else:
            tree.append(leaf.rows, sample_weight=leaf.weights, name=leaf.name)

    def after(self, model: tuple[Held, ...]) -> tuple[Held, ...]:
        """Return the leaves after it."""
        if self.what in {"append", "feed"}:
            return (*model, self.leaf)
        gone = {self.leaf.name, *self.also}
        if self.what == "delete":
            return tuple(held for held in model if held.name not in gone)
        return tuple(self.leaf if held.name == self.leaf.name else held for held in model)


class History(RuleBasedStateMachine):
    """Something stored under changes, reopening, rivals and faults, and the same in peace."""

    disk: Disk
    seen: Counter[str]
    held: Any
    peaceful: Any

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="history-", dir=_memory_disk()))
        self.path = self.folder / "store"
        self.numbers = 0
        self.disk.calls = 20  # alike in every example, so that one that fails can be repeated

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # --- what it is, and where -----------------------------------------------------------

    def make(self, place: Any) -> Any:
        """Make it at a place."""
        raise NotImplementedError

    def load(self, place: Any) -> Any:
        """Open it."""
        raise NotImplementedError

    def state(self, held: Any) -> Any:
        """Return a number that every change makes larger, and what must be alike in peace."""
        raise NotImplementedError

    def planned(self, model: tuple[Held, ...], what: int, n: int) -> Change:
        """Return a change that fits the model."""
        raise NotImplementedError

    @property
    def place(self) -> Any:
        """Where it is."""
        return self.path

    def exists(self) -> bool:
        """Whether there is something."""
        return self.path.exists()

    def goes_on(self, fault: Fault) -> bool:
        """Whether a change that was refused is known not to have been made."""
        assert fault.kind in {"full", "broken"}
        return True

    def swept(self, fault: Fault) -> None:
        """Nothing lies there but what lies there after the same changes in peace."""
        if fault.kind != "broken":
            assert files_of(self.path) == files_of(self.folder / "peaceful")

    def may_write(self) -> bool:
        """Whether a rival would not have to wait for the one that is writing."""
        for path in self.path.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    except BlockingIOError:
                        return False
        return True

    # --- steps ---------------------------------------------------------------------------

    @initialize(size=SIZES, fault=faults("killed", "data lost", "power cut", "full", "interrupted"))
    def create(self, size: int, fault: Fault) -> None:
        self.options = {**OPTIONS, "size": size}
        self.exact = size == EXACT
        outcome = self.attempt(lambda: self.make(self.place), fault, lambda: None)
        if outcome != "done":
            assert not self.exists() or self.version(self.open()) == 0
            if not self.exists():
                self.make(self.place)
        self.held = self.open()
        # The same changes in peace: what is stored must be the same, bit by bit.
        self.peaceful = self.make(self.folder / "peaceful")
        self.model: tuple[Held, ...] = ()

    def begin(self) -> None:
        """Make it, in peace."""
        self.create(size=EXACT, fault=Fault())

    def go_on(self, number: int, fault: Fault) -> None:
        """Make the change of a number, with a fault."""
        self.change(what=number, n=1 + number % 6, fault=fault, rivals=1 + number % 4)

    @invariant()
    def counted(self) -> None:
        """Count the steps."""
        self.seen["steps"] += 1

    def open(self) -> Any:
        """Open it as it is now."""
        held = self.load(self.place)
        self.seen["stores opened"] += 1
        return held

    def version(self, held: Any) -> int:
        """Return the number that every change makes larger."""
        return int(self.state(held)[0])

    def rows_of(self, name: str, n: int) -> Held:
        """Return rows that were not there before."""
        self.numbers += n
        return Held(name, self.numbers - n, n)

    def attempt(self, work: Callable[[], Any], fault: Fault, rival: Callable[[], None]) -> str:
        """Do the work with a fault; say how it ended."""
        outcome = "done"
        try:
            with self.disk.armed(self.folder, fault, rival):
                work()
        except Killed:
            outcome = "killed"
        except KeyboardInterrupt:
            outcome = "interrupted"
        except errors.StoreError:
            outcome = "refused"
        self.seen[f"{fault.kind}: {outcome}"] += 1
        return outcome

    @rule(
        what=st.integers(0, 99),
        n=st.integers(1, 6),
        fault=faults("killed", "data lost", "power cut", "full", "broken", "rival", "interrupted"),
        rivals=st.integers(1, 4),
    )
    def change(self, what: int, n: int, fault: Fault, rivals: int) -> None:
        change = self.planned(self.model, what, n)
        before, version = self.model, self.version(self.held)
        by_rival: list[Change] = []
        overtaken = False

        def rival() -> None:
            nonlocal overtaken
            if not self.may_write():
                return
            other = self.open()
            overtaken = self.version(other) == version
            model = before if overtaken else change.after(before)
            for number in range(rivals):
                by_rival.append(self.planned(model, what + 2 * number, n))
                by_rival[-1].apply(other)
                model = by_rival[-1].after(model)

        outcome = self.attempt(lambda: change.apply(self.held), fault, rival)
        if overtaken:
            assert outcome == "refused"
            self.advance(by_rival)
            self.held = self.open()
        elif outcome == "done":
            self.advance([change, *by_rival])
            if by_rival:
                self.refused_when_stale(self.held)
                self.held = self.open()
        elif outcome == "interrupted" or (outcome == "refused" and self.goes_on(fault)):
            self.go_on_with_the_same(outcome, change)
        else:
            self.held = self.open()
            made = self.version(self.held) > version
            # All that a change did is there once it has returned.
            assert made or not self.disk.finished
            self.advance([change] if made else [])
        self.matches()
        if outcome == "done" and not by_rival:
            self.swept(fault)

    def go_on_with_the_same(self, outcome: str, change: Change) -> None:
        """The same object goes on; after an interrupt it knows whether the change was made."""
        assert self.version(self.open()) == self.version(self.held)
        made = self.version(self.held) > self.version(self.peaceful)
        assert not (made and outcome == "refused")
        if not made:
            self.matches()
            change.apply(self.held)
        self.advance([change])

    def refused_when_stale(self, held: Any) -> None:
        """Whoever was overtaken is told so."""
        with pytest.raises(errors.StoreError, match="another writer has changed it"):
            Change("feed", self.rows_of("", 1)).apply(held)

    def advance(self, changes: list[Change]) -> None:
        """Make the changes that were made in the model and in peace."""
        for change in changes:
            change.apply(self.peaceful)
            self.model = change.after(self.model)

    def matches(self) -> None:
        """It is what it must be: counts, order, rows and weights, to the last bit."""
        assert self.state(self.held) == self.state(self.peaceful)
        self.seen["versions compared"] += 1
        if self.model:
            coreset = self.held.coreset()
            assert WeightedPoints.equals(coreset, self.peaceful.coreset())
            self.same_rows(coreset, self.model, 0)

    def same_rows(self, coreset: Coreset, model: tuple[Held, ...], offset: int) -> None:
        """Compare with the rows of the model, no two of which are alike."""
        assert coreset.provenance["n"] == sum(held.n for held in model)
        if self.exact:
            order = np.argsort(coreset.indices)
            rows = np.concatenate([held.rows for held in model])
            weights = np.concatenate([held.weights for held in model])
            assert coreset.indices[order].tolist() == [*range(offset, offset + len(rows))]
            assert (coreset.points[order] == rows).all()
            assert (coreset.weights[order] == weights).all()
        self.seen["rows compared"] += len(coreset)

    def wrong(self) -> list[Callable[[], Any]]:
        """Return changes that are refused."""
        bad = [np.full((2, 2), np.nan), np.ones((2, 3 if self.model else 0))]
        return [partial(self.held.partial_fit, rows) for rows in bad]

    @rule(what=st.sampled_from(["reopen", "bad change"]))
    def look(self, what: str) -> None:
        if what == "reopen":
            self.held = self.open()
        else:
            for change in self.wrong():
                with pytest.raises(errors.InvalidInputError):
                    change()
        self.matches()


class TreeHistory(History):
    """A `CoresetTree`, whose windows and older readers are read, too."""

    reader: tuple[Any, tuple[Held, ...]] = (None, ())

    def make(self, place: Any) -> CoresetTree:
        return create_tree(place, **self.options)

    def load(self, place: Any) -> CoresetTree:
        return CoresetTree.open(place)

    def state(self, held: CoresetTree) -> Any:
        return (held.version, held.leaves)

    def matches(self) -> None:
        super().matches()
        leaves = [(x.name, x.rows, x.weight) for x in self.held.leaves]
        assert leaves == [(x.name, x.n, float(x.weights.sum())) for x in self.model]

    def planned(self, model: tuple[Held, ...], what: int, n: int) -> Change:
        kind = ("append", "append", "replace", "replace", "delete")[what % 5]
        if not model or (kind == "append" and len(model) < MAX_LEAVES):
            return Change("append", self.rows_of(f"leaf {self.numbers}", n))
        old = model[what // 5 % len(model)]
        if kind == "replace":
            return Change("replace", self.rows_of(old.name, n))
        also = () if n % 2 else (model[n % len(model)].name,)
        return Change("delete", old, tuple(name for name in also if name != old.name))

    def wrong(self) -> list[Callable[[], Any]]:
        made: list[Callable[[], Any]] = [*super().wrong(), partial(self.held.delete, "nobody")]
        if self.model:
            made.append(partial(self.held.append, np.ones((2, 2)), name=self.model[0].name))
        return made

    @precondition(lambda self: self.model)
    @rule(first=st.integers(0, 20), length=st.integers(0, 20))
    def window(self, first: int, length: int) -> None:
        first %= len(self.model)
        last = first + length % (len(self.model) - first)
        chosen, leaves = (
            self.model[first : last + 1],
            slice(*(self.model[i].name for i in (first, last))),
        )
        coreset = self.held.coreset(leaves)
        assert WeightedPoints.equals(coreset, self.peaceful.coreset(leaves))
        self.same_rows(coreset, chosen, sum(held.n for held in self.model[:first]))
        names, numbers = self.held.locate(np.sort(coreset.indices))
        if self.exact:
            assert names == [held.name for held in chosen for _ in range(held.n)]
            assert numbers.tolist() == [row for held in chosen for row in range(held.n)]

    @rule(keep=st.sampled_from([True, False, False]))
    def read_as_it_was(self, keep: bool) -> None:
        """A tree that was opened one change ago is read; an older one, or says that it is."""
        self.open().verify()
        if keep:
            self.reader = (self.open(), self.model)
        tree, model = self.reader
        if not model:
            return
        try:
            self.same_rows(tree.coreset(), model, 0)
        except errors.StoreError as error:
            assert "has changed since it was opened" in str(error)  # noqa: PT017 - or the coreset
            assert tree.version < self.held.version - 1
        if tree.version != self.held.version:
            self.refused_when_stale(tree)


class StreamHistory(History):
    """A `CoresetStream`, which is saved elsewhere, too."""

    def make(self, place: Any) -> CoresetStream:
        leaf_size = {} if self.exact else {"leaf_size": 10}
        return make_stream(**self.options, **leaf_size, store=place)

    def load(self, place: Any) -> CoresetStream:
        return CoresetStream.load(place)

    def state(self, held: CoresetStream) -> Any:
        return (held.n_rows, held.total_weight, held.n_held)

    def matches(self) -> None:
        super().matches()
        weight = sum(float(held.weights.sum()) for held in self.model)
        n_rows = sum(held.n for held in self.model)
        assert self.state(self.held)[:2] == (n_rows, weight)
        assert not self.exact or self.held.n_held == n_rows

    def planned(self, model: tuple[Held, ...], what: int, n: int) -> Change:
        del model
        return Change("feed", self.rows_of("", n + what % 4))

    def elsewhere(self) -> Any:
        """Return a place where nothing is."""
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        return self.folder / "copy"

    @rule(fault=faults("killed", "data lost", "power cut", "full", "broken", "interrupted"))
    def copy(self, fault: Fault) -> None:
        """Save it elsewhere: nothing is there, or all of it."""
        target = self.elsewhere()
        outcome = self.attempt(lambda: self.held.save(target), fault, lambda: None)
        try:
            assert self.state(CoresetStream.load(target)) == self.state(self.held)
        except errors.StoreError:
            assert outcome != "done"
        self.matches()


class Remote(History):
    """A place on an object store, whose connection breaks."""

    disk: Connection  # type: ignore[assignment] # fails at requests in place of calls
    lost = 0  # requests, or answers to them

    def __init__(self) -> None:
        super().__init__()
        self.objects = ObjectStore(MemoryStore())

    @property
    def place(self) -> Any:
        return self.objects

    def keys(self) -> list[str]:
        """Return the names of all objects."""
        return Objects(self.objects.store).names()

    def exists(self) -> bool:
        """Whether there is a root: without one, the next writer makes it."""
        return "zarr.json" in self.keys()

    def may_write(self) -> bool:
        """Nobody waits for anybody."""
        return True

    def goes_on(self, fault: Fault) -> bool:
        """Where the connection is gone, nobody knows whether the last request was done."""
        assert fault.kind == "full"
        return False

    def attempt(self, work: Callable[[], Any], fault: Fault, rival: Callable[[], None]) -> str:
        self.lost += fault.kind == "full"
        return super().attempt(work, fault, rival)


class RemoteTreeHistory(Remote, TreeHistory):
    """A tree on an object store."""

    def swept(self, fault: Fault) -> None:
        """The root, manifests of two versions, and the nodes that they need."""
        if fault.kind == "none":
            assert len(self.keys()) <= 4 + 2 * (2 * len(self.model) + 3)


class RemoteStreamHistory(Remote, StreamHistory):
    """A stream on an object store."""

    def elsewhere(self) -> Any:
        return ObjectStore(MemoryStore())

    def swept(self, fault: Fault) -> None:
        """The root, and the states of two versions.

        What a lost connection has left with one of them goes when it goes.
        """
        if fault.kind == "none":
            assert len({key.rpartition("/")[0] for key in self.keys()}) <= 3
            assert len(self.keys()) <= 3 + self.lost
