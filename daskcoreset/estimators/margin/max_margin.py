"""Classifiers with the largest margin, for any number of rows: of all, and of all but a few."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from daskcoreset._build import build
from daskcoreset.constructions.class_summary import ClassSummary, summarise_classes
from daskcoreset.constructions.draws import Draw
from daskcoreset.constructions.margin.core_set import (
    CoreSet,
    Pass,
    Violators,
    max_margin,
    refuse_wide,
    signs_of,
)
from daskcoreset.constructions.margin.outlier import Method, OutlierMargin, OutlierSearch
from daskcoreset.constructions.margin.structured import MultiClassProblem, structured_margin
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.labels import check_classes
from daskcoreset.core.linalg import dense_rows, one_thread
from daskcoreset.core.messages import package_versions, warn_user
from daskcoreset.core.points import WeightedPoints
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.errors import CoresetWarning, InvalidInputError, NotSeparableError
from daskcoreset.estimators.base import BUILD_CONSTRAINTS
from daskcoreset.estimators.checks import is_in_memory, refuse_as, require_y
from daskcoreset.estimators.decision import DecisionModel
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.inputs.cubes import refuse_cube
from daskcoreset.inputs.cuts import HUGE_BYTES
from daskcoreset.objectives import MARGIN, LinearCost
from daskcoreset.solvers.losses import LOSSES
from daskcoreset.solvers.newton import LossesOfMargins

# What the parameters of all estimators of the largest margin may be.
MARGIN_CONSTRAINTS: dict[str, list[Any]] = {
    "epsilon": [Interval(Real, 0, 1, closed="neither")],
    "fit_intercept": ["boolean"],
    "on_inseparable": [StrOptions({"soft", "raise"})],
    "C": [Interval(Real, 0, None, closed="neither")],
    "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
}

# The epsilon of data in one block of memory, where reading costs nothing.
_EXACT = 1e-9

# The same for more than two classes, where steps are smaller.
_EXACT_CLASSES = 1e-6

# Rows of each class that the first read brings, at most.
_NEAR_ROWS = 64

# Rows that a soft margin is fitted to. More rows hardly change a few coefficients.
_SOFT_ROWS = 10_000


def check_binary(classes: AnyArray) -> None:
    """Check that there are at most two classes."""
    if len(classes) > 2:
        raise InvalidInputError(
            "Only binary classification is supported. The type of the target is multiclass",
            argument="y",
            remedy="pass two classes, or use StructuredMaxMargin for more",
        )


class MarginModel(DecisionModel):
    """Base of the estimators that keep a core set for a margin.

    Attributes
    ----------
    coreset_ : Coreset
        The core set, with weights of one. For a soft margin that is fitted to a sample, the sample
        with its weights. Missing if no row is on a boundary, as with one class.
    """

    # Why `fit` refuses coresets.
    _no_coreset = (
        "needs all rows: the largest margin depends on the rows next to the boundary, and a "
        "coreset may lack them. Pass the data, or fit CoresetSVC or CoresetKernelClassifier to the "
        "coreset."
    )

    epsilon: float
    on_invalid: Any

    def _labelled_blocks(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> RowBlocks:
        """Check and open rows with labels, and set what is known of the features."""
        refuse_cube(type(self).__name__, X)
        data = None
        if is_in_memory(groups):
            # What reads the rows drops those that are not finite, and numbers them as given.
            data = self._validate_in_memory(X, y, sample_weight, finite=False)
        if data is None:
            require_y(self, y)
            blocks = row_blocks(X, y, sample_weight, groups=groups, on_invalid=self.on_invalid)
            self._set_features(X, blocks.schema.n_features, blocks.columns)
            return blocks
        with refuse_as("y"):
            check_classification_targets(data.y)
        return row_blocks(
            data.X,
            data.y,
            data.sample_weight,
            groups=groups,
            # One block holds all examples of several rows.
            chunks="auto" if groups is None else data.X.shape[0],
            on_invalid=self.on_invalid,
        )

    def _keep_core(
        self, method: str, core: WeightedPoints, n_rows: int, facts: Mapping[str, Any]
    ) -> None:
        """Set `coreset_`, if there are any rows."""
        self.__dict__.pop("coreset_", None)  # of an earlier fit
        if not len(core):
            return
        record = {
            "method": method,
            "m": len(core),
            "n": n_rows,
            "d": core.n_features,
            "versions": package_versions(),
            "objective": MARGIN,
            "epsilon": float(self.epsilon),
            **facts,
        }
        if self._column_names is not None:
            record["columns"] = self._column_names
        self.coreset_ = Coreset(core.points, core.weights, core.indices, core.labels, record)


class HardMarginModel(MarginModel):
    """Base of the classifiers that separate all rows if they can, and else soften the margin."""

    fit_intercept: bool
    on_inseparable: str
    C: float
    random_state: RandomState
    result_: Any

    @abstractmethod
    def _separate(self, blocks: RowBlocks, summary: ClassSummary) -> Any:
        """Find the separator."""

    @abstractmethod
    def _keep(self, found: Any, summary: ClassSummary) -> None:
        """Set the attributes of a separator."""

    @abstractmethod
    def _keep_soft(self, error: NotSeparableError) -> None:
        """Set the attributes of rows that are not separable."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._validate_params()
        blocks = self._labelled_blocks(X, y, sample_weight)
        refuse_wide(blocks)
        summary = summarise_classes(blocks, n_near=_NEAR_ROWS)
        check_classes(summary.classes[:2], summary.n_used)
        try:
            found = self._separate(blocks, summary)
        except NotSeparableError as error:
            if self.on_inseparable == "raise":
                raise
            warn_user(
                f"a soft margin is fitted, because {error.problem}; "
                f'pass on_inseparable="raise" to stop.'
            )
            self._soften(blocks, summary)
            self._keep_soft(error)
        else:
            self.classes_, self.separable_ = summary.classes, True
            self._keep(found, summary)
        return self

    def _soften(self, blocks: RowBlocks, summary: ClassSummary) -> None:
        """Fit a soft margin, to a uniform sample or to all rows if they are few."""
        n_rows, classes = blocks.n_rows, summary.classes
        blocks.refuse_zeros(_SOFT_ROWS if n_rows is None else min(_SOFT_ROWS, n_rows))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "nothing was reduced", CoresetWarning)
            sample = build(
                blocks,
                size=_SOFT_ROWS,
                method="uniform",
                random_state=self.random_state,
                draw=Draw(normalize=True),
            )
        points, labels = dense_rows(sample.points).astype(np.float64), sample.labels
        fits = [
            soft_margin(
                points,
                np.where(labels == one, 1.0, -1.0),
                sample.weights,
                self.C,
                intercept=self.fit_intercept,
            )
            for one in (classes[1:] if len(classes) == 2 else classes)
        ]
        cost = LinearCost(lam=float(self.C), intercept=self.fit_intercept)
        known = {"columns": self._column_names, "objective": cost.record()}
        self.coreset_ = replace(sample, provenance={**sample.provenance, **known})
        self.classes_, self.separable_ = classes, False
        self.result_, self.margin_, self.core_margin_ = None, 0.0, 0.0
        self._set_hyperplanes(np.stack([w for w, _ in fits]), np.array([b for _, b in fits]))


