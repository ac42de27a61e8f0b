"""One leaf of a stored tree: rows that are read once, and their coreset."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from daskcoreset.constructions.tree.job import Settings, TreeJob, with_canonical_labels
from daskcoreset.constructions.tree.persistence import RowSchema
from daskcoreset.core.points import WeightedPoints, to_arrays
from daskcoreset.core.random import Stage, stream
from daskcoreset.inputs.cubes import refuse_cube

# Coresets of blocks united at a time where a leaf's data are out of core.
_SPLIT_EVERY = 16


class LeafRows(NamedTuple):
    """What was read of a leaf.

    Attributes
    ----------
    points : WeightedPoints
        Its coreset, row numbers counted from its first row.
    schema : RowSchema
        Of the rows as they came.
    rows, n_dropped : int
        Rows as read, and those of them that were left out.
    weight : float
    nbytes : int
        Bytes of the rows once decoded.
    """

    points: WeightedPoints
    schema: RowSchema
    rows: int
    n_dropped: int
    weight: float
    nbytes: int


def read_leaf(
    data: tuple[Any, Any, Any],
    settings: Settings,
    address: tuple[int, int],
    check: Callable[[RowSchema], object],
    progress: bool | None = False,
) -> LeafRows:
    """Read rows once, and reduce them.

    Parameters
    ----------
    data : tuple
        X, y and sample_weight.
    settings : Settings
        Of the tree.
    address : (int, int)
        Of the leaf's random numbers.
    check : callable
        Refuses rows of another schema, before they are read.
    progress : bool or None, default=False
    """
    refuse_cube("a stored tree", data[0])
    blocks = settings.open(*data)
    schema = replace(RowSchema.of(blocks, None), keys=blocks.keys)
    check(schema)
    rng = stream(settings.seed, Stage.TREE_LEAVES, *address)
    leaf_settings = replace(settings, size=settings.inner_size, seed=int(rng.integers(2**63)))
    results = TreeJob(blocks, leaf_settings, _SPLIT_EVERY, part=True).root(progress)
    node = results.value
    return LeafRows(
        node.points,
        schema,
        node.read,
        results.n_rows - results.n_kept,
        node.weight,
        blocks.stored_bytes or 0,
    )


def number_of(name: str) -> int:
    """Return the number that addresses the random numbers of a leaf by its name."""
    return int.from_bytes(
        hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=16).digest()
    )


def content_digest(name: str, points: WeightedPoints) -> str:
    """Return 32 hexadecimal digits that stand for a leaf's name and coreset, bit by bit.

    Examples
    --------
    >>> points = WeightedPoints(np.eye(2), np.ones(2), np.arange(2))
    >>> content_digest("a", points) == content_digest("b", points)
    False
    """
    arrays, _, layout = to_arrays(with_canonical_labels(points))
    digest = hashlib.blake2b(repr((name, layout)).encode(), digest_size=16)
    for key in sorted(arrays):
        array = np.ascontiguousarray(arrays[key])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(repr((key, little.dtype.str, little.shape)).encode())
        digest.update(little.tobytes())
    return digest.hexdigest()
