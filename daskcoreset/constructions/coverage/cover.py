"""delta-covers of data of any size: every row lies within half a diameter of a core point."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from daskcoreset.constructions.coverage.farthest_first import farthest_first
from daskcoreset.constructions.coverage.metric import Cells, Sorted, metric_of
from daskcoreset.constructions.coverage.result import Cover, take_rows
from daskcoreset.constructions.coverage.search import Search
from daskcoreset.constructions.tree.reducer import Reducer
from daskcoreset.core.blocks import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import (
    InvalidInputError,
    InvalidTypeError,
    package_versions,
    warn_user,
)
from daskcoreset.core.linalg import csr_rows, dense_rows
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.validation import as_int, check_choice, is_number, shown
from daskcoreset.inputs.blocks import RowBlocks

# How core points are chosen: as rows come, or the farthest row next.
Strategy = Literal["online", "farthest"]

# Core points at most where nothing is said: more would be neither small nor quick to use.
MAX_POINTS = 100_000


@dataclass(frozen=True)
class Coverage:
    r"""The construction of covers, for ``daskcoreset.build(X, method=Coverage(diameter=0.3))``.

    Parameters
    ----------
    diameter : float or None, default=None
    max_points : int or None, default=None
    cells : {"euclidean", "chebyshev"}, default="euclidean"
    strategy : {"online", "farthest"}, default="online"
        As in `cover`, with the same errors.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> few = Coverage(max_points=10).cover(row_blocks(X))
    >>> len(few) <= 10, 0.5 < few.diameter < 0.8
    (True, True)
    """

    diameter: float | None = None
    max_points: int | None = None
    cells: Cells = "euclidean"
    strategy: Strategy = "online"

    name: ClassVar[str] = "coverage"
    citation: ClassVar[str] = "tan2019coreset, Definitions 1 and 2"

    def __post_init__(self) -> None:
        check_choice("cells", self.cells, "euclidean", "chebyshev")
        check_choice("strategy", self.strategy, "online", "farthest")
        if self.diameter is None and self.max_points is None:
            raise InvalidInputError(
                "neither diameter nor max_points is given; pass a diameter, or the number of core "
                "points to find one for."
            )
        if self.diameter is not None:
            _check_diameter(self.diameter)
        if self.max_points is not None:
            as_int("max_points", self.max_points)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)

    def cover(
        self,
        blocks: RowBlocks,
        *,
        given: Block | None = None,
        split_every: int = 16,
        progress: bool | None = False,
    ) -> Cover:
        """Cover all rows; see `cover`.

        Parameters
        ----------
        blocks : RowBlocks
        given : Block, optional
            Rows of the data, numbered as in the whole, that are core points whatever is found:
            fewer than `max_points`, and distinct. Cells are opened for rows outside theirs.
        split_every, progress
            As in `cover`.
        """
        if not isinstance(blocks, RowBlocks):
            raise InvalidTypeError(f"blocks is {shown(blocks)}; pass row_blocks(X).")
        as_int("split_every", split_every, 2)
        blocks.refuse_zeros()
        max_points = MAX_POINTS if self.max_points is None else int(self.max_points)
        diameter = None if self.diameter is None else float(self.diameter)
        rows = None if given is None else take_rows(given, 0, np.arange(len(given)))
        search = Search(
            blocks, self.cells, diameter, max_points, split_every, progress, rows,
            bounded=self.max_points is None,
        )  # fmt: skip
        return search.farthest() if self.strategy == "farthest" else search.online()


def cover(
    blocks: RowBlocks,
    diameter: float | None = None,
    *,
    max_points: int | None = None,
    cells: Cells = "euclidean",
    strategy: Strategy = "online",
    split_every: int = 16,
    progress: bool | None = False,
) -> Cover:
    r"""Cover all rows with cells of a diameter, or with a number of cells.

    Parameters
    ----------
    blocks : RowBlocks
    diameter : float or None, default=None
        :math:`\delta`: every row comes to lie within half of it of a core point, by a margin for
        rounding: where many rows differ by the same distance, as with binary features, pass
        slightly more than twice that. None finds the diameter for `max_points`.
    max_points : int or None, default=None
        With a diameter: more core points are an error; None allows 100,000, and as many as take no
        more than 10 ** 10 distances, or 4,096 a row, by what a sample of the rows foretells.
        Without one: core points to use at most.
    cells : {"euclidean", "chebyshev"}, default="euclidean"
        Balls, or boxes with sides along the axes, within which all columns differ by at most half
        the diameter from the core point.
    strategy : {"online", "farthest"}, default="online"
        "online": a row outside all cells opens a new one (AVM). One read opens cells in every
        block and merges them, one or two more open what the merges left uncovered, the last one
        counts: two reads of a single block, a few more of many. Without a diameter there are
        more: one that doubles, and so bounds the diameter, some that bisect it to 4 %, then those
        that a diameter takes. All but the last are cheap.
        "farthest": the row farthest from the core points becomes one (CVM, Gonzalez). Two reads of
        a single block, some more of many, where every one costs as much as the last one of
        "online". Core points are more for a diameter, and the diameter for a number of them is
        larger (``docs/guide/kernels.md``).
    split_every : int, default=16
        As in `daskcoreset.build`.
    progress : bool or None, default=False
        As in `daskcoreset.build`.

    Returns
    -------
    Cover
        The same bits on every scheduler. Nothing is random.

    Raises
    ------
    InvalidInputError
        If the diameter is not positive and finite, neither diameter nor `max_points` is given, a
        cover of this diameter needs more than `max_points` core points, or too many distances, no
        row has a weight, squared distances overflow, or blocks of sparse rows have more than
        16,384 columns and, zeros included, 2 ** 28 numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset.inputs.blocks import row_blocks
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> core = cover(row_blocks(X), 0.5)
    >>> float(core.weights.sum()), bool(core.nearest(X)[1].max() <= 0.25)
    (1000.0, True)

    References
    ----------
    Tan, Zhang and Wang (2019), Definitions 1 and 2; Le et al. (2017); Tsang, Kwok and Cheung
    (2005).
    """
    coverage = Coverage(diameter, max_points, cells, strategy)
    return coverage.cover(blocks, split_every=split_every, progress=progress)


def _check_diameter(diameter: Any) -> None:
    if not is_number(diameter):
        raise InvalidTypeError(f"diameter must be a number, got {diameter!r}; pass a float.")
    if not 1e-140 < float(diameter) < 1e140:  # its square must be a number as well
        raise InvalidInputError(
            f"diameter must be positive and finite (and its square, too), got {diameter}; "
            f"pass about a tenth of the extent of the data to begin with."
        )


def build_cover(
    coverage: Coverage,
    blocks: RowBlocks,
    *,
    split_every: int = 16,
    progress: bool | None = None,
) -> Coreset:
    """Build a coreset of core points: every row lies within half a diameter of one.

    Nothing is drawn, so there is no seed: the same input and chunks give the same bits.

    Parameters
    ----------
    coverage : Coverage
    blocks : RowBlocks
        Rows of weight zero are covered, too.
    split_every, progress
        As in `daskcoreset.build`.

    Returns
    -------
    Coreset
        Core points with the number, or input weight, of the rows nearest to each, so that the
        total is that of the data. The provenance has ``diameter``, ``radius`` (the largest
        distance met), ``cells`` and ``passes`` (the reads it took).

    Warns
    -----
    CoresetWarning
        When every row is a core point, so that nothing was reduced.

    References
    ----------
    Tan, Zhang and Wang (2019), Definitions 1 and 2.
    """
    core = coverage.cover(blocks, split_every=split_every, progress=progress)
    if len(core) == core.n_rows > 1:
        warn_user(
            f"every one of the {core.n_rows} rows is a core point at diameter={core.diameter:g}: "
            f"nothing was reduced; pass a larger diameter."
        )
    return Coreset(
        points=csr_rows(core.points) if blocks.sparse else core.points,
        weights=core.weights,
        indices=core.indices,
        labels=core.labels,
        provenance=_provenance(coverage, blocks, core),
    )


def resolve_coverage(method: Any, diameter: float | None, size: int | None) -> Coverage:
    """Return the construction that ``method``, ``diameter`` and ``size`` of a build stand for."""
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


def _provenance(coverage: Coverage, blocks: RowBlocks, core: Cover) -> dict[str, Any]:
    return {
        "method": coverage.name,
        "parameters": coverage.parameters(),
        "citation": coverage.citation,
        "passes": core.reads,
        "size": len(core) if coverage.max_points is None else int(coverage.max_points),
        "m": len(core),
        "n": core.n_rows,
        "n_dropped": sum(core.sizes.values()) - core.n_rows,
        "d": blocks.schema.n_features,
        "n_blocks": blocks.n_blocks,
        "total_weight": float(core.weights.sum()),
        "cells": core.cells,
        "diameter": core.diameter,
        "radius": core.radius,
        "least_diameter": core.least_diameter,
        "source": blocks.name,
        "columns": None if blocks.columns is None else list(blocks.columns),
        **blocks.keys,
        "versions": package_versions(),
        **({} if blocks.schema.metric == "euclidean" else {"metric": blocks.schema.metric}),
    }


def check_options(
    size: int | str | None, *, compute: bool, dry_run: bool, **options: tuple[Any, Any]
) -> int | None:
    """Check the options of `daskcoreset.build` for a cover; return the size.

    Parameters
    ----------
    size : int, str or None
    compute, dry_run : bool
    **options : (object, object)
        Value, and default.
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
    for name, (value, default) in options.items():
        # By kind first: arrays and missing values are neither equal nor unequal.
        if type(value) is not type(default) or value != default:
            raise InvalidInputError(
                f'{name}={shown(value)} has no use with method="coverage", which draws nothing; '
                f"leave it out."
            )
    return size


