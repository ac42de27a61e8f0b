"""Labelled rows on their way into a kernel machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.estimators.base import Held
from daskcoreset.core.canonical import canonical
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.core.random import Stage, stream
from daskcoreset.core.typing import AnyArray

if TYPE_CHECKING:
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["arranged", "check_known"]

_ARRANGE = 2**31 + 2
"""Address of the order in which small data are covered."""

_SMALL = 10_000
"""So many rows in memory are ordered by value, and equal ones merged, at no cost."""


def check_known(labels: AnyArray, names: AnyArray) -> None:
    """Refuse classes that are not among `names`."""
    unknown = labels[~np.isin(labels, names)]
    if len(unknown):
        raise InvalidInputError(
            f"y has the class {unknown[0]}, which is not among {names}; pass all classes in the "
            f"first call of partial_fit."
        )


def arranged(held: Held, codes: AnyArray, seed: int) -> RowBlocks:
    """Rows in memory as blocks; a few of them in an order that depends on their values alone.

    Neither the order of the rows nor how their weight is split then matters.
    """
    points, weights = held.X, held.sample_weight
    if points.shape[0] <= _SMALL:
        ones = np.ones(points.shape[0])
        points, merged, labels = canonical(points, ones if weights is None else weights, codes)
        order = stream(seed, Stage.DESCENT, _ARRANGE).permutation(len(merged))
        return row_blocks(points[order], labels[order], merged[order])  # type: ignore[index] # given
    return row_blocks(points, codes, weights)
