"""Files with columns by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from daskcoreset.core.optional import import_optional
from daskcoreset.inputs.arrays import RowArray


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
