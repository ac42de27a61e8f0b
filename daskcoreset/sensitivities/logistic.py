r"""Coresets for logistic regression: square roots of leverage scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from daskcoreset.core.blocks import (
    Block,
    InvalidRow,
    check_classes,
    class_codes,
    find_bad_target,
)
from daskcoreset.core.linalg import dense, dense_rows, product, tiles
from daskcoreset.core.moments import (
    Moments,
    Scatter,
    merge_moments,
    merge_scatters,
    moments_of,
)
from daskcoreset.core.ordering import spatial_order
from daskcoreset.core.sampling import (
    Calibrated,
    Target,
    calibrate_classes,
    class_sums,
    join_targets,
)
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.core.validation import check_choice, check_flag
from daskcoreset.objectives import LinearCost
from daskcoreset.sensitivities.base import SamplingDesign, Sensitivity
from daskcoreset.sensitivities.least_squares import leverages, total_leverage

Variant: TypeAlias = Literal["calibrated", "systematic"]

# Columns at most: eigenvectors of so many take some ten seconds, for every block.
_MAX_COLUMNS = 4096

# Rows of the coreset for every mean that is calibrated.
_ROWS_PER_MEAN = 4


@dataclass(frozen=True, eq=False)
class LabelledScatter(Scatter):
    r"""Scatter of all rows, and moments by class.

    Attributes
    ----------
    classes : dict of label to Moments
        Weight and mean of every class.
    """

    classes: dict[Any, Moments]


@dataclass(frozen=True)
class LogisticDesign(SamplingDesign[LabelledScatter]):
    """The draws of `Logistic`: every class is a stratum, with calibrated weights.

    Attributes
    ----------
    variant
        As in `Logistic`.
    """

    variant: str

    def classes(self, summary: LabelledScatter) -> AnyArray:
        """Return the labels of rows of positive weight."""
        return np.array(sorted(summary.classes))

    def order(self, rows: Block, summary: LabelledScatter, inclusion: FloatArray) -> IndexArray:
        """Order by class, and within it so that neighbours are alike."""
        codes = class_codes(rows, np.array(sorted(summary.classes)))
        parts = []
        for code in range(len(summary.classes)):
            members = np.flatnonzero(codes == code)
            points: Any = rows.points
            parts.append(members[spatial_order(points[members], inclusion[members])])
        return np.concatenate(parts)

    def calibrate(
        self, rows: Block, weights: FloatArray, summary: LabelledScatter, draw_index: int = 0
    ) -> Calibrated:
        """Scale weights to those of the classes, and rake them to the means of the classes."""
        del draw_index
        if self.variant == "systematic":
            return Calibrated(weights)
        labels = self.classes(summary)
        codes = class_codes(rows, labels)
        of_class = [summary.classes[label] for label in labels.tolist()]
        totals = np.array([moments.weight for moments in of_class])

        def means() -> Target:
            gaps = dense_rows(rows.points) - summary.mean
            sums = [moments.weight * (moments.mean - summary.mean) for moments in of_class]
            return join_targets(class_sums(gaps, codes, sums))

        enough = len(rows) >= _ROWS_PER_MEAN * len(labels) * (len(summary.mean) + 1)
        ladder = [("class means",)] if enough else []
        return calibrate_classes(weights, codes, totals, {"class means": means}, ladder)


@dataclass(frozen=True)
class Logistic(Sensitivity[LabelledScatter]):
    r"""Coresets for logistic regression.

    With Q an orthonormal basis of the columns of the data, the entry of one for the intercept
    among them, a row is scored by the root of its leverage and by its share of the weight,

    .. math::

        s(x) = u(x) \left( \sqrt{\ell(x)} + \frac{1}{U} \right),
        \qquad \ell(x) = \frac{1}{U} + (x - \mu)^T S^{-1} (x - \mu),
        \qquad S = \sum_x u(x) (x - \mu)(x - \mu)^T ,

    which up to a factor that depends on the data alone bounds its sensitivity. The factor is
    large where the classes are nearly separable: no construction can do without it. One read.

    Parameters
    ----------
    variant : {"calibrated", "systematic"}, default="calibrated"
        "systematic": unbiased for every model. "calibrated": the same draw, whose weights are
        scaled until the totals of the classes are those of the data, exactly; with at least four
        rows for each of them they are raked to the means of the classes too, as far as that is
        possible, which ``provenance["calibration"]`` says.
    intercept : bool, default=True
        Whether the model has an intercept; without one leverage is about the origin.

    Raises
    ------
    InvalidInputError
        If a parameter cannot be used. When building: if labels are missing, or of one class.

    Notes
    -----
    A part of the data with d features sends a matrix of d x d numbers. A millionth of the
    variance of every column is added to it, so that columns that depend on one another do no
    harm. More than two classes share their draws: scores do not look at labels.

    Examples
    --------
    >>> import daskcoreset
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + rng.normal(size=2000) > 0
    >>> coreset = daskcoreset.build(X, y, size=100, method="logistic", random_state=0)
    >>> round(float(coreset.weights[coreset.labels].sum() - y.sum()), 6)
    0.0

    References
    ----------
    Munteanu, Schwiegelshohn, Sohler and Woodruff (2018), section 4.
    """

    variant: Variant = "calibrated"
    intercept: bool = True

    name: ClassVar[str] = "logistic"
    citation: ClassVar[str] = "munteanu2018coresets, section 4"
    total_scores_exact: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_flag("intercept", self.intercept)
        check_choice("variant", self.variant, "calibrated", "systematic")

    @property
    def objective(self) -> LinearCost:
        """The cost of logistic regression, with C = 1."""
        return LinearCost("logistic", intercept=self.intercept)

    @property
    def design(self) -> LogisticDesign:
        """Strata by class, an order within them, and calibrated weights."""
        return LogisticDesign(self.variant)

    def too_much(self, n_rows: int, n_features: int) -> str | None:
        """Return why a matrix of d x d numbers, and its eigenvectors, would take too much."""
        del n_rows
        if n_features <= _MAX_COLUMNS:
            return None
        return (
            f"a matrix of d x d numbers takes {n_features**2 / 2**27:.3g} GiB, and its "
            f"eigenvectors, for every block, {n_features**3:.1g} products; pass {_MAX_COLUMNS:,} "
            f"columns at most, for example those of sklearn.decomposition.TruncatedSVD."
        )

    def find_invalid_row(self, block: Block) -> InvalidRow | None:
        """Return the first row without a label."""
        return find_bad_target(block)

    def block_summary(
        self, block: Block, previous: LabelledScatter | None, rng: np.random.Generator
    ) -> LabelledScatter:
        """Second moments of the block, and means by class."""
        del previous, rng
        whole = moments_of(block.points, block.weights)
        d = len(whole.mean)
        matrix = np.zeros((d, d))
        points: Any = block.points
        for rows in tiles(len(block), d):
            gaps = dense(points[rows]) - whole.mean
            gaps[block.weights[rows] == 0.0] = 0.0
            matrix += product((gaps * block.weights[rows, np.newaxis]).T, gaps)
        _, labels, codes = block.coded
        classes = {}
        for code, label in enumerate(labels):
            members = np.flatnonzero((codes == code) & (block.weights > 0.0))
            if len(members):
                classes[label.item()] = moments_of(points[members], block.weights[members])
        return LabelledScatter(whole.weight, whole.mean, matrix, classes)

    def merge(self, first: LabelledScatter, second: LabelledScatter) -> LabelledScatter:
        """Merge moments, as Chan, Golub and LeVeque (1983) do."""
        classes = dict(first.classes)
        for label, moments in second.classes.items():
            earlier = classes.get(label)
            classes[label] = moments if earlier is None else merge_moments(earlier, moments)
        whole = merge_scatters(first, second)
        return LabelledScatter(whole.weight, whole.mean, whole.matrix, classes)

    def validate_summary(self, summary: LabelledScatter, *, finalized: bool) -> None:
        """Raise if all rows are of one class, or hardly two of any."""
        if finalized:
            labels = np.array(list(summary.classes))
            check_classes(labels, sum(part.count for part in summary.classes.values()))

    def scores(self, block: Block, summary: LabelledScatter) -> FloatArray:
        """Return u s(x)."""
        if summary.weight == 0.0:
            return np.zeros((1, len(block)))
        roots = np.sqrt(leverages(block.points, block.weights, summary, intercept=self.intercept))
        return (block.weights * (roots + 1.0 / summary.weight))[np.newaxis]

    def total_scores(self, local: LabelledScatter, summary: LabelledScatter) -> FloatArray:
        """Bound the sum of `scores` over a block by the root of its total leverage."""
        if local.weight == 0.0:
            return np.zeros(1)
        leverage = total_leverage(local, summary, intercept=self.intercept)
        share = local.weight / summary.weight
        return np.array([math.sqrt(local.weight * max(leverage, 0.0)) + share])