@one_thread()
def soft_margin(
    rows: FloatArray, signs: FloatArray, weights: FloatArray, C: float, *, intercept: bool
) -> tuple[FloatArray, float]:
    r"""Minimise :math:`|w|^2/2 + C \sum_i u_i \max(0, 1 - y_i(\langle w, x_i\rangle + b))^2`.

    Columns are standardized first. Without an intercept, they keep their means. The penalty is on
    these columns, so the units of a column do not matter.

    Parameters
    ----------
    rows : ndarray of shape (n, d), float64
    signs : ndarray of shape (n,), float64
    weights : ndarray of shape (n,), float64
        A weight of two counts as two rows.
    C : float
    intercept : bool

    Returns
    -------
    w : ndarray of shape (d,), float64
    b : float
        For rows as they are.

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> w, b = soft_margin(rows, np.array([-1.0, 1, -1, 1]), np.ones(4), 1.0, intercept=True)
    >>> bool(w[0] > 0), round(float(-b / w[0]), 6)
    (True, 1.5)
    """
    share = weights / weights.sum()
    center = share @ rows if intercept else np.zeros(rows.shape[1])
    spread = np.sqrt(share @ (rows - center) ** 2)
    spread[spread == 0.0] = 1.0
    scaled = (rows - center) / spread
    basis = np.eye(1)
    if scaled.shape[1] > len(scaled):  # found in the space that the rows span
        basis, triangle = np.linalg.qr(scaled.T)
        scaled = triangle.T
    penalty = np.append(np.ones(scaled.shape[1]), 1.0 - intercept)
    scaled = np.column_stack([scaled, np.full(len(rows), float(intercept))])
    problem = LossesOfMargins(scaled, np.diag(penalty), C * weights, LOSSES["squared_hinge"])
    v, _, _ = problem.minimised(signs, 1e-14)
    w = (basis @ v[:-1] if len(basis) > 1 else v[:-1]) / spread
    return w, float(v[-1] - w @ center) if intercept else 0.0


