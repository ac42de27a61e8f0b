"""Files with columns by name, and rows that loaders read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from daskcoreset.core.optional import import_optional
from daskcoreset.core.typing import IndexArray
from daskcoreset.inputs.arrays import RowArray

if TYPE_CHECKING:
    import numpy as np

# Reads one range of rows when called, an ndarray or SciPy sparse; picklable, cheap to make.
Loader: TypeAlias = Callable[[], Any]


@dataclass(frozen=True, eq=False)
class Source(RowArray):
    """Rows that loaders read: ``loader(start, stop)()``."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    loader: Callable[[int, int], Loader]
    granularity: int = 1
    pieces: tuple[int, ...] | None = None
    name: str | None = None
    columns: tuple[str, ...] | None = None
    in_memory: bool = False
    in_process: bool = False
    taken: Callable[[IndexArray], Any] | None = None

    def __getitem__(self, rows: slice) -> Any:
        return self.loader(rows.start, rows.stop)()

    def cut(self, start: int, stop: int) -> RowArray:
        """Return some rows."""
        return _Loaded(self, self.loader(start, stop), stop - start)

    def take(self, rows: IndexArray) -> Any:
        """Return rows by increasing numbers."""
        return super().take(rows) if self.taken is None or not len(rows) else self.taken(rows)


class _Loaded(RowArray):
    """Rows of a loader, without its source."""

    def __init__(self, source: Source, load: Loader, n_rows: int) -> None:
        self.load = load
        self.shape, self.dtype = (n_rows, *source.shape[1:]), source.dtype
        self.granularity, self.name, self.columns = source.granularity, source.name, source.columns
        self.in_memory = source.in_memory

    def __getitem__(self, rows: slice) -> Any:
        values = self.load()
        return values if rows == slice(0, len(self)) else values[rows]


class Table(ABC):
    """Files with columns by name, such as Parquet: the base of file formats of that kind.

    Attributes
    ----------
    path : str
    names : list of str
        Names of the columns.
    index : set of str
        Columns that are features only if they are named.
    """

    path: str
    names: list[str]
    index: set[str]

    @property
    def features(self) -> list[str]:
        """Names of the columns that are features."""
        return [name for name in self.names if name not in self.index]

    @property
    def known(self) -> list[str]:
        """Names by which columns are chosen."""
        return self.names

    def expanded(self, columns: Sequence[str]) -> list[str]:
        """Return the names of the features that some columns are."""
        return list(columns)

    @abstractmethod
    def table(self, columns: Sequence[str]) -> RowArray:
        """Return some columns as the matrix X."""

    @abstractmethod
    def column(self, name: str) -> RowArray:
        """Return one column as a vector of labels or weights."""


def import_reader(module: str, extra: str, name: str) -> Any:
    """Return the optional package that reads a file, which was passed as the argument `name`."""
    install = f'install it with: pip install "daskcoreset[{extra}]".'
    return import_optional(module, f"{name} needs the package {module}; {install}")
