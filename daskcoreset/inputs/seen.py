"""Whether a process that reads finds what was opened: not another array, or a shorter one.

Workers find a file by its name, and may find another one there than the client: of other folders,
mounts, or times. Every format compares shape and dtype where it reads. An array that has only grown
is read up to the rows that it had when it was opened, in every format alike: data are appended
while they are read. Parquet files do not grow, so that their whole footers are compared.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from daskcoreset.core.errors import StoreError

if TYPE_CHECKING:
    import numpy as np


class Layout(NamedTuple):
    """Shape and dtype of a stored array, and where else they decide how its bytes are read.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    rest : object
        What must be the same: a digest of codecs, the order in memory, where the first byte is.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    rest: Any = None


def check_seen(name: str, opened: Layout, found: Layout) -> None:
    """Raise an error unless the array that is found is the one that was opened, or has grown.

    Parameters
    ----------
    name : str
        Of the array, without secrets.
    opened, found : Layout

    Examples
    --------
    >>> import numpy as np
    >>> opened = Layout((4, 2), np.dtype("f4"))
    >>> check_seen("X.npy", opened, Layout((9, 2), np.dtype("f4")))
    >>> check_seen("X.npy", opened, Layout((4, 2), np.dtype("f8")))
    Traceback (most recent call last):
    ...
    daskcoreset.errors.StoreError: X.npy holds another array on host ...
    """
    same = opened.dtype == found.dtype and opened.rest == found.rest
    if not same or opened.shape[1:] != found.shape[1:] or found.shape[:1] < opened.shape[:1]:
        raise StoreError(
            f"{name} holds another array on {here()} than was opened: shape {found.shape}, dtype "
            f"{found.dtype}, or the way it is stored, in place of {opened.shape}, {opened.dtype}; "
            f"let every worker see the same store, and open it again if it was written anew."
        )


def here() -> str:
    """Return where this process runs, for errors."""
    return f"host {socket.gethostname()!r} (process {os.getpid()} in {str(Path.cwd())!r})"