class MaxMarginClassifier(HardMarginModel):
    r"""Classifier with the largest margin, up to ``1 - epsilon``, found on a few core rows.

    Two classes are separated by the hyperplane farthest from the nearest rows. More classes have
    one vector each, so that every row's own class is ahead of the others (Crammer and Singer).
    `factor_` certifies the share of the largest margin. See :doc:`/guides/kernels`.

    Parameters
    ----------
    epsilon : float, default=0.1
        The margin is at least ``1 - epsilon`` of the largest. One block in memory gets it all.
    fit_intercept : bool, default=True
        False for hyperplanes through the origin.
    on_inseparable : {"soft", "raise"}, default="soft"
        Action if nothing separates the rows: fit a soft margin to 10,000 uniform rows and warn, or
        raise. Both name a convex combination of a few rows as proof.
    C : float, default=1.0
        Weight of the squared hinge loss in the soft margin.
    violators : "auto" or int, default="auto"
        Rows added to the core set after a pass. 1 is Fig. 1 of the paper. "auto" is the larger of
        20 and twice the number of columns.
    max_passes : int, default=200
        Passes after which to stop, with a warning.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the rows of the soft margin. The largest margin needs no seed.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.build`, for the rows that `fit` reads.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, d) or (n_classes, d), and (1,) or (n_classes,)
        With two classes, of length one, so that decision values are distances.
    classes_ : ndarray of shape (n_classes,)
        Labels of rows with a positive weight.
    separable_ : bool
    margin_, core_margin_ : float
        Margin on all rows, and on the core set, an upper bound of the largest margin there is.
    factor_ : float
        ``margin_ / core_margin_``. All three are zero if the rows are not separable.
    coreset_ : Coreset
        Rows of the core set, with weight one, or of the soft margin if not separable.
    core_indices_, dual_coef_ : ndarray of shape (m,)
        Row numbers of the core set, and coefficients.
    trace_ : tuple
        Per pass: the size of the core set, and the margin on it and on the data.
    result_ : CoreSet or None
    evidence_ : daskcoreset.errors.NotSeparableError or None

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).random(size=(20_000, 2), chunks=(5_000, 2))
    >>> model = MaxMarginClassifier(epsilon=0.01).fit(X, X[:, 0] > X[:, 1])
    >>> model.factor_ >= 0.99, len(model.coreset_) < 200
    (True, True)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and section 6.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "violators": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    result_: CoreSet[Any] | None
    trace_: tuple[Pass, ...]
    evidence_: NotSeparableError | None

    def __init__(
        self,
        epsilon: float = 0.1,
        *,
        fit_intercept: bool = True,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        violators: Violators = "auto",
        max_passes: int = 200,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.on_inseparable = on_inseparable
        self.C = C
        self.violators = violators
        self.max_passes = max_passes
        self.random_state = random_state
        self.on_invalid = on_invalid

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels, or their name in X.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out, and all others count the same. The soft margin uses
            the weights.

        Returns
        -------
        MaxMarginClassifier
            The estimator itself.

        Raises
        ------
        NotSeparableError
            If the rows are not separable, and `on_inseparable` is "raise".
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or y has one class.
        """
        return self._fit(X, y, sample_weight)

    def _separate(self, blocks: RowBlocks, summary: ClassSummary) -> CoreSet[Any]:
        classes, epsilon = summary.classes, self.epsilon
        if blocks.are_views and (blocks.stored_bytes or 0) <= HUGE_BYTES:
            epsilon = min(epsilon, _EXACT if len(classes) == 2 else _EXACT_CLASSES)
        if len(classes) == 2:
            return max_margin(
                blocks,
                summary,
                epsilon=epsilon,
                intercept=self.fit_intercept,
                violators=self.violators,
                max_passes=self.max_passes,
            )
        problem = MultiClassProblem.of(summary, intercept=self.fit_intercept)
        return structured_margin(
            blocks, problem, epsilon, classes=classes, max_passes=self.max_passes, reads=1
        )

    def _keep(self, found: CoreSet[Any], summary: ClassSummary) -> None:
        self.dual_coef_ = found.dual
        if len(summary.classes) == 2:
            self.dual_coef_ *= signs_of(found.core.block, summary.classes)
            self._set_hyperplanes(found.w[None], np.array([found.hard.intercept]))
        else:
            problem = MultiClassProblem.of(summary, intercept=self.fit_intercept)
            self._set_hyperplanes(*problem.planes_of_rows(found.w))
        self.result_, self.evidence_, self.trace_ = found, None, found.trace
        self.margin_, self.core_margin_ = found.margin, found.core_margin
        self.factor_, self.core_indices_ = found.factor, found.indices
        self._keep_core("max_margin", found.rows(), found.n_rows, found.describe())

    def _keep_soft(self, error: NotSeparableError) -> None:
        self.evidence_, self.trace_, self.factor_ = error, (), 0.0
        self.core_indices_, self.dual_coef_ = np.zeros(0, dtype=np.int64), np.zeros(0)


