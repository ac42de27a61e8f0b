"""What `daskcoreset.build` does for ``method="coverage"``: a cover as a coreset."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import scipy.sparse as sp

from daskcoreset.core.coreset import Coreset
from daskcoreset.constructions.coverage.cover import Coverage
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.core.surroundings import package_versions, warn_caller

if TYPE_CHECKING:
    from daskcoreset.constructions.coverage.cover_result import Cover
    from daskcoreset.inputs.blocks import RowBlocks

__all__ = ["build_cover", "check_options"]


def build_cover(
    X: Any,
    y: Any = None,
    *,
    method: str | Coverage = "coverage",
    diameter: float | None = None,
    size: int | None = None,
    sample_weight: Any = None,
    chunks: int | Literal["auto"] = "auto",
    on_invalid: Literal["raise", "drop"] = "raise",
    split_every: int = 16,
    progress: bool | None = None,
) -> Coreset:
    r"""Build a coreset of core points: every row lies within half a diameter of one.

    Nothing is drawn, so there is no seed: the same input and chunks give the same bits.

    Parameters
    ----------
    X, y, sample_weight, chunks, on_invalid, split_every, progress
        As in `daskcoreset.build`. The promise is about every row, also one of weight zero.
    method : "coverage" or Coverage, default="coverage"
    diameter : float or None, default=None
        :math:`\delta`; None finds the diameter for `size`.
    size : int or None, default=None
        Core points at most. Beside a diameter, more are an error.

    Returns
    -------
    Coreset
        Core points with the number, or input weight, of the rows nearest to each, so that the
        total is that of the data. The provenance has ``diameter``, ``radius`` (the largest
        distance met), ``cells`` and ``passes`` (the reads it took).

    Raises
    ------
    InvalidInputError
        As in `daskcoreset.constructions.coverage.cover`; also when a construction is given together with
        its parameters.

    Warns
    -----
    CoresetWarning
        When every row is a core point, so that nothing was reduced.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> coreset = build_cover(X, diameter=0.5)
    >>> coreset.total_weight, coreset.provenance["passes"]
    (1000.0, 2)

    References
    ----------
    Tan, Zhang and Wang (2019), Definitions 1 and 2.
    """
    wanted = _construction(method, diameter, size)
    blocks = row_blocks(X, y, sample_weight, chunks=chunks, on_invalid=on_invalid)
    found = wanted.cover(blocks, split_every=split_every, progress=progress)
    if len(found) == found.n_rows > 1:
        warn_caller(
            f"every one of the {found.n_rows} rows is a core point at diameter={found.diameter:g}: "
            f"nothing was reduced; pass a larger diameter."
        )
    return Coreset(
        points=sp.csr_array(found.points) if blocks.sparse else found.points,
        weights=found.weights,
        indices=found.indices,
        labels=found.labels,
        provenance=_provenance(wanted, blocks, found),
    )


def _construction(method: str | Coverage, diameter: float | None, size: int | None) -> Coverage:
    if not isinstance(method, Coverage):
        return Coverage(diameter=diameter, max_points=size)
    if diameter is not None:
        raise InvalidInputError(
            f"diameter={diameter} is given beside the construction {method!r}; leave one out."
        )
    if size is not None and method.max_points is not None:
        raise InvalidInputError(
            f"size={size} is given beside {method!r}, which says max_points; leave one out."
        )
    return method if size is None else replace(method, max_points=size)


def _provenance(wanted: Coverage, blocks: RowBlocks, found: Cover) -> dict[str, Any]:
    return {
        "method": wanted.name,
        "parameters": wanted.parameters(),
        "citation": wanted.citation,
        "passes": found.reads,
        "size": len(found) if wanted.max_points is None else int(wanted.max_points),
        "m": len(found),
        "n": found.n_rows,
        "n_dropped": sum(found.sizes.values()) - found.n_rows,
        "d": blocks.rules.n_features,
        "n_blocks": blocks.n_blocks,
        "total_weight": float(found.weights.sum()),
        "cells": found.cells,
        "diameter": found.diameter,
        "radius": found.radius,
        "least_diameter": found.least_diameter,
        "source": blocks.name,
        "columns": None if blocks.columns is None else list(blocks.columns),
        "versions": package_versions(),
    }


def check_options(
    size: Any, *, compute: bool, dry_run: bool, **options: tuple[Any, Any]
) -> int | None:
    """Refuse options of `daskcoreset.build` that a cover has no use for; return the size.

    Parameters
    ----------
    size : object
    compute, dry_run : bool
    **options : (object, object)
        What was given, and the default.
    """
    if dry_run or not compute:
        raise InvalidInputError(
            'method="coverage" reads the data to decide what to read next, so it can be neither '
            "lazy nor planned; leave out compute=False and dry_run=True."
        )
    if isinstance(size, str):
        raise InvalidInputError(
            f'size={size!r} is for constructions that draw; with method="coverage" pass a '
            f"diameter, a number of core points, or both."
        )
    for name, (given, default) in options.items():
        if given != default or isinstance(given, float):
            raise InvalidInputError(
                f'{name}={given!r} has no use with method="coverage", which draws nothing; leave '
                f"it out."
            )
    found: int | None = size
    return found
