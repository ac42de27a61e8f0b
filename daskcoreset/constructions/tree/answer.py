"""The answer of a stream or a stored tree: one last draw, and where its rows come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from daskcoreset.constructions.tree.job import concatenate_parts, record_of
from daskcoreset.constructions.tree.schema import canonical
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.validation import check_flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from daskcoreset.constructions.tree.persistence import Settings
    from daskcoreset.core.points import WeightedPoints
    from daskcoreset.core.typing import IndexArray


@dataclass(frozen=True, eq=False)
class AnswerInfo:
    """What is known of the rows that an answer stands for.

    Attributes
    ----------
    strategy : str
        "stream" or "store".
    n, n_dropped : int
        Rows it stands for, and rows that were left out.
    weight : float
        Total weight of these rows.
    columns : tuple of str or None
    facts : mapping
        Further facts for the provenance.
    """

    strategy: str
    n: int
    n_dropped: int
    weight: float
    columns: tuple[str, ...] | None
    facts: Mapping[str, Any]

    def coreset(
        self,
        parts: Sequence[WeightedPoints],
        settings: Settings,
        rng: np.random.Generator,
        *,
        normalize: bool,
        numbers: Callable[[IndexArray], IndexArray] = lambda stored: stored,
    ) -> Coreset:
        """Unite parts, reduce them to the size asked for, and say where it comes from.

        Parameters
        ----------
        parts : sequence of WeightedPoints
            At least one.
        settings : Settings
        rng : numpy.random.Generator
        normalize : bool
            Whether weights are scaled to the total weight.
        numbers : callable, optional
            Turns row numbers as they are kept into those of the data.

        Raises
        ------
        InvalidInputError
            If no row has a positive weight.
        """
        check_flag("normalize", normalize)
        union = concatenate_parts(parts)
        if not union.weights.any():
            raise InvalidInputError(
                "sample_weight is zero on every row; give at least one row a positive weight."
            )
        reducer, size = settings.reducer, settings.size
        said = reducer.describe(union, rng)
        points = reducer.finish(union, size, rng)
        weights = points.weights
        if normalize and self.n > size:
            weights = weights * (self.weight / weights.sum())
        record = {
            **record_of(
                reducer,
                self.strategy,
                size,
                settings.inner_size,
                settings.seed,
                n_clusters=settings.n_clusters,
            ),
            "normalized": normalize,
            "m": len(points),
            "n": self.n,
            "n_dropped": self.n_dropped,
            "d": points.n_features,
            "total_weight": self.weight,
            **said,
            "columns": None if self.columns is None else list(self.columns),
            **self.facts,
        }
        labels = None if points.labels is None else canonical(points.labels)
        return Coreset(points.points, weights, numbers(points.indices), labels, record)
