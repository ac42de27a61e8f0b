"""Pickles of results, with the version of their layout, as stores have one."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from daskcoreset.core.errors import StoreError, package_versions


class Versioned(Protocol):
    """What has a version of the layout of its pickles.

    One higher whenever an older library could not go on from what `pickled` is given.
    """

    _pickle_version: ClassVar[int]


def pickled(made: Versioned, state: Any) -> tuple[Any, ...]:
    """Return what ``__reduce__`` of an object returns, for a pickle that has a version.

    The version comes first, and is looked at before anything of the state is loaded: classes in it
    may be unknown to an older library. Pickles that were written before there were versions name
    the class in place of `begun`, and load as they did.

    Parameters
    ----------
    made : Versioned
    state : object
        For its ``__setstate__``, or a mapping of its attributes.
    """
    library = package_versions().get("daskcoreset", "unknown")
    version = made._pickle_version  # noqa: SLF001 - no part of what users see
    return begun, (type(made), version, library), state


def begun(made: type[Versioned], version: int, library: str) -> Versioned:
    """Return an object that its state will fill.

    Parameters
    ----------
    made : type
    version : int
        Of the layout of the pickle.
    library : str
        The version of this package that wrote it.

    Raises
    ------
    StoreError
        The layout is none that is known here.

    Examples
    --------
    >>> from daskcoreset.core.coreset import Coreset
    >>> begun(Coreset, 99, "9.0")
    Traceback (most recent call last):
    ...
    daskcoreset.errors.StoreError: the pickled Coreset was written by daskcoreset 9.0 ...
    """
    known = made._pickle_version  # noqa: SLF001 - as above
    if version not in range(1, known + 1):
        own = package_versions().get("daskcoreset", "unknown")
        raise StoreError(
            f"the pickled {made.__name__} was written by daskcoreset {library} in layout "
            f"{version!r}, and daskcoreset {own}, which reads it, knows none above {known}; "
            f"upgrade daskcoreset, or build the {made.__name__} again"
        )
    return object.__new__(made)
