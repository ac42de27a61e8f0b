"""Stores that their user vouches for, of which more is read than what is written today."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRUSTED: ContextVar[bool] = ContextVar("daskcoreset-trusted-stores", default=False)


@contextmanager
def trusted_stores() -> Iterator[None]:
    """Read stores in the body whatever memory they take, for those that you know to be yours.

    Stored coresets, streams and trees are refused where a few kilobytes unpack to gigabytes:
    more than 128 MiB and a thousandfold of what is stored, text with far more room than letters,
    files with holes, metadata above 256 MiB, and nodes of a tree with far more rows than it asks
    for. None of these is written today, but versions before wrote some, of large coresets whose
    rows are nearly all equal, and some programs copy files of zeros with holes. Within this, only
    digests and structure decide. A coreset that is saved again is read without.

    Examples
    --------
    >>> with trusted_stores():
    ...     are_trusted()
    True
    >>> are_trusted()
    False
    """
    token = _TRUSTED.set(True)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def are_trusted() -> bool:
    """Whether stores are read without bounds on memory."""
    return _TRUSTED.get()


# Of errors that it mends.
REMEDY = "if the store is your own, read it within daskcoreset.trusted_stores()"