class OutlierMaxMarginClassifier(HardMarginModel):
    r"""Classifier of two classes with the largest margin when k rows may be left out.

    See :doc:`/guides/kernels`.

    Parameters
    ----------
    k : int, default=1
        Number of rows to leave out: those with the least margin.
    epsilon : float, default=0.1
        The margin is at least ``1 - epsilon`` of the largest over all choices of k rows.
    fit_intercept : bool, default=True
    method : {"auto", "exact", "random"}, default="auto"
        "exact" leaves out one row after another that may matter (Matousek). "random" separates
        random subsets, and finds the largest margin with a probability. "auto" takes "exact" if it
        needs at most `max_problems`.
    confidence : float, default=0.99
        Probability required of "random".
    max_problems : int, default=2000
        Largest number of hard-margin problems. If "random" needs more draws, it warns.
    max_passes : int, default=100
        Largest number of passes per batch of problems.
    on_inseparable : {"soft", "raise"}, default="soft"
    C : float, default=1.0
        As in `MaxMarginClassifier`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of "random", and of the rows of the soft margin.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.build`, for the rows that `fit` reads.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d), float64
        Normal of length one. Decision values are distances.
    intercept_ : ndarray of shape (1,), float64
    classes_ : ndarray of shape (2,)
    separable_ : bool
        Whether the rows are separable when k are left out.
    margin_, core_margin_ : float
        Margin on all rows but k, and on the core set without these. Zero if not separable.
    coreset_ : Coreset
        Rows that determine the separator, with weight one. If they are not separable, the rows of
        the soft margin.
    outliers_ : ndarray of shape (k,), int64
        Numbers of the rows left out, in increasing order. Empty if not separable.
    probability_ : float
        Probability that `margin_` is at least ``1 - epsilon`` of the largest one.
    result_ : OutlierMargin or None

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [-1.0, 0.0], [-2.0, 1.0], [-3.0, 0.0]])
    >>> model = OutlierMaxMarginClassifier(k=1, fit_intercept=False).fit(X, [1, 1, 0, 0, 1])
    >>> model.outliers_, round(model.margin_, 6)
    (array([4]), 1.0)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 4 and Lemma 5.2. Matousek (1995) for "exact".
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "k": [Interval(Integral, 0, None, closed="left")],
        "method": [StrOptions({"auto", "exact", "random"})],
        "confidence": [Interval(Real, 0, 1, closed="neither")],
        "max_problems": [Interval(Integral, 1, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    result_: OutlierMargin | None

    def __init__(
        self,
        k: int = 1,
        *,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        method: Method = "auto",
        confidence: float = 0.99,
        max_problems: int = 2000,
        max_passes: int = 100,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.k = k
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.method = method
        self.confidence = confidence
        self.max_problems = max_problems
        self.max_passes = max_passes
        self.on_inseparable = on_inseparable
        self.C = C
        self.random_state = random_state
        self.on_invalid = on_invalid

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels of two classes, or their name in X.

        Returns
        -------
        OutlierMaxMarginClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or y does not have two classes. If the rows stay
            inseparable without k rows and `on_inseparable` is "raise".
        """
        return self._fit(X, y, None)

    def _separate(self, blocks: RowBlocks, summary: ClassSummary) -> OutlierMargin:
        check_binary(summary.classes)
        search = OutlierSearch(
            blocks,
            summary,
            k=self.k,
            epsilon=self.epsilon,
            intercept=self.fit_intercept,
            max_problems=self.max_problems,
            max_passes=self.max_passes,
        )
        return search.result(self.method, self.confidence, self.random_state)

    def _keep(self, found: OutlierMargin, summary: ClassSummary) -> None:
        del summary
        self._set_hyperplanes(found.w[None], np.array([found.intercept]))
        self.result_, self.outliers_ = found, found.outliers
        self.margin_, self.core_margin_ = found.margin, found.core_margin
        self.probability_ = found.probability
        facts = {"core_margin": found.core_margin, "margin": found.margin, "k": int(self.k)}
        self._keep_core("outlier_max_margin", found.core, found.n_rows, facts)

    def _keep_soft(self, error: NotSeparableError) -> None:
        del error  # it was a warning, and there is no evidence
        self.outliers_, self.probability_ = np.zeros(0, dtype=np.int64), 0.0
