"""Interrupts at every step of a save: the object goes on, from what is there."""

from __future__ import annotations

import copy
import os
import pickle
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np
import pytest

from daskcoreset import Coreset, CoresetStream, CoresetTree, WeightedPoints
from daskcoreset.constructions.tree.leaf_table import LeafTable
from daskcoreset.core.errors import StoreError
from daskcoreset.core.typing import AnyArray
from tests.tools.light_groups import light_groups

OPTIONS: dict[str, Any] = {"method": "uniform", "sampling": "multinomial", "random_state": 1}

ROWS = np.arange(400, dtype=float).reshape(-1, 2)

# --- interrupts ----------------------------------------------------------------------------


class Interrupts:
    """Counts places where an interrupt may come, and raises one at one of them.

    Attributes
    ----------
    seen : list
        The places that were passed, by what tells them apart.
    """

    def __init__(self, at: int = -1) -> None:
        self.at = at
        self.seen: list[Any] = []

    def pass_by(self, place: Any) -> None:
        """Pass a place."""
        self.seen.append(place)
        if len(self.seen) - 1 == self.at:
            raise KeyboardInterrupt

    @contextmanager
    def around_calls(self, module: Any, names: tuple[str, ...]) -> Iterator[None]:
        """Before and after each call of functions of a module by the main thread."""

        def wrapped(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                if threading.current_thread() is not threading.main_thread():
                    return function(*args, **kwargs)
                self.pass_by((name, "before"))
                result = function(*args, **kwargs)
                self.pass_by((name, "after"))
                return result

            return call

        patches: dict[str, Any] = {name: wrapped(name, getattr(module, name)) for name in names}
        with mock.patch.multiple(module, **patches):
            yield

    @contextmanager
    def in_code(self, files: tuple[str, ...]) -> Iterator[None]:
        """Where the interpreter looks for signals: at a function's begin, and after a call."""

        def profile(frame: FrameType, event: str, function: Any) -> None:
            code = frame.f_code
            if event in {"call", "c_return"} and code.co_filename.endswith(files):
                name = getattr(function, "__name__", code.co_name)
                self.pass_by((code.co_filename, frame.f_lineno, event, name))

        sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(None)


CHANGE_FILES = ("mkdir", "rename", "replace", "unlink", "remove", "rmdir", "fsync", "open")


SAVING = tuple(
    os.path.join("daskcoreset", *name.split("/"))  # noqa: PTH118 - the end of a path
    for name in (
        *(f"constructions/tree/{name}.py" for name in ("kept", "stream", "store", "changes")),
        *(f"constructions/tree/{name}.py" for name in ("places", "versions", "waiting")),
        "core/atomic.py",
    )
)


def first_and_last(places: list[Any]) -> list[int]:
    """Return where a place is passed first and last, of each."""
    first = {place: i for i, place in reversed([*enumerate(places)])}
    return sorted({*first.values(), *{place: i for i, place in enumerate(places)}.values()})


# --- what is saved, alike for streams, trees and views -------------------------------------


def batch(number: int) -> AnyArray:
    return ROWS[8 * number : 8 * number + 8]


class Saving:
    """An object with a store, to which changes are made one after the other."""

    def __init__(self, folder: Path, place: Any = None) -> None:
        self.folder = folder
        self.path = folder / "store" if place is None else place

    def change(self, number: int) -> None:
        """Make a change."""
        raise NotImplementedError

    def count(self) -> int:
        """How many changes the object says it has."""
        raise NotImplementedError

    def count_stored(self) -> int:
        """How many are in the store."""
        raise NotImplementedError

    def check(self, n: int) -> None:
        """Compare with the same changes in peace."""
        raise NotImplementedError


class SavingStream(Saving):
    """A stream that is saved after every batch."""

    def __init__(self, folder: Path, place: Any = None) -> None:
        super().__init__(folder, place)
        self.options = {**OPTIONS, "size": 3, "leaf_size": 20}
        self.stream = CoresetStream(**self.options, store=self.path)

    def change(self, number: int) -> None:
        # With weights of its own, which no others may be mistaken for.
        self.stream.partial_fit(batch(number), sample_weight=np.full(8, 1.0 + number % 2))

    def count(self) -> int:
        return self.stream.n_rows // 8

    def count_stored(self) -> int:
        return CoresetStream.load(self.path).n_rows // 8

    def check(self, n: int) -> None:
        peaceful = CoresetStream(**self.options)
        weights = np.repeat(1.0 + np.arange(n) % 2, 8)
        peaceful.partial_fit(ROWS[: 8 * n], sample_weight=weights)
        for stream in (self.stream, CoresetStream.load(self.path)):
            assert stream.total_weight == weights.sum()
            assert stream.coreset().equals(peaceful.coreset())


IN_PEACE: dict[tuple[type, int, str], tuple[LeafTable, Coreset]] = {}


class SavingTree(Saving):
    """A tree to which leaves are appended."""

    def __init__(self, folder: Path, place: Any = None) -> None:
        super().__init__(folder, place)
        self.tree = CoresetTree.create(self.path, **OPTIONS, size=3)

    def change(self, number: int) -> None:
        self.tree.append(batch(number), name=f"leaf {number}")

    def count(self) -> int:
        assert self.tree.version == len(self.tree)
        return len(self.tree)

    def count_stored(self) -> int:
        return len(CoresetTree.open(self.path))

    @property
    def named_after(self) -> str:
        """What the names of leaves depend on, and so their bits."""
        return ""

    def in_peace(self, n: int) -> CoresetTree:
        """Return a tree with the same changes."""
        tree = CoresetTree.create(self.folder / "peaceful", **OPTIONS, size=3)
        for number in range(n):
            tree.append(batch(number), name=f"leaf {number}")
        return tree

    def check(self, n: int) -> None:
        key = (type(self), n, self.named_after)
        if key not in IN_PEACE:  # the same each time
            peaceful = self.in_peace(n)
            IN_PEACE[key] = (peaceful.leaves, peaceful.coreset())
        leaves, coreset = IN_PEACE[key]
        self.tree.verify()
        for tree in (self.tree, CoresetTree.open(self.path)):
            assert tree.leaves == leaves
            assert WeightedPoints.equals(tree.coreset(), coreset)


N_BEFORE = 2


@pytest.fixture(autouse=True)
def flushes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)


