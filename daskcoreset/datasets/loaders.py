"""Real sets: from a folder of .npz files, and from what scikit-learn carries."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from daskcoreset.core.errors import (
    DataUnavailableError,
    InvalidInputError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.core.typing import AnyArray, Points
from daskcoreset.core.validation import is_choice

_VARIABLE = "DASKCORESET_DATA"
_TABLES = ("breast_cancer", "diabetes", "digits", "iris", "wine")
_PICTURES = ("china", "flower")
_CSR_PARTS = ("data", "indices", "indptr", "shape")
_DAMAGE = (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)

# Names that `load_bundled` takes.
BUNDLED = tuple(sorted((*_TABLES, *_PICTURES)))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A set in memory.

    Attributes
    ----------
    name : str
        Name passed to the loader.
    X : ndarray or scipy.sparse.csr_array of shape (n, d), float32
        Rows.
    y : ndarray of shape (n,) or None
        Labels or targets, where the set has them.
    columns : tuple of str or None
        Names of the columns, where they are known.
    extras : mapping of str to ndarray
        Whatever else the set carries, such as ``n_train``.

    Examples
    --------
    >>> load_bundled("iris")
    Dataset('iris', 150 x 4 float32, labels int64)
    """

    name: str
    X: Points
    y: AnyArray | None = None
    columns: tuple[str, ...] | None = None
    extras: Mapping[str, AnyArray] = field(default_factory=dict)

    def __repr__(self) -> str:
        n, d = self.X.shape
        kind = " sparse" if sp.issparse(self.X) else ""
        labels = "no labels" if self.y is None else f"labels {self.y.dtype}"
        return f"Dataset({self.name!r}, {n} x {d} {self.X.dtype}{kind}, {labels})"


def available() -> tuple[str, ...]:
    """Names of the sets in the folder that the variable DASKCORESET_DATA names.

    Returns
    -------
    tuple of str
        In alphabetical order; empty if the variable is not set.

    Raises
    ------
    DataUnavailableError
        If the variable is set, but not to a folder.

    Examples
    --------
    >>> isinstance(available(), tuple)
    True
    """
    if not os.environ.get(_VARIABLE):
        return ()
    return tuple(sorted(path.stem for path in _folder().glob("*.npz")))


def load(name: str) -> Dataset:
    """Load a set from the folder that the environment variable DASKCORESET_DATA names.

    A dense set is a file ``name.npz`` with ``X``; a sparse one holds the parts of a CSR
    matrix, ``data``, ``indices``, ``indptr`` and ``shape``. Both may hold ``y`` and
    ``columns``; any other array becomes an extra. Nothing in a file is ever unpickled.

    Parameters
    ----------
    name : str
        Name of the set, without ``.npz``; `available` lists them.

    Returns
    -------
    Dataset
        With `X` as it is in the file: not scaled, not shuffled.

    Raises
    ------
    DataUnavailableError
        If the variable is not set, does not name a folder, or the folder lacks the set.
    StoreError
        If the file is there but cannot be read as a set.

    Examples
    --------
    >>> for name in available()[:1]:
    ...     dataset = load(name)
    """
    folder = _folder()
    names = available()
    if not is_choice(name, names):
        raise DataUnavailableError(
            f"name must be one of the sets in {folder} ({', '.join(names) or 'none'}), "
            f"got {name!r}; put {name}.npz there or set {_VARIABLE} to another folder."
        )
    path = folder / f"{name}.npz"
    try:
        if not zipfile.is_zipfile(path):  # np.load would leave the file open
            raise ValueError("it is no zip archive")
        with np.load(path, allow_pickle=False) as file:
            return _from_arrays(name, {key: file[key] for key in file.files})
    except _DAMAGE as error:
        raise StoreError(
            f"name={name!r} is stored in {path}, which cannot be read as a set ({error}); "
            "replace the file."
        ) from error


def load_bundled(name: str) -> Dataset:
    """Load a real set that scikit-learn carries, without any download.

    Parameters
    ----------
    name : str
        One of `BUNDLED`: the tables breast_cancer, diabetes, digits, iris and wine, or the
        pictures china and flower as 273,280 rows of red, green and blue, row by row of the
        picture.

    Returns
    -------
    Dataset
        `X` is float32. `y` holds class numbers (int64), a measured target for diabetes
        (float64), and None for a picture, whose extra ``shape`` is its height and width.

    Raises
    ------
    InvalidInputError
        If the name is not known.
    MissingDependencyError
        If a picture is asked for and Pillow is not installed.

    Examples
    --------
    >>> load_bundled("china").X.shape
    (273280, 3)
    """
    if not is_choice(name, BUNDLED):
        raise InvalidInputError(
            f"name must be one of {', '.join(BUNDLED)}, got {name!r}; pass one of these names."
        )
    if name in _PICTURES:
        return _picture(name)
    import sklearn.datasets

    bunch: Any = getattr(sklearn.datasets, f"load_{name}")()
    return Dataset(
        name=name,
        X=np.ascontiguousarray(bunch.data, dtype=np.float32),
        y=np.asarray(bunch.target),
        columns=tuple(str(column) for column in bunch.feature_names),
    )


def _folder() -> Path:
    """Return the folder of data."""
    value = os.environ.get(_VARIABLE)
    if not value:
        raise DataUnavailableError(
            f"{_VARIABLE} is not set, so there are no files to load; set this environment "
            "variable to the folder that holds the .npz files."
        )
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise DataUnavailableError(
            f"{_VARIABLE} must name a folder, got {value!r}; set this environment variable to "
            "the folder that holds the .npz files."
        )
    return folder


def _from_arrays(name: str, arrays: dict[str, AnyArray]) -> Dataset:
    """Return a data set from the arrays of a file."""
    points: Points
    if "X" in arrays:
        points = arrays.pop("X")
    else:
        data, indices, indptr, shape = (arrays.pop(key) for key in _CSR_PARTS)
        points = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        points.check_format(full_check=True)
    if points.ndim != 2:
        raise ValueError(f"X has {points.ndim} dimensions, not 2")
    n, d = points.shape
    y = arrays.pop("y", None)
    if y is not None and y.shape != (n,):
        raise ValueError(f"y has the shape {y.shape}, not ({n},)")
    columns = arrays.pop("columns", None)
    if columns is not None and columns.shape != (d,):
        raise ValueError(f"columns has the shape {columns.shape}, not ({d},)")
    names = None if columns is None else tuple(columns.tolist())
    return Dataset(name=name, X=points, y=y, columns=names, extras=arrays)


def _picture(name: str) -> Dataset:
    """Return the pixels of a picture as rows."""
    import sklearn.datasets

    try:
        picture = sklearn.datasets.load_sample_image(f"{name}.jpg")
    except ImportError as error:
        raise MissingDependencyError(
            f"name={name!r} is a picture, which needs Pillow to be read; "
            'install it with pip install "daskcoreset[plot]".'
        ) from error
    height, width, colours = picture.shape
    return Dataset(
        name=name,
        X=picture.reshape(height * width, colours).astype(np.float32),
        columns=("red", "green", "blue"),
        extras={"shape": np.array([height, width])},
    )
