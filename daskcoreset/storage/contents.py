"""Named arrays with attributes as they are stored: what can be, the header, and the digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from daskcoreset.core.errors import (
    CoresetError,
    InvalidInputError,
    InvalidTypeError,
    MissingDependencyError,
    StoreError,
)
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import article

# Name of the attribute that makes a Zarr group one of ours.
HEADER = "daskcoreset"

# What an attribute can be; tuples come back as lists.
JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"

# Of an array.
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class GroupContents:
    """Arrays and attributes of a group.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        The arrays.
    dims : mapping of str to tuple of str
        Dimension names of each array.
    attributes : mapping of str to JSON
        Attributes without the header.
    kind : str
        Kind of the group.
    schema_version : int
        Version of its layout.
    """

    arrays: Mapping[str, AnyArray]
    dims: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, JSON]
    kind: str
    schema_version: int

    def checked(self) -> GroupContents:
        """Return the contents with attributes in plain JSON. Anything else is an error.

        Raises
        ------
        InvalidInputError
            A name, dimension, string or attribute has a value that cannot be stored.
        InvalidTypeError
            An array's dtype or an attribute's type cannot be stored.
        """
        lengths: dict[str, int] = {}
        for name, array in self.arrays.items():
            if not NAME.fullmatch(name):
                msg = f"array name {name!r}: use letters, digits, '_' and '-', a letter first"
                raise InvalidInputError(msg)
            axes = self.dims.get(name, ())
            if len(axes) != array.ndim or len(set(axes)) != len(axes):
                raise InvalidInputError(
                    f"array {name!r} of shape {array.shape} has dims {axes}",
                    remedy="name each axis once",
                )
            for dim, length in zip(axes, array.shape, strict=True):
                if lengths.setdefault(dim, length) != length:
                    msg = f"dimension {dim!r} has lengths {lengths[dim]} and {length}"
                    raise InvalidInputError(f"{msg}", remedy="use two names")
            _check_dtype(name, array)
        if HEADER in self.attributes:
            raise InvalidInputError(f"attribute {HEADER!r} is reserved", remedy="use another name")
        if self.schema_version < 1:
            raise InvalidInputError(f"schema_version is {self.schema_version}; versions start at 1")
        return replace(self, attributes=_plain(self.attributes))

    def header(self, *, complete: bool) -> dict[str, JSON]:
        """Describe the contents. Only a complete header has the digest that lets a store open."""
        header: dict[str, JSON] = {
            "kind": self.kind,
            "schema_version": self.schema_version,
            "arrays": self.specs(),
        }
        return {**header, "digest": self.digest} if complete else header

    @cached_property
    def digest(self) -> str:
        """Digest of the contents: kind, version, names, attributes and bits."""
        header = self.header(complete=False)
        names = sorted(self.arrays)
        described = [header, self.attributes, {name: self.dims[name] for name in names}]
        digest = hashlib.sha256(json.dumps(described, sort_keys=True).encode())
        for name in names:
            digest.update(_bits(self.arrays[name]))
        return f"sha256:{digest.hexdigest()}"

    def specs(self) -> dict[str, JSON]:
        """Describe the arrays: name to ``dtype`` and ``shape``."""
        return {
            name: {"dtype": spell_dtype(array), "shape": list(array.shape)}
            for name, array in self.arrays.items()
        }


# What opens a group that is of another kind than was asked for.
_OPENED_BY = {
    "coreset": "Coreset.from_zarr",
    "portfolio": "Portfolio.from_zarr",
    "coreset-tree": "CoresetTree.open",
    "coreset-stream": "CoresetStream.load",
}


def find_header_problem(header: Any, kind: str, schema_version: int) -> tuple[str, str] | None:
    """Return the problem of a header (library, kind, completeness) and its remedy, or None.

    Parameters
    ----------
    header : object
        The value under `HEADER` in the group, or None.
    kind : str
    schema_version : int
        The expected kind and version.
    """
    if not isinstance(header, dict):
        return "is a Zarr group, but not one of daskcoreset", "check the path"
    version = header.get("schema_version")
    problem = None
    if header.get("kind") != kind:
        other = str(header.get("kind"))
        remedy = f"open it with {_OPENED_BY[other]}" if other in _OPENED_BY else "check the path"
        problem = f"holds {article(other)} {other!r}, not {article(kind)} {kind!r}", remedy
    elif isinstance(version, int) and version > schema_version:
        newer = f"schema version {version} is newer than {schema_version}, the newest known"
        problem = newer, "upgrade daskcoreset"
    elif not isinstance(version, int) or version < schema_version:
        problem = f"schema version {version!r} instead of {schema_version}", "build it again"
    elif "digest" not in header:
        problem = "incomplete, its writing was interrupted", "write it with overwrite=True"
    elif not isinstance(header.get("arrays"), dict):
        problem = "its header names no arrays", "restore it from a copy or build it again"
    return problem


def spell_dtype(array: AnyArray) -> str:
    """Spell an array's dtype for the header, alike on every platform: in little-endian order.

    Examples
    --------
    >>> import numpy as np
    >>> spell_dtype(np.zeros(3)), spell_dtype(np.array(["red", "blue"]))
    ('<f8', '<U4')
    """
    return "string" if array.dtype.kind == "T" else array.dtype.newbyteorder("<").str


def _bits(array: AnyArray) -> bytes:
    if array.dtype.kind == "T":
        # Lengths first, or ["a", "bc"] and ["ab", "c"] would be the same bytes.
        texts = [text.encode() for text in array.ravel().tolist()]
        return json.dumps([len(text) for text in texts]).encode() + b"".join(texts)
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _plain(attributes: Mapping[str, JSON]) -> dict[str, JSON]:
    try:
        plain: dict[str, JSON] = json.loads(json.dumps(dict(attributes), allow_nan=False))
    except TypeError as error:
        raise InvalidTypeError(
            f"attributes must be plain JSON: {error}", remedy="convert them first"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"attributes must be plain JSON: {error}", remedy="drop or replace the value"
        ) from error
    return plain


def _check_dtype(name: str, array: AnyArray) -> None:
    dtype = array.dtype
    if dtype.kind == "U":
        try:
            "".join(array.ravel().tolist()).encode()
        except ValueError as error:
            raise InvalidInputError(
                f"array {name!r} holds text that is not Unicode ({error})", remedy="clean it first"
            ) from error
    elif dtype.kind == "T":
        if hasattr(dtype, "na_object"):
            raise InvalidTypeError(
                f"array {name!r} may hold missing strings", remedy="fill them first"
            )
    elif dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        msg = f"array {name!r} has dtype {dtype}, which has no plain form in Zarr; convert it, "
        raise InvalidTypeError(msg + "text with .astype(str) and numbers to 64 bits or fewer")


@contextmanager
def refuse_inconsistent(subject: str, remedy: str = "restore it from a copy") -> Iterator[None]:
    """Raise a `StoreError` in place of the errors that contradictory contents cause."""
    try:
        yield
    except (StoreError, MissingDependencyError):
        raise
    # The digest was right, so this is a writer that does not keep to the layout.
    except (CoresetError, AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StoreError(f"{subject} ({error!r})", remedy=remedy) from error
