"""delta-covers as coresets: every row lies within half a diameter of a core point."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from daskcoreset.constructions.coverage.reads import Cover, cover
from daskcoreset.constructions.job import on_grid
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.linalg import csr_rows
from daskcoreset.core.messages import package_versions, warn_user
from daskcoreset.core.validation import as_float, as_int
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.blocks import RowBlocks


@dataclass(frozen=True)
class Coverage:
    """Core points such that every row lies within half a diameter of one (a delta-cover).

    Each core point has the number of the rows nearest to it as weight, or their total input weight.
    The provenance has ``diameter``, ``radius`` (the largest distance of a row from its core point),
    ``least_diameter`` and ``passes``. Covers serve core-point machines: see :doc:`/guides/kernels`.

    Parameters
    ----------
    diameter : float, optional
        Each row lies within half of it of a core point. A row outside all cells opens a new cell
        (the online rule of AVM). It takes two passes over a single block, and up to six over many
        blocks. More than 100,000 core points raise an error.
    size : int, optional
        Largest number of core points. The row farthest from all core points becomes the next one.
        The diameter is at most twice the smallest diameter of any cover of that size, for which
        ``least_diameter`` is a lower bound. Passes grow with the logarithm of `size`. Pass either
        `diameter` or `size`.

    Raises
    ------
    InvalidInputError, InvalidTypeError
        If none or both are given, or one is out of range.

    Warns
    -----
    CoresetWarning
        If every row is a core point, so that nothing was reduced.

    Notes
    -----
    Nothing is random. The same input and chunks give the same result. A distance equal to the
    radius may count as outside because of rounding. If many rows differ by the same distance, as
    with binary features, pass slightly more than twice that distance.

    References
    ----------
    Tan, Zhang and Wang (2019), Definitions 1 and 2. Le et al. (2017), Approximation vector
    machines, section 4. Gonzalez (1985), Clustering to minimize the maximum intercluster distance.

    Examples
    --------
    >>> import numpy as np
    >>> from daskcoreset import build
    >>> X = np.random.default_rng(0).random((1000, 2))
    >>> core = build(X, method=Coverage(diameter=0.5))
    >>> core.total_weight, core.provenance["radius"] <= 0.25
    (1000.0, True)
    >>> len(build(X, method=Coverage(size=10)))
    10
    """

    diameter: float | None = None
    size: int | None = None

    name: ClassVar[str] = "coverage"
    citation: ClassVar[str] = "tan2019coreset, Definitions 1 and 2"

    def __post_init__(self) -> None:
        if self.size is not None:
            as_int("size", self.size)
        if self.diameter is not None:
            check_diameter(self.diameter)
        if self.diameter is not None and self.size is not None:
            raise InvalidInputError(
                f"diameter={self.diameter} and size={self.size} are given, and each "
                "determines the other",
                argument="diameter",
                remedy="pass one of them",
            )
        if self.diameter is None and self.size is None:
            raise InvalidInputError(
                "diameter and size are missing",
                argument="diameter",
                remedy="pass the diameter of the cells, or the number of core points",
            )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return asdict(self)


def check_diameter(diameter: Any) -> None:
    """Check that the square of a diameter is a positive number."""
    example = "a tenth of the extent of the data"
    as_float("diameter", diameter, example, minimum=1e-140, maximum=1e140)


def cover_rows(blocks: RowBlocks, coverage: Coverage, progress: bool | None) -> Coreset:
    """Build the coreset of core points, of rows of weight zero too.

    Each pass decides whether another one is needed.

    Warns
    -----
    CoresetWarning
        If every row is a core point, so that nothing was reduced.
    """
    diameter = None if coverage.diameter is None else float(coverage.diameter)
    max_points = None if coverage.size is None else int(coverage.size)
    core = cover(blocks, diameter, max_points=max_points, progress=progress)
    if len(core) == core.n_rows > 1:
        warn_user(
            f"every one of the {core.n_rows} rows is a core point at "
            f"diameter={core.diameter:g}: nothing was reduced; pass a larger diameter."
        )
    coreset = Coreset(
        points=csr_rows(core.points) if blocks.sparse else core.points,
        weights=core.weights,
        indices=core.indices,
        labels=core.labels,
        provenance=_provenance(coverage, blocks, core),
    )
    found: Coreset = on_grid(coreset, blocks.cube)
    return found


def _provenance(coverage: Coverage, blocks: RowBlocks, core: Cover) -> dict[str, Any]:
    return {
        "method": coverage.name,
        "parameters": coverage.parameters(),
        "citation": coverage.citation,
        "passes": core.reads,
        "size": len(core) if coverage.size is None else int(coverage.size),
        "m": len(core),
        "n": core.n_rows,
        "n_dropped": core.n_dropped,
        "d": blocks.schema.n_features,
        "n_blocks": blocks.n_blocks,
        "total_weight": float(core.weights.sum()),
        "diameter": core.diameter,
        "radius": core.radius,
        "least_diameter": core.least_diameter,
        "source": blocks.name,
        "columns": None if blocks.columns is None else list(blocks.columns),
        **blocks.keys,
        "versions": package_versions(),
        **({} if blocks.schema.metric == "euclidean" else {"metric": blocks.schema.metric}),
    }