@dataclass(frozen=True)
class CoverReducer(Reducer):
    r"""Core points of weighted rows, for streams and stored trees.

    A node takes the farthest row, again and again, until it has `size` rows or all lie within
    its share of the radius, and gives every core point the weight of the rows nearest to it.
    Totals are kept. What a node moves by its share, and the nodes above it by theirs, adds up: a
    row lies within the sum of the shares, `diameter` / 2, of a core point, if no node
    ran out of room. `daskcoreset.coverage.cover`, which may read more than once, needs far fewer
    core points for the same diameter.

    Parameters
    ----------
    diameter : float or None, default=None
        None leaves it to `size` alone.
    levels : int, default=4
        Nodes between a row and the root, the leaf included: each has an equal share of the
        radius. Four suffice for 65,536 blocks where 16 are merged at a time.
    cells : {"euclidean", "chebyshev"}, default="euclidean"

    Examples
    --------
    >>> rows = WeightedPoints(np.arange(6.0)[:, None], np.ones(6), np.arange(6))
    >>> few = CoverReducer().reduce(rows, 2, np.random.default_rng(0))
    >>> few.indices, few.weights
    (array([0, 5]), array([3., 3.]))

    References
    ----------
    Tsang, Kwok and Cheung (2005), Core vector machines, section 4.1; Tan, Zhang and Wang (2019),
    Definition 1.
    """

    diameter: float | None = None
    levels: int = 4
    cells: Cells = "euclidean"

    citation: ClassVar[str] = Coverage.citation

    def __post_init__(self) -> None:
        levels: Any = self.levels
        # The same checks; one core point in place of the size of the tree.
        Coverage(self.diameter, 1, self.cells)
        if isinstance(levels, bool) or not isinstance(levels, int) or levels < 1:
            raise InvalidInputError(f"levels must be at least 1, got {levels!r}; pass an int.")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)

    def reduce(self, points: WeightedPoints, size: int, rng: np.random.Generator) -> WeightedPoints:
        """Return the core points of weighted rows."""
        del rng
        metric = metric_of(self.cells)
        share = 0.0 if self.diameter is None else self.diameter / 2 / self.levels
        limit = metric.limit(share, points.n_features)
        rows = np.sort(farthest_first(points.points, size, metric, limit=limit).rows)
        if len(rows) == len(points):
            return points
        kept = points.take(rows)
        core_points = Sorted.of(dense_rows(kept.points), metric)
        weights, _ = core_points.cell_weights(points.points, points.weights)
        return WeightedPoints(kept.points, weights, kept.indices, kept.labels)
