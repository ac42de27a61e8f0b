"""The answer of a stored tree: one coreset of some of its leaves, from few of its nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from daskcoreset.constructions.sampling.job import DataFacts
from daskcoreset.constructions.tree.job import Settings
from daskcoreset.constructions.tree.leaf_table import ROW_BITS, LeafTable
from daskcoreset.constructions.tree.manifest import Manifest
from daskcoreset.constructions.tree.shape import Part, cover, digest_of, finer
from daskcoreset.constructions.tree.windows import no_leaves
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.typing import IndexArray


def parts_of(manifest: Manifest, flags: list[bool]) -> list[Part]:
    """Return the fewest parts of a tree that hold the chosen leaves.

    Raises
    ------
    InvalidInputError
        The tree has no leaves.
    """
    if manifest.top is None:
        raise no_leaves()
    return cover(manifest.top, flags)


def coreset_of(settings: Settings, manifest: Manifest, window: Any, *, normalize: bool) -> Coreset:
    """Return a coreset of the leaves of a window, see `CoresetTree.coreset`.

    Raises
    ------
    InvalidInputError
        There are no leaves, or none of such a name, or they have no rows.
    StoreError
        A node is gone or damaged.
    """
    leaves = manifest.leaves
    flags = leaves.select(window)
    parts = parts_of(manifest, flags)
    if not any(leaf.rows for leaf, flag in zip(leaves, flags, strict=True) if flag):
        raise InvalidInputError("leaves has no rows; pass a window with some.")
    if manifest.source is not None:  # the bits of other trees stay as they are
        parts = finer(parts)
    # By the names of the parts, which stand for the leaves below them.
    points, described = settings.last_reduction(
        [manifest.read_node(part.name) for part in parts], int(digest_of(parts), 16)
    )
    points = replace(points, indices=_count_rows(leaves, points.indices))
    all_leaves = zip(leaves, leaves.offsets, flags, strict=True)
    chosen = [(leaf, offset) for leaf, offset, flag in all_leaves if flag]
    facts = {
        **described,
        "strategy": "store",
        "version": manifest.version,
        "levels": manifest.depth,
        "leaves": [{"name": x.name, "offset": start, "rows": x.rows} for x, start in chosen],
    }
    n_dropped = sum(leaf.n_dropped for leaf, _ in chosen)
    n = sum(leaf.rows for leaf, _ in chosen) - n_dropped
    weight = float(sum(leaf.weight for leaf, _ in chosen))
    schema = manifest.schema
    columns, keys = (None, {}) if schema is None else (schema.columns, schema.keys)
    place, metric = str(manifest.place.path), settings.metric
    data = DataFacts(n, n_dropped, weight, place, columns, metric, keys)
    return settings.make_coreset(points, data, facts, normalize=normalize)


def _count_rows(leaves: LeafTable, stored: IndexArray) -> IndexArray:
    """Turn row numbers as they are kept into those that count through all leaves."""
    uids = np.array([leaf.uid for leaf in leaves])
    order = np.argsort(uids)
    positions = order[np.searchsorted(uids, stored >> ROW_BITS, sorter=order)]
    starts: IndexArray = np.array(leaves.offsets)[positions]
    return starts + (stored & ((1 << ROW_BITS) - 1))
