"""State machines of stored trees and streams, against plain models, on a disk that fails."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from obstore.store import MemoryStore
from zarr.storage import ObjectStore

from tests.acceptance.face import (
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


class History(RuleBasedStateMachine):
    """What trees and streams have in common: a folder on a disk that fails, and counters."""

    disk: Disk
    seen: Counter[str]

    def sweeps(self, fault: Fault) -> bool:
        """Whether a change that was made has also removed what is no longer needed."""
        return fault.kind != "broken"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="history-", dir=_memory_disk()))
        self.path = self.folder / "store"
        self.numbers = 0
        self.disk.calls = 20  # alike in every example, so that one that fails can be repeated

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @invariant()
    def counted(self) -> None:
        """Count the steps."""
        self.seen["steps"] += 1

    def begin(self) -> None:
        """Make it, in peace."""
        raise NotImplementedError

    def go_on(self, number: int, fault: Fault) -> None:
        """Make the change of a number, with a fault."""
        raise NotImplementedError

    def held(self, name: str, n: int) -> Held:
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
        except errors.InvalidInputError:
            outcome = "invalid"
        self.seen[f"{fault.kind}: {outcome}"] += 1
        return outcome

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


def _memory_disk() -> str | None:
    # Faults are simulated, and what is on this disk is deleted by the test.
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108


def files_of(folder: Path) -> list[str]:
    """Return the names of all files."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@dataclass(frozen=True)
class Change:
    """A change of a tree."""

    what: str
    leaf: Held
    also: tuple[str, ...] = ()

    def apply(self, tree: CoresetTree) -> None:
        """Make it."""
        leaf = self.leaf
        if self.what == "delete":
            tree.delete([leaf.name, *self.also])
        elif self.what == "replace":
            tree.replace(leaf.name, leaf.rows, sample_weight=leaf.weights)
        else:
            tree.append(leaf.rows, sample_weight=leaf.weights, name=leaf.name)

    def after(self, model: tuple[Held, ...]) -> tuple[Held, ...]:
        """Return the leaves after it."""
        if self.what == "append":
            return (*model, self.leaf)
        gone = {self.leaf.name, *self.also}
        if self.what == "delete":
            return tuple(held for held in model if held.name not in gone)
        return tuple(self.leaf if held.name == self.leaf.name else held for held in model)


