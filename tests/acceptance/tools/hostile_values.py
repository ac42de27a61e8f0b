"""Values that no argument is made for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import scipy.sparse as sp

SECRET = "hush-hush"  # noqa: S105 - which no message may repeat


class HostileError(Exception):
    """What hostile objects raise."""


class Unprintable:
    """An object whose description fails."""

    def __repr__(self) -> str:
        raise HostileError("no description")

    __str__ = __repr__


class Pretended:
    """An object that says that it is an array, and gives another one, or none."""

    shape = (40, 3)
    ndim = 2
    dtype = np.dtype(float)

    def __init__(self, given: Any = None) -> None:
        self.given = given

    def __array__(self, *_: Any, **__: Any) -> Any:
        if self.given is None:
            raise HostileError("no array")
        return self.given

    def __len__(self) -> int:
        return 40


class Incomparable:
    """An object that cannot be compared, nor be true or false."""

    def __eq__(self, _: object) -> bool:
        raise HostileError("not comparable")

    def __bool__(self) -> bool:
        raise HostileError("neither true nor false")

    __hash__ = None  # type: ignore[assignment] # which a key of a dictionary needs


class LongText(str):
    """A subclass of text, with a method that fails."""

    __slots__ = ()

    def lower(self) -> str:
        raise HostileError("no lower case")


class Number(float):
    """A number that fails when it is compared."""

    def __lt__(self, _: object) -> bool:
        raise HostileError("no order")


def deep_list(depth: int = 300) -> Any:
    """Return lists in lists."""
    inner: Any = 1.0
    for _ in range(depth):
        inner = [inner]
    return inner


def own_list() -> Any:
    """Return a list that holds itself."""
    inner: Any = [1.0]
    inner.append(inner)
    return inner


def unknown_blocks() -> Any:
    """Return a Dask array of unknown lengths, one of which is not what is expected."""
    rows = da.from_array(np.ones((40, 3)), chunks=10)
    return rows[rows[:, 0] > 0]


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "NumPy's False": lambda: np.False_,
    "empty text": lambda: "",
    "text": lambda: "no such thing",
    "number as text": lambda: "7",
    "text with NUL": lambda: "a\0b",
    "half a character": lambda: "\ud800",
    "long text": lambda: "x" * 100_000,
    "text of a subclass": lambda: LongText("tree"),
    "a URL with a password": lambda: f"s3://user:{SECRET}@nowhere.invalid/x?token={SECRET}",
    "bytes": lambda: b"bytes",
    "path": lambda: Path("nowhere/at/all"),
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "minus infinity": lambda: float("-inf"),
    "minus one": lambda: -1,
    "zero": lambda: 0,
    "minus zero": lambda: -0.0,
    "one": lambda: 1,
    "two": lambda: 2,
    "a half": lambda: 0.5,
    "one and a half": lambda: 1.5,
    "huge": lambda: 10**30,
    "2^63": lambda: 2**63,
    "2^31": lambda: 2**31,
    "10^9": lambda: 10**9,
    "-10^30": lambda: -(10**30),
    "huge float": lambda: 1e308,
    "tiny float": lambda: 5e-324,
    "float32 NaN": lambda: np.float32("nan"),
    "int8": lambda: np.int8(-3),
    "fraction": lambda: Fraction(1, 3),
    "decimal": lambda: Decimal("0.1"),
    "complex": lambda: 1j,
    "a number without order": lambda: Number(0.5),
    "NaT": lambda: np.datetime64("NaT", "s"),
    "a span of time": lambda: np.timedelta64(3, "s"),
    "a date": lambda: dt.date(2026, 3, 1),
    "missing": lambda: pd.NA,
    "empty list": list,
    "empty tuple": lambda: (),
    "empty dict": dict,
    "set": lambda: {1, 2},
    "list of text": lambda: ["a", "b"],
    "ragged list": lambda: [[1.0], [1.0, 2.0]],
    "deep list": deep_list,
    "list of itself": own_list,
    "dict of NaN": lambda: {"a": float("nan")},
    "generator": lambda: (row for row in ([1.0, 2.0, 3.0],)),
    "slice": lambda: slice(None),
    "slice of text": lambda: slice("a", "b", "c"),
    "function": lambda: len,
    "lambda": lambda: lambda *_: None,
    "type": lambda: int,
    "module": lambda: np,
    "object": object,
    "Ellipsis": lambda: ...,
    "unprintable": Unprintable,
    "no array": Pretended,
    "another array": lambda: Pretended(np.ones((7, 2))),
    "incomparable": Incomparable,
    "number in an array": lambda: np.array(3.0),
    "empty vector": lambda: np.empty(0),
    "empty matrix": lambda: np.empty((0, 3)),
    "no columns": lambda: np.empty((40, 0)),
    "vector": lambda: np.arange(40.0),
    "short vector": lambda: np.arange(3.0),
    "vector of NaN": lambda: np.full(40, np.nan),
    "negative vector": lambda: np.full(40, -1.0),
    "huge vector": lambda: np.full(40, 1e308),
    "zeros": lambda: np.zeros(40),
    "matrix": lambda: np.arange(120.0).reshape(40, 3) % 7,
    "matrix of NaN": lambda: np.full((40, 3), np.nan),
    "matrix of infinity": lambda: np.full((40, 3), np.inf),
    "matrix of huge numbers": lambda: np.full((40, 3), 1e200) * np.arange(3),
    "wide matrix": lambda: np.ones((40, 4)),
    "cube": lambda: np.ones((4, 3, 2)),
    "matrix of text": lambda: np.full((40, 3), "a"),
    "vector of text": lambda: np.full(40, "a"),
    "matrix of objects": lambda: np.full((40, 3), None),
    "vector of objects": lambda: np.array([object()] * 40),
    "complex matrix": lambda: np.full((40, 3), 1j),
    "matrix of dates": lambda: np.full((40, 3), np.datetime64("2026-01-01")),
    "structured": lambda: np.zeros(40, dtype=[("a", "f8"), ("b", "i4")]),
    "masked": lambda: np.ma.masked_all((40, 3)),  # type: ignore[no-untyped-call] # of NumPy
    "half precision": lambda: np.full((40, 3), 60_000.0).astype(np.float16),
    "big integers": lambda: np.full((40, 3), 2**63, dtype=np.uint64),
    "read only": lambda: np.broadcast_to(np.ones(3), (40, 3)),
    "sparse": lambda: sp.csr_array(np.eye(40, 3)),
    "sparse of NaN": lambda: sp.csr_array(np.full((40, 3), np.nan)),
    "frame": lambda: pd.DataFrame({"a": range(40), "b": ["x"] * 40}),
    "series": lambda: pd.Series(range(40), dtype="Int64"),
    "series of missing": lambda: pd.Series([pd.NA] * 40, dtype="Int64"),
    "Dask array": lambda: da.ones((40, 3), chunks=(7, 2)),
    "Dask vector": lambda: da.arange(40, chunks=7),
    "unknown blocks": unknown_blocks,
    "memory view": lambda: memoryview(b"abc"),
}
