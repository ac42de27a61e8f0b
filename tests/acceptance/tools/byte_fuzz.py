"""Mutations of stored bytes; `main` runs in a process of `fuzzing`."""

from __future__ import annotations

import re
import shutil
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from hypothesis import given, strategies as st

from tests.acceptance.face import Coreset, WeightedPoints, build, errors
from tests.acceptance.tools import fuzzing
from tests.acceptance.tools.places import THINGS, Folder, Place, Thing

N, CHUNK = 120, 30

X = np.random.default_rng(0).normal(size=(N, 3))


@dataclass(frozen=True)
class Stored:
    """A store of some kind.

    Attributes
    ----------
    name : str
    write : callable
        Makes it at a path.
    read : callable
        Returns a coreset.
    checked : bool
        Whether a checksum or digest covers every byte that matters: whatever is damaged, the
        answer is the same, or there is an error. Otherwise damaged values come back as they
        are, and no others.
    """

    name: str
    write: Callable[[Path], Any]
    read: Callable[[Path], Coreset]
    checked: bool = False


def _array(path: Path, **options: Any) -> None:
    made = zarr.create_array(path, shape=X.shape, dtype=X.dtype, **options)
    made[:] = X


def _made_npz(path: Path) -> None:
    np.savez(path.with_suffix(".npz"), X=X)
    path.with_suffix(".npz").rename(path)


def _made_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=X, chunks=(CHUNK, 3), fletcher32=True)


def _made_parquet(path: Path) -> None:
    table = pa.table({f"f{j}": X[:, j] for j in range(3)})
    pq.write_table(table, path, row_group_size=CHUNK, write_page_checksum=True)


def _all_rows(path: Path) -> Coreset:
    # As many as there are: every row comes back as it was read.
    return build(str(path), size=N, chunks=CHUNK, random_state=0)


V2 = {"zarr_format": 2, "chunks": (CHUNK, 3)}


def _at(path: Path) -> Place:
    return Place(path, Folder(path))


def _own(name: str, thing: Thing) -> Stored:
    return Stored(
        f"{name}.zarr", lambda path: thing.make(_at(path)), lambda path: thing.read(_at(path)), True
    )


OWN = [_own(*pair) for pair in THINGS.items()]