class TreeHistory(History):
    """A `CoresetTree` under changes, windows, reopening, rivals and faults."""

    @initialize(size=SIZES, fault=faults("killed", "data lost", "power cut", "full", "interrupted"))
    def create(self, size: int, fault: Fault) -> None:
        self.options = {**OPTIONS, "size": size}
        self.exact = size == EXACT
        outcome = self.attempt(self._create, fault, lambda: None)
        if outcome != "done":
            assert not self.exists() or not self.open().leaves
            if not self.exists():
                self._create()
        self.tree = self.open()
        # The same changes in peace: its nodes are those that the store must hold, bit by bit.
        self.peaceful = create_tree(self.folder / "peaceful", **self.options)
        self.model: tuple[Held, ...] = ()
        self.reader: tuple[CoresetTree, tuple[Held, ...]] = (self.tree, ())

    @property
    def place(self) -> Any:
        """Where the tree is."""
        return self.path

    def exists(self) -> bool:
        """Whether there is something."""
        return self.path.exists()

    def open(self) -> CoresetTree:
        """Open the tree as it is now."""
        tree = CoresetTree.open(self.place)
        self.seen["stores opened"] += 1
        return tree

    def _create(self) -> None:
        create_tree(self.place, **self.options)

    def begin(self) -> None:
        self.create(size=EXACT, fault=Fault())

    def go_on(self, number: int, fault: Fault) -> None:
        self.change(what=number, n=1 + number % 6, fault=fault, rivals=1 + number % 4)
        self.open().verify()

    def changes(self, model: tuple[Held, ...], what: int, n: int) -> Change:
        """Return a change that fits the model."""
        kind = ("append", "append", "replace", "replace", "delete")[what % 5]
        if not model or (kind == "append" and len(model) < MAX_LEAVES):
            return Change("append", self.held(f"leaf {self.numbers}", n))
        old = model[what // 5 % len(model)]
        if kind == "replace":
            return Change("replace", self.held(old.name, n))
        also = () if n % 2 else (model[n % len(model)].name,)
        return Change("delete", old, tuple(name for name in also if name != old.name))

    @rule(
        what=st.integers(0, 99),
        n=st.integers(1, 6),
        fault=faults("killed", "data lost", "power cut", "full", "broken", "rival", "interrupted"),
        rivals=st.integers(1, 4),
    )
    def change(self, what: int, n: int, fault: Fault, rivals: int) -> None:
        change = self.changes(self.model, what, n)
        before, done = self.model, change.after(self.model)
        by_rival: list[Change] = []
        overtaken, version = False, self.tree.version

        def rival() -> None:
            nonlocal overtaken
            if not self.may_write():
                return
            tree = self.open()
            overtaken = tree.version == version
            model = before if overtaken else done
            for number in range(rivals):
                other = self.changes(model, what + 2 * number, n)
                other.apply(tree)
                model = other.after(model)
                by_rival.append(other)

        outcome = self.attempt(lambda: change.apply(self.tree), fault, rival)
        if outcome == "killed":
            self.tree = self.open()
            finished = self.tree.version == self.peaceful.version + 1
            assert finished or self.tree.version == self.peaceful.version
            # All that a change did is there once it has returned.
            assert finished or not self.disk.finished
            self.advance([change] if finished else [])
        elif overtaken:
            assert outcome == "refused"
            self.advance(by_rival)
            self.tree = self.open()
        elif outcome == "done":
            self.advance([change, *by_rival])
            if by_rival:
                self.refused_when_stale()
        else:
            self.go_on_after(outcome, change, fault, version)
        self.matches()
        if outcome != "done" and self.model:
            self.same_window(self.tree, self.model, 0, len(self.model) - 1)
        if outcome == "done" and not by_rival and self.sweeps(fault):
            self.swept()

    def go_on_when_refused(self, change: Change, fault: Fault) -> None:
        """The tree is as it was, and the change can be made again."""
        assert fault.kind in {"full", "broken"}
        self.matches()
        change.apply(self.tree)
        self.advance([change])

    def go_on_after(self, outcome: str, change: Change, fault: Fault, version: int) -> None:
        """The same object goes on; after an interrupt it knows whether the change was made."""
        if outcome == "refused":
            self.go_on_when_refused(change, fault)
            return
        assert outcome == "interrupted"
        assert self.open().version == self.tree.version
        if self.tree.version == version:
            self.matches()
            change.apply(self.tree)
        self.advance([change])

    def refused_when_stale(self) -> None:
        with pytest.raises(errors.StoreError, match="another writer has changed it"):
            self.tree.append(np.ones((1, 2)))
        self.tree = self.open()

    def advance(self, changes: list[Change]) -> None:
        """Make the changes that were made in the model and in peace."""
        for change in changes:
            change.apply(self.peaceful)
            self.model = change.after(self.model)

    def matches(self) -> None:
        """The tree is what it must be: leaves, their order, rows and weights, and nodes."""
        leaves = [(x.name, x.rows, x.weight) for x in self.tree.leaves]
        assert leaves == [(x.name, x.n, float(x.weights.sum())) for x in self.model]
        assert self.tree.leaves == self.peaceful.leaves
        assert self.tree.version == self.peaceful.version
        self.seen["versions compared"] += 1

    def swept(self) -> None:
        """Nothing lies there but what lies there after the same changes in peace."""
        assert files_of(self.path) == files_of(self.folder / "peaceful")

    @precondition(lambda self: self.model)
    @rule(first=st.integers(0, 20), length=st.integers(0, 20))
    def window(self, first: int, length: int) -> None:
        first %= len(self.model)
        self.same_window(self.tree, self.model, first, first + length % (len(self.model) - first))

    def same_window(
        self, tree: CoresetTree, model: tuple[Held, ...], first: int, last: int
    ) -> None:
        leaves = slice(model[first].name, model[last].name)
        coreset = tree.coreset(leaves)
        chosen = model[first : last + 1]
        assert coreset.provenance["n"] == sum(held.n for held in chosen)
        if tree is self.tree:
            assert WeightedPoints.equals(coreset, self.peaceful.coreset(leaves))
        if self.exact:
            order = np.argsort(coreset.indices)
            offset = sum(held.n for held in model[:first])
            rows = np.concatenate([held.rows for held in chosen])
            assert coreset.indices[order].tolist() == [*range(offset, offset + len(rows))]
            assert (coreset.points[order] == rows).all()
            weights = np.concatenate([held.weights for held in chosen])
            assert (coreset.weights[order] == weights).all()
            names, numbers = tree.locate(coreset.indices[order])
            assert names == [held.name for held in chosen for _ in range(held.n)]
            assert numbers.tolist() == [row for held in chosen for row in range(held.n)]
        if self.exact or tree is self.tree:
            self.seen["rows compared"] += len(coreset)

    @rule(what=st.sampled_from(["reopen", "verify", "bad change", "keep reader", "read", "read"]))
    def look(self, what: str) -> None:
        if what == "reopen":
            self.tree = self.open()
            self.matches()
        elif what == "verify":
            self.open().verify()
        elif what == "bad change":
            self.bad_change()
        elif what == "keep reader":
            self.reader = (self.open(), self.model)
        else:
            self.read_as_it_was()

    def read_as_it_was(self) -> None:
        """A tree that was opened one change ago is read; an older one, or says that it is."""
        tree, model = self.reader
        if not model:
            return
        try:
            self.same_window(tree, model, 0, len(model) - 1)
        except errors.StoreError as error:
            assert "has changed since it was opened" in str(error)  # noqa: PT017 - or the coreset
            assert tree.version < self.tree.version - 1
        if tree.version != self.tree.version:
            with pytest.raises(errors.StoreError, match="another writer has changed it"):
                tree.append(np.ones((1, 2)))

    def bad_change(self) -> None:
        bad = np.full((2, 2), np.nan)
        wrong: list[Callable[[], Any]] = [
            lambda: self.tree.append(bad),
            lambda: self.tree.delete("nobody"),
        ]
        if self.model:
            wrong += [
                lambda: self.tree.append(np.ones((2, 3))),
                lambda: self.tree.append(np.ones((2, 2)), name=self.model[0].name),
            ]
        for change in wrong:
            with pytest.raises(errors.InvalidInputError):
                change()
        self.matches()


class Remote(History):
    """A place on an object store, whose connection breaks."""

    disk: Connection  # type: ignore[assignment] # fails at requests in place of calls

    def __init__(self) -> None:
        super().__init__()
        self.objects = ObjectStore(MemoryStore())

    @property
    def place(self) -> Any:
        """Where it is."""
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

    def sweeps(self, fault: Fault) -> bool:
        """A connection that breaks after the change was made leaves all to the next sweep."""
        return fault.kind == "none"


class RemoteTreeHistory(Remote, TreeHistory):
    """A tree on an object store."""

    def go_on_when_refused(self, change: Change, fault: Fault) -> None:
        """Where the connection is gone, nobody knows whether the last request was done."""
        assert fault.kind == "full"
        self.tree = self.open()
        finished = self.tree.version == self.peaceful.version + 1
        self.advance([change] if finished else [])

    def swept(self) -> None:
        """The root, manifests of two versions, and the nodes that they need."""
        assert len(self.keys()) <= 4 + 2 * (2 * len(self.model) + 3)


class StreamHistory(History):
    """A `CoresetStream` under batches, saving, loading, rivals and faults."""

    @initialize(
        size=SIZES,
        every=st.sampled_from([1, 1, 3]),
        fault=faults("killed", "data lost", "power cut", "full", "interrupted"),
    )
    def create(self, size: int, every: int, fault: Fault) -> None:
        self.options = {**OPTIONS, "size": size}
        self.exact, self.every = size == EXACT, every
        if not self.exact:
            self.options["leaf_size"] = 10
        outcome = self.attempt(self._create, fault, lambda: None)
        if outcome != "done":
            assert not self.exists() or not self.open().n_rows
            if not self.exists():
                self._create()
        self.stream = self.open()
        self.model: tuple[Held, ...] = ()
        self.saved = 0  # batches of the model

    def _create(self) -> None:
        make_stream(**self.options, store=self.place, save_every=self.every)

    @property
    def place(self) -> Any:
        """Where the stream is."""
        return self.path

    def exists(self) -> bool:
        """Whether there is something."""
        return self.path.exists()

    def open(self) -> CoresetStream:
        """Load the stream as it is now."""
        stream = CoresetStream.load(self.place)
        self.seen["stores opened"] += 1
        return stream

    def remove(self) -> None:
        """Remove all that is there."""
        shutil.rmtree(self.path)

    def elsewhere(self) -> Any:
        """Return a place where nothing is."""
        shutil.rmtree(self.folder / "copy", ignore_errors=True)
        return self.folder / "copy"

    def begin(self) -> None:
        self.create(size=3, every=1, fault=Fault())

    def go_on(self, number: int, fault: Fault) -> None:
        sizes = [1 + number % 9, 2, 3][: 1 + number % 3]
        self.take(sizes=sizes, fault=fault, rivals=1 + number % 4)

    def feed(self, stream: CoresetStream, batches: list[Held]) -> None:
        """Feed one batch as it is, and several as an iterator."""
        if len(batches) == 1:
            stream.partial_fit(batches[0].rows, sample_weight=batches[0].weights)
        else:
            stream.partial_fit(iter([(held.rows, None, held.weights) for held in batches]))

    @rule(
        sizes=st.lists(st.integers(1, 9), min_size=1, max_size=3),
        fault=faults("killed", "data lost", "power cut", "full", "broken", "rival", "interrupted"),
        rivals=st.integers(1, 4),
    )
    def take(self, sizes: list[int], fault: Fault, rivals: int) -> None:
        batches = [self.held("", n) for n in sizes]
        by_rival: list[Held] = []
        base = 0

        def rival() -> None:
            nonlocal base
            if not self.may_write():
                return
            stream = self.open()
            base = stream.n_rows
            for _ in range(rivals * self.every):
                held = self.held("", 2)
                self.feed(stream, [held])
                by_rival.append(held)

        before, start, saved = self.model, self.stream.n_rows, self.saved
        outcome = self.attempt(lambda: self.feed(self.stream, batches), fault, rival)
        if by_rival:
            self.yield_to(by_rival, (*before, *batches), base, outcome)
        elif outcome == "killed" or (outcome == "refused" and not self.is_known(fault)):
            self.take_up((*before, *batches))
        elif outcome == "refused":
            assert fault.kind in {"full", "broken"}
            self.model = self.prefix((*before, *batches), self.stream.n_rows)
            rest = batches[len(self.model) - len(before) :]
            assert rest
            self.note_saves(len(before))
            self.feed(self.stream, rest)  # which is as it was, and goes on
            taken_before = len(self.model)
            self.model = (*self.model, *rest)
            self.note_saves(taken_before)
        elif outcome == "interrupted":
            self.go_on_when_interrupted(batches)
        else:
            assert outcome == "done"
            assert self.stream.n_rows == start + sum(sizes)
            self.model = (*before, *batches)
            self.note_saves(len(before))
        self.matches()
        if outcome != "done" and self.model:
            self.same_coreset()
        if outcome == "done" and self.saved > saved and not by_rival and self.sweeps(fault):
            self.swept()

    def go_on_when_interrupted(self, batches: list[Held]) -> None:
        """The same object goes on, and knows which batches it has."""
        before = self.model
        self.model = self.prefix((*before, *batches), self.stream.n_rows)
        self.note_saves(len(before))
        assert self.open().n_rows == sum(held.n for held in self.model[: self.saved])
        if rest := batches[len(self.model) - len(before) :]:
            self.feed(self.stream, rest)
            taken_before = len(self.model)
            self.model = (*self.model, *rest)
            self.note_saves(taken_before)

    def is_known(self, fault: Fault) -> bool:
        """Whether a change that was refused was not made."""
        del fault
        return True

    def take_up(self, everything: tuple[Held, ...]) -> None:
        """Go on from what is stored of all that was taken, and what was saved is there."""
        self.stream = self.open()
        self.model = self.prefix(everything, self.stream.n_rows)
        least = self.saved
        if self.disk.finished:
            least += (len(everything) - self.saved) // self.every * self.every
        assert len(self.model) >= least
        self.saved = len(self.model)

    def yield_to(
        self, by_rival: list[Held], batches: tuple[Held, ...], base: int, outcome: str
    ) -> None:
        """Go on from what a rival made of the stream, which had `base` rows when it came."""
        # What was taken before the rival came was saved, or it was not taken.
        taken = self.prefix(batches, base)
        self.model = (*taken, *by_rival)
        self.saved = len(self.model)
        if outcome == "done":
            # All that was taken was saved before the rival came, or is not said to be.
            assert self.every > 1 or base == sum(held.n for held in batches)
            with pytest.raises(errors.StoreError, match="another writer has changed it"):
                self.stream.save()
        self.load()

    def note_saves(self, before: int) -> None:
        """Work out which batch was the last to be saved."""
        for number in range(before + 1, len(self.model) + 1):
            if number - self.saved >= self.every:
                self.saved = number

    def prefix(self, batches: tuple[Held, ...], n_rows: int) -> tuple[Held, ...]:
        """Return the first batches that have so many rows; there must be such."""
        total, taken = 0, 0
        while total < n_rows:
            total, taken = total + batches[taken].n, taken + 1
        assert total == n_rows
        return batches[:taken]

    def load(self) -> None:
        self.stream = self.open()
        self.model = self.prefix(self.model, self.stream.n_rows)
        assert len(self.model) == self.saved

    def matches(self) -> None:
        """The stream is the same as one fed in peace with all rows at once."""
        n_rows = sum(held.n for held in self.model)
        assert self.stream.n_rows == n_rows
        weight = sum(float(held.weights.sum()) for held in self.model)
        assert self.stream.total_weight == weight
        if self.exact:
            assert self.stream.n_held == n_rows
        self.seen["versions compared"] += 1

    def swept(self) -> None:
        """At most two states, as of one that is saved elsewhere, and nothing else."""
        self.stream.save(self.elsewhere())
        assert len(files_of(self.path)) <= 2 * len(files_of(self.folder / "copy"))

    @rule(what=st.sampled_from(["coreset", "coreset", "load", "bad batch"]))
    def look(self, what: str) -> None:
        if what == "load":
            self.load()
        elif what == "bad batch":
            for bad in (np.full((2, 2), np.nan), np.ones((2, 3 if self.model else 0))):
                with pytest.raises(errors.InvalidInputError):
                    self.stream.partial_fit(bad)
        elif self.model:
            self.same_coreset()
        self.matches()

    def same_coreset(self) -> None:
        rows = np.concatenate([held.rows for held in self.model])
        weights = np.concatenate([held.weights for held in self.model])
        coreset = self.stream.coreset()
        if self.exact:
            assert coreset.indices.tolist() == [*range(len(rows))]
            assert (coreset.points == rows).all()
            assert (coreset.weights == weights).all()
        else:
            peaceful = make_stream(**self.options).partial_fit(rows, sample_weight=weights)
            assert coreset.equals(peaceful.coreset())
        self.seen["rows compared"] += len(coreset)

    @rule(
        fault=faults("killed", "data lost", "power cut", "full", "broken", "interrupted"),
        elsewhere=st.booleans(),
    )
    def save(self, fault: Fault, elsewhere: bool) -> None:
        if elsewhere:
            self.copy(fault)
            return
        outcome = self.attempt(self.stream.save, fault, lambda: None)
        if outcome == "killed" or (outcome == "refused" and not self.is_known(fault)):
            self.stream = self.open()
            n_rows = [sum(held.n for held in self.model[:k]) for k in (self.saved, len(self.model))]
            assert self.stream.n_rows in n_rows[self.disk.finished :]
            self.model = self.prefix(self.model, self.stream.n_rows)
        elif outcome in {"refused", "interrupted"}:
            self.stream.save()
        self.saved = len(self.model)
        self.matches()

    def copy(self, fault: Fault) -> None:
        """Save it elsewhere: nothing is there, or all of it."""
        target = self.elsewhere()
        outcome = self.attempt(lambda: self.stream.save(target), fault, lambda: None)
        try:
            assert CoresetStream.load(target).n_rows == self.stream.n_rows
        except errors.StoreError:
            assert outcome != "done"
        self.matches()

    @precondition(lambda self: len(self.model) > 40)
    @rule()
    def begin_again(self) -> None:
        """Rows must fit into a coreset that keeps all."""
        self.remove()
        self._create()
        self.model, self.saved = (), 0
        self.load()


class RemoteStreamHistory(Remote, StreamHistory):
    """A stream on an object store."""

    lost = 0  # requests, or answers to them

    def remove(self) -> None:
        self.objects = ObjectStore(MemoryStore())

    def elsewhere(self) -> Any:
        return ObjectStore(MemoryStore())

    def is_known(self, fault: Fault) -> bool:
        """Where the connection is gone, nobody knows whether the last request was done."""
        return fault.kind != "full"

    def attempt(self, work: Callable[[], Any], fault: Fault, rival: Callable[[], None]) -> str:
        self.lost += fault.kind == "full"
        return super().attempt(work, fault, rival)

    def swept(self) -> None:
        """The root, and the states of two versions.

        What a lost connection has left with one of them goes when it goes.
        """
        assert len({key.rpartition("/")[0] for key in self.keys()}) <= 3
        assert len(self.keys()) <= 3 + self.lost