def interrupted_everywhere(
    make: Callable[[Path], Saving],
    folder: Path,
    watched: Callable[[Interrupts], Any],
    chosen: Callable[[list[Any]], list[int]] = lambda places: [*range(len(places))],
) -> list[bool]:
    """Interrupt a change at one place after the other, and go on; say where it was made."""

    def change(at: int) -> tuple[Saving, Interrupts, bool]:
        here = folder / f"at {at}"
        here.mkdir()
        saved, interrupts = make(here), Interrupts(at)
        for number in range(N_BEFORE):
            saved.change(number)
        try:
            with watched(interrupts):
                saved.change(N_BEFORE)
        except KeyboardInterrupt:
            return saved, interrupts, True
        return saved, interrupts, False

    made = []
    change(-1)  # what is imported or compiled on the way is so by then
    shutil.rmtree(folder / "at -1")
    for at in chosen(change(-1)[1].seen):
        saved, _, struck = change(at)
        assert struck, at
        made.append(goes_on(saved))
    return made


def goes_on(saved: Saving) -> bool:
    """Go on after an interrupted change with what the object has not; whether it had it."""
    had = saved.count()
    assert had in {N_BEFORE, N_BEFORE + 1}
    assert saved.count_stored() == had
    for number in range(had, N_BEFORE + 2):
        saved.change(number)
    assert saved.count() == N_BEFORE + 2
    saved.check(N_BEFORE + 2)
    return had > N_BEFORE


def check_both(made: list[bool]) -> None:
    """Early interrupts leave a change that was not made, late ones one that was."""
    assert not made[0]
    assert made[-1]
    assert made == sorted(made)


# Between the opening of a file and what closes it, nothing closes it but the end of the object.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "kind", [SavingStream, pytest.param(SavingTree, marks=pytest.mark.nightly)]
)
def test_interrupt__wherever_the_interpreter_looks_for_signals(
    kind: type[Saving], tmp_path: Path
) -> None:
    with light_groups():
        made = interrupted_everywhere(
            kind, tmp_path, lambda interrupts: interrupts.in_code(SAVING), first_and_last
        )
    check_both(made)


@pytest.mark.parametrize("kind", [SavingStream, SavingTree])
def test_interrupt__where_the_store_does_not_read_says_so_and_goes_on_when_it_does(
    kind: type[Saving], tmp_path: Path
) -> None:
    saved, interrupts = kind(tmp_path), Interrupts(1)
    saved.change(0)
    text = repr(getattr(saved, "stream", None) or saved.tree)  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt), interrupts.around_calls(os, ("rename",)):
        saved.change(1)
    assert interrupts.seen == [("rename", "before"), ("rename", "after")]
    root = tmp_path / "store"
    root.rename(tmp_path / "away")
    with pytest.raises(StoreError, match=r"last change was interrupted; .* or open it again"):
        saved.count()
    with pytest.raises(StoreError, match="last change was interrupted"):
        saved.change(2)
    # What is only shown is as it was before.
    assert repr(getattr(saved, "stream", None) or saved.tree) == text  # type: ignore[attr-defined]
    (tmp_path / "away").rename(root)
    assert saved.count() == saved.count_stored() == 2
    saved.change(2)
    saved.check(3)


def test_save__that_was_interrupted_is_repeated(tmp_path: Path) -> None:
    """The first one, which makes the place: the stream belongs to it from then on, or not yet."""
    stream = CoresetStream(**OPTIONS, size=3).partial_fit(ROWS)

    def save(at: int) -> tuple[CoresetStream, Path, Interrupts]:
        saved, path, interrupts = copy.copy(stream), tmp_path / f"at {at}", Interrupts(at)
        try:
            with interrupts.around_calls(os, CHANGE_FILES):
                saved.save(path)
        except KeyboardInterrupt:
            assert at >= 0
        return saved, path, interrupts

    with light_groups():
        for at in range(len(save(-1)[2].seen)):
            saved, path, _ = save(at)
            assert saved.n_rows == len(ROWS)
            saved.save(path)
            saved.partial_fit(ROWS).save()
            assert CoresetStream.load(path).n_rows == 2 * len(ROWS)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies__go_on_by_themselves(again: Callable[[Any], Any], tmp_path: Path) -> None:
    stream = CoresetStream(**OPTIONS, size=3).partial_fit(ROWS)
    copied = again(stream).partial_fit(ROWS)
    assert (stream.n_rows, copied.n_rows) == (len(ROWS), 2 * len(ROWS))
    tree = CoresetTree.create(tmp_path / "tree", **OPTIONS)
    again(tree).append(ROWS)
    assert not tree.leaves
