"""Real sets: files ``NAME.npz`` of the folder that the variable DASKCORESET_DATA names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

_CSR_PARTS = ("data", "indices", "indptr", "shape")


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, dense or CSR, their labels if there are any, and the other arrays of the file."""

    X: Any
    y: Any
    extras: dict[str, Any]


def available() -> tuple[str, ...]:
    """Return the names of the sets in the folder; none if the variable is not set."""
    folder = os.environ.get("DASKCORESET_DATA")
    return tuple(sorted(path.stem for path in Path(folder).glob("*.npz"))) if folder else ()


def load(name: str) -> Dataset:
    """Load a set as it is in its file, ``X`` or the parts of a CSR matrix; nothing is unpickled."""
    with np.load(Path(os.environ["DASKCORESET_DATA"], f"{name}.npz"), allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    if "X" in arrays:
        X = arrays.pop("X")
    else:
        data, indices, indptr, shape = (arrays.pop(key) for key in _CSR_PARTS)
        X = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
    return Dataset(X, arrays.pop("y", None), arrays)
