"""What a store holds: named arrays and attributes, checked, described and digested.

Pure bookkeeping for `daskcoreset.core.storage`; nothing here touches a disk or knows Zarr.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from daskcoreset.core.typing import AnyArray

__all__ = ["HEADER", "JSON", "Contents", "check_header", "spell_dtype"]

JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
"""What an attribute can be; tuples come back as lists."""

HEADER = "daskcoreset"
"""Name of the attribute that makes a Zarr group one of ours."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Contents:
    """Everything that one write puts into a group.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        The arrays.
    dims : mapping of str to tuple of str
        Dimension names of each array.
    attributes : mapping of str to JSON
        Attributes without the header.
    kind : str
        What the group is.
    schema_version : int
        Version of its layout.
    """

    arrays: Mapping[str, AnyArray]
    dims: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, JSON]
    kind: str
    schema_version: int

    def checked(self) -> Contents:
        """Return the same contents in plain JSON, or refuse what would not come back alike.

        Raises
        ------
        InvalidInputError
            A name, dimension, string or attribute has a value that cannot be stored.
        InvalidTypeError
            An array's dtype or an attribute's type cannot be stored.
        """
        lengths: dict[str, int] = {}
        for name, array in self.arrays.items():
            if not _NAME.fullmatch(name):
                msg = f"array name {name!r}: use letters, digits, '_' and '-', a letter first"
                raise InvalidInputError(msg)
            own = self.dims.get(name, ())
            if len(own) != array.ndim or len(set(own)) != len(own):
                msg = f"array {name!r} of shape {array.shape} has dims {own}; name each axis once"
                raise InvalidInputError(msg)
            for dim, length in zip(own, array.shape, strict=True):
                if lengths.setdefault(dim, length) != length:
                    msg = f"dimension {dim!r} has lengths {lengths[dim]} and {length}"
                    raise InvalidInputError(f"{msg}; use two names")
            _check_dtype(name, array)
        if HEADER in self.attributes:
            msg = f"attribute {HEADER!r} is reserved; use another name"
            raise InvalidInputError(msg)
        if self.schema_version < 1:
            msg = f"schema_version is {self.schema_version}; versions start at 1"
            raise InvalidInputError(msg)
        plain = _plain(self.attributes)
        return Contents(dict(self.arrays), dict(self.dims), plain, self.kind, self.schema_version)

    def header(self, *, complete: bool) -> dict[str, JSON]:
        """Describe the contents; only a complete header has the digest that lets a store open.

        Parameters
        ----------
        complete : bool
            Whether everything is written.

        Returns
        -------
        dict
            ``kind``, ``schema_version``, ``arrays`` (name to ``dtype`` and ``shape``) and,
            if complete, ``digest``.
        """
        header: dict[str, JSON] = {
            "kind": self.kind,
            "schema_version": self.schema_version,
            "arrays": self.specs(),
        }
        return {**header, "digest": self._digest(header)} if complete else header

    def specs(self) -> dict[str, JSON]:
        """Describe the arrays: name to ``dtype`` and ``shape``."""
        return {
            name: {"dtype": spell_dtype(array), "shape": list(array.shape)}
            for name, array in self.arrays.items()
        }

    def _digest(self, header: Mapping[str, JSON]) -> str:
        names = sorted(self.arrays)
        said = [header, self.attributes, {name: self.dims[name] for name in names}]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
        for name in names:
            digest.update(_bits(self.arrays[name]))
        return f"sha256:{digest.hexdigest()}"


def check_header(where: str, header: object, kind: str, schema_version: int) -> dict[str, Any]:
    """Refuse the header of a group that is not ours, not the kind, or not complete.

    Parameters
    ----------
    where : str
        The store, for messages.
    header : object
        What the group has under `HEADER`, or None.
    kind : str
        The kind it must be of.
    schema_version : int
        The version it must have.

    Returns
    -------
    dict
        Its description of the arrays, as `Contents.specs` gives it.

    Raises
    ------
    StoreError
        Any of these does not hold.
    """
    if not isinstance(header, dict):
        msg = f"{where}: a Zarr group, but not one of daskcoreset; check the path"
        raise StoreError(msg)
    if header.get("kind") != kind:
        msg = f"{where}: holds a {header.get('kind')!r}, not a {kind!r}; check the path"
        raise StoreError(msg)
    version = header.get("schema_version")
    if isinstance(version, int) and version > schema_version:
        msg = f"{where}: schema version {version} is newer than {schema_version}, the newest known"
        raise StoreError(f"{msg}; upgrade daskcoreset")
    if version != schema_version:
        msg = f"{where}: schema version {version!r} instead of {schema_version}; build it again"
        raise StoreError(msg)
    if "digest" not in header:
        msg = f"{where}: incomplete, its writing was interrupted; write it with overwrite=True"
        raise StoreError(msg)
    specs = header.get("arrays")
    if not isinstance(specs, dict):
        msg = f"{where}: its header names no arrays; restore it from a copy or build it again"
        raise StoreError(msg)
    return specs


def spell_dtype(array: AnyArray) -> str:
    """Spell an array's dtype for the header, alike on every platform.

    Parameters
    ----------
    array : ndarray
        Array of a dtype that can be stored.

    Returns
    -------
    str
        ``"string"`` for variable-length text, otherwise NumPy's code in little-endian order.

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
        msg = f"attributes must be plain JSON: {error}; convert them first"
        raise InvalidTypeError(msg) from error
    except (ValueError, RecursionError) as error:
        msg = f"attributes must be plain JSON: {error}; drop or replace the value"
        raise InvalidInputError(msg) from error
    return plain


def _check_dtype(name: str, array: AnyArray) -> None:
    dtype = array.dtype
    if dtype.kind == "U":
        try:
            "".join(array.ravel().tolist()).encode()
        except ValueError as error:
            msg = f"array {name!r} holds text that is not Unicode ({error}); clean it first"
            raise InvalidInputError(msg) from error
    elif dtype.kind == "T":
        if hasattr(dtype, "na_object"):
            msg = f"array {name!r} may hold missing strings; fill them first"
            raise InvalidTypeError(msg)
    elif dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        msg = f"array {name!r} has dtype {dtype}, which has no plain form in Zarr; convert it, "
        raise InvalidTypeError(msg + "text with .astype(str) and numbers to 64 bits or fewer")