INPUTS = [
    Stored("v2.zarr", lambda path: _array(path, **V2), _all_rows),
    Stored("plain.zarr", lambda path: _array(path, chunks=(CHUNK, 3), compressors=None), _all_rows),
    Stored("v3.zarr", lambda path: _array(path, chunks=(CHUNK, 3)), _all_rows),
    Stored(
        "shards.zarr",
        lambda path: _array(path, chunks=(CHUNK // 2, 3), shards=(2 * CHUNK, 3)),
        _all_rows,
    ),
    Stored("x.npy", lambda path: np.save(path, X), _all_rows),
    Stored("x.npz", _made_npz, _all_rows),
    Stored("x.h5", _made_hdf5, _all_rows),
    Stored("x.parquet", _made_parquet, _all_rows),
]

KINDS = (
    "flip", "flip", "flip", "byte", "cut", "insert", "remove bytes", "zeros", "double", "longer",
    "empty", "missing", "folder", "another", "number",
)  # fmt: skip


STORES = [*OWN, *INPUTS]


def damaged(content: bytes, kind: str, place: float, value: int, other: bytes) -> bytes | None:
    """Return the bytes of a file after a mutation; None where the file is gone."""
    at = int(place * len(content))
    several = 1 + value % 16
    if kind == "number":  # in text that says sizes
        numbers = list(re.finditer(rb"\d+", content))
        if not numbers:
            return content[:at]
        found = numbers[int(place * len(numbers))]
        new = (b"0", b"1", b"-1", b"7", b"4000000000", b"99999999999999999999", b"1e999")[value % 7]
        return content[: found.start()] + new + content[found.end() :]
    changes: dict[str, Callable[[], bytes | None]] = {
        "flip": lambda: content[:at] + bytes([content[at] ^ (1 << value % 8)]) + content[at + 1 :],
        "byte": lambda: content[:at] + bytes([value]) + content[at + 1 :],
        "cut": lambda: content[:at],
        "insert": lambda: content[:at] + bytes([value]) * several + content[at:],
        "remove bytes": lambda: content[:at] + content[at + several :],
        "zeros": lambda: (
            content[:at] + bytes(len(content[at : at + several])) + content[at + several :]
        ),
        "double": lambda: content[:at] + content[at : at + 64] + content[at:],
        "longer": lambda: content + bytes([value]) * 1000,
        "empty": lambda: b"",
        "missing": lambda: None,
        "folder": lambda: None,
        "another": lambda: other,
    }
    return changes[kind]()


@contextmanager
def mutated(file: Path, kind: str, content: bytes | None) -> Iterator[None]:
    """Have other bytes in a file, as long as the block lasts."""
    before = file.read_bytes()
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif content is not None:
        file.write_bytes(content)
    try:
        yield
    finally:
        if file.is_dir():
            shutil.rmtree(file)
        file.write_bytes(before)


def files_of(path: Path) -> list[Path]:
    """Return the files of a store that hold something."""
    return [path / name for name in Folder(path).names()] if path.is_dir() else [path]


def problem_of(stored: Stored, path: Path, right: Coreset, where: str, file: Path) -> str | None:
    """Read a damaged store; return what is wrong with the answer, or None."""
    try:
        answer = fuzzing.watched(lambda: stored.read(path), where)
    except errors.CoresetError as error:
        said = str(error)
        is_named = path.name in said or file.name in said or said.startswith(("X has", "X is"))
        return None if is_named else f"{where}: names no path: {said[:300]}"
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is not ours
        return f"{where}: {fuzzing.described(error)}"
    if WeightedPoints.equals(right, answer):
        return None
    if stored.checked:
        return f"{where}: another answer"
    return None if is_local(right, answer, file) else f"{where}: more than was damaged differs"


def is_local(right: Coreset, answer: Coreset, file: Path) -> bool:
    """Whether an answer differs in values of the damaged file alone.

    What a file says about all of the data, such as a shape, is believed.
    """
    if file.suffix in {".json", ".npy", ".npz", ".h5"} or file.name in {".zarray", ".zattrs"}:
        return True
    if answer.points.shape != right.points.shape:
        return False
    rows = np.flatnonzero((answer.points != right.points).any(axis=1))
    return len(rows) == 0 or rows[-1] - rows[0] < 2 * CHUNK


def main(out: str, seed: str, count: str) -> None:
    """Make mutations, and write down those that were answered wrongly."""
    warnings.simplefilter("ignore")
    folder = Path.cwd() / "stores"
    folder.mkdir()
    rights = {}
    for stored in STORES:
        stored.write(folder / stored.name)
        rights[stored.name] = stored.read(folder / stored.name)
    fuzzing.guard()
    fuzzing.refuse_pickles()
    seen: Counter[str] = Counter()
    failures: list[str] = []
    places = st.integers(0, 9999).map(lambda part: part / 10_000)

    @fuzzing.examples(seed, count)
    @given(
        stored=st.sampled_from(STORES), which=places, kind=st.sampled_from(KINDS), place=places,
        value=st.integers(0, 255),
    )  # fmt: skip
    def mutate(stored: Stored, which: float, kind: str, place: float, value: int) -> None:
        path = folder / stored.name
        files = files_of(path)
        file = files[int(which * len(files))]
        other = files[value % len(files)].read_bytes()
        content = damaged(file.read_bytes(), kind, place, value, other)
        where = f"{file.relative_to(folder)}: {kind} at {place} ({value})"
        seen[stored.name] += 1
        with mutated(file, kind, content):
            problem = problem_of(stored, path, rights[stored.name], where, file)
        if problem:
            failures.append(problem)

    mutate()
    fuzzing.report(out, sum(seen.values()), failures, stores=seen)
