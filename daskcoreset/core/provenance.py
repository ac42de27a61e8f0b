"""Where a coreset comes from: a frozen record of plain JSON values.

The keys that the library writes and reads are

===================== =====================================================================
``method``            name of the construction; ``"merge"`` for a union
``parameters``        its parameters, by name
``objective``         the cost that it is made for, by name, and the parameters of that
``size``              number of rows asked for
``size_rule``         where nobody asked for a number: the rule, and what it found
``complete``          whether nothing was reduced: all rows, with their own weights
``m``, ``n``, ``d``   rows got, rows of the data, features
``seed``              root seed
``total_weight``      weight of the data, which the coreset's own matches or estimates
``versions``          versions of packages, by name
``source``            name of the data, such as a path
``columns``           names of the features
``parts``             of a merge: ``offset`` and ``provenance`` of each part
===================== =====================================================================

All are optional; others are kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["check_provenance", "freeze", "merge_provenance", "thaw"]


def freeze(value: Any, name: str = "provenance") -> Any:
    """Return a read-only copy of JSON values: mappings as proxies, sequences as tuples.

    Parameters
    ----------
    value : JSON
        None, booleans, text, numbers, NumPy scalars, and lists, tuples and mappings of them.
    name : str, default "provenance"
        What to call the value in messages.

    Returns
    -------
    JSON
        The copy; NumPy scalars have become Python's.

    Raises
    ------
    InvalidInputError
        A number is NaN or infinite, which JSON cannot say.
    InvalidTypeError
        Something else than a JSON value.

    Examples
    --------
    >>> freeze({"seed": np.int64(7), "columns": ["a", "b"]})
    mappingproxy({'seed': 7, 'columns': ('a', 'b')})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            msg = f"{name} is {value}, which JSON cannot say; use None or text"
            raise InvalidInputError(msg)
        return value
    if isinstance(value, list | tuple):
        return tuple(freeze(item, f"{name}[{i}]") for i, item in enumerate(value))
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if not wrong:
            frozen = {str(key): freeze(item, f"{name}[{key!r}]") for key, item in value.items()}
            return MappingProxyType(frozen)
        name, value = f"a key of {name}", wrong[0]
    msg = f"{name} is a {type(value).__name__}; use text, numbers, lists and mappings of these"
    raise InvalidTypeError(msg)


def thaw(value: Any) -> Any:
    """Return a writable copy of frozen values: proxies as dicts, tuples as lists.

    Parameters
    ----------
    value : JSON
        What `freeze` returned.

    Returns
    -------
    JSON
        The copy, which `json.dumps` and `pickle.dumps` accept.

    Examples
    --------
    >>> thaw(freeze({"columns": ["a", "b"]}))
    {'columns': ['a', 'b']}
    """
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def check_provenance(provenance: Mapping[str, Any], m: int, d: int) -> None:
    """Refuse a record that contradicts the rows it comes with.

    Parameters
    ----------
    provenance : mapping
        The record, frozen.
    m, d : int
        Rows and features that are there.

    Raises
    ------
    InvalidInputError
        ``m``, ``d``, ``n`` or ``columns`` is there and says something else.

    Examples
    --------
    >>> check_provenance({"m": 5}, m=4, d=2)
    Traceback (most recent call last):
    ...
    daskcoreset.errors.InvalidInputError: provenance['m'] is 5 and m is 4; correct either
    """
    for key, true in (("m", m), ("d", d)):
        if provenance.get(key, true) != true:
            msg = f"provenance[{key!r}] is {provenance[key]!r} and {key} is {true}; correct either"
            raise InvalidInputError(msg)
    n = provenance.get("n", 1)
    if not isinstance(n, int) or n < 1:
        msg = f"provenance['n'] is {n!r}; it is the number of rows of the data, at least 1"
        raise InvalidInputError(msg)
    columns = provenance.get("columns")
    if columns is not None and (
        not isinstance(columns, tuple)
        or len(columns) != d
        or not all(isinstance(column, str) for column in columns)
    ):
        msg = f"provenance['columns'] is {columns!r}; give {d} names, one a feature"
        raise InvalidInputError(msg)


def merge_provenance(
    records: Sequence[Mapping[str, Any]], offsets: Sequence[int], m: int, d: int
) -> dict[str, Any]:
    """Describe the union of coresets of different data.

    Parameters
    ----------
    records : sequence of mappings
        One record a part. The parts of a part that is itself a merge are listed in its
        place, so merging in a loop makes a list and not a tower.
    offsets : sequence of int
        What was added to the row numbers of each part.
    m, d : int
        Rows and features of the union.

    Returns
    -------
    dict
        ``size``, ``n`` and ``total_weight`` are sums, where every part has them; ``columns``
        are those of the parts that name them, and ``objective`` is that of all of them.

    Raises
    ------
    InvalidInputError
        Two parts name their columns differently.

    Examples
    --------
    >>> merged = merge_provenance([{"n": 5}, {"n": 6}], [0, 5], m=4, d=2)
    >>> merged["n"], [part["offset"] for part in merged["parts"]]
    (11, [0, 5])
    """
    parts: list[dict[str, Any]] = []
    for record, offset in zip(records, offsets, strict=True):
        if record.get("method") == "merge" and "parts" in record:
            parts += [{**part, "offset": part["offset"] + offset} for part in record["parts"]]
        else:
            parts.append({"offset": offset, "provenance": record})
    merged: dict[str, Any] = {"method": "merge", "m": m, "d": d, "parts": parts}
    for key in ("size", "n", "total_weight"):
        values = [record.get(key) for record in records]
        if all(isinstance(value, int | float) for value in values):
            merged[key] = sum(value for value in values if value is not None)
    costs = [record.get("objective") for record in records]
    if costs[0] is not None and all(cost == costs[0] for cost in costs):
        merged["objective"] = costs[0]
    named = {record["columns"] for record in records if record.get("columns") is not None}
    if len(named) > 1:
        msg = f"parts name their columns differently: {sorted(named)}; rename or reorder them"
        raise InvalidInputError(msg)
    if named:
        merged["columns"] = named.pop()
    return merged
