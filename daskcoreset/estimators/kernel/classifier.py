"""Kernel classifiers on core points, for any number of rows."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets

from daskcoreset.constructions.class_summary import ClassSummary, summarise_classes
from daskcoreset.constructions.coverage.cover import check_diameter
from daskcoreset.constructions.coverage.reads import cover
from daskcoreset.core.block import Block, labels_of
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.labels import plain_labels
from daskcoreset.core.linalg import dense_rows
from daskcoreset.core.messages import package_versions
from daskcoreset.core.points import deduplicate
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray, Points
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators.base import BUILD_CONSTRAINTS
from daskcoreset.estimators.checks import InMemoryData, refuse_as
from daskcoreset.estimators.decision import DecisionModel
from daskcoreset.estimators.kernel.kernels import (
    KernelDecision,
    KernelMap,
    resolve_gamma,
    warn_alike,
    warn_unscaled,
)
from daskcoreset.estimators.kernel.losses import LOSSES, resolve_loss
from daskcoreset.estimators.kernel.rows import (
    KernelProblem,
    Solution,
    TrainingRows,
    quotas_of,
    sample_classes,
    sample_core_points,
    training_rows,
)
from daskcoreset.estimators.kernel.solvers import solve_avm, solve_csvrg, solve_newton
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.objectives.linear import LinearCost

# Address of the order in which small data are covered.
_ARRANGE = 2**31 + 2

# Rows in memory at most that are ordered by value, with equal ones merged.
_SMALL = 10_000

# Core points if neither their number nor the diameter is given.
MAX_POINTS = 500

# Rows whose kernel matrix takes 3.2 GB.
MAX_GRAM_ROWS = 20_000

# Rows that Newton's method draws at least, and for every core point; and the kernel values that it
# holds at most, 512 MiB.
_MIN_ROWS, _ROWS_PER_POINT, _HELD_NUMBERS = 10_000, 100, 2**26

# What the parameters of all kernel classifiers may be.
KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
    "lam": [Interval(Real, 0, None, closed="neither"), None],
    "theta": [Real],
    "mu": [Real],
    "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
}


def check_two_classes(classes: AnyArray) -> None:
    """Check that there are two classes."""
    if len(classes) < 2:
        raise InvalidInputError(
            f"y has one class only, {classes[:1]}, among the rows with a positive weight",
            argument="y",
            remedy="pass rows of two classes or more",
        )


def _arranged(data: InMemoryData, codes: AnyArray, seed: int) -> RowBlocks:
    """Return rows in memory as blocks. Up to 10,000 are in an order that depends on values alone.

    The result is then independent of the order of the rows and of the split of their weight.
    """
    if data.X.shape[0] <= _SMALL:
        points, weights, labels = deduplicate(data.X, data.weights, codes)
        order = stream(seed, Stage.DESCENT, _ARRANGE).permutation(len(weights))
        return row_blocks(points[order], labels[order], weights[order])  # type: ignore[index] # given
    return row_blocks(data.X, codes, data.sample_weight)


def first_equal(given: InMemoryData, points: Points, labels: AnyArray) -> IndexArray:
    """Return the numbers of the first given rows that are equal to `points`, labels included."""
    rows: dict[tuple[bytes, Any], int] = {}
    used = np.flatnonzero(given.weights > 0)
    X: Any = dense_rows(given.X[used]) + 0.0  # there is one zero
    for i, row, label in zip(used.tolist(), X, given.y[used].tolist(), strict=True):
        rows.setdefault((row.tobytes(), label), i)
    wanted = zip(dense_rows(points) + 0.0, labels.tolist(), strict=True)
    return np.array([rows[row.tobytes(), label] for row, label in wanted], dtype=np.int64)


class KernelModel(DecisionModel):
    """Base of the kernel classifiers.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_problems, r), float64
    objective_ : float, or ndarray of shape (n_problems,)
    n_iter_ : int
    """

    dual_coef_: FloatArray
    gamma_: float
    lam_: float
    _decision: KernelDecision

    gamma: Any
    lam: Any
    theta: Any
    mu: Any
    random_state: Any

    def _set_solution(self, core: KernelMap, solution: Solution) -> None:
        """Set the attributes of a solution."""
        self.dual_coef_ = np.ascontiguousarray(solution.beta.T)
        self.objective_: Any = solution.objectives
        if len(solution.objectives) == 1:
            self.objective_ = float(solution.objectives[0])
        self.n_iter_ = solution.n_iter
        self._decision = KernelDecision(core, solution.beta, self.classes_)

    def _keep(self, rows: Block, weights: FloatArray, facts: dict[str, Any]) -> None:
        """Set `coreset_` to rows, with labels and numbers as given."""
        record = {
            **facts,
            "m": len(rows),
            "d": int(rows.points.shape[1]),
            "versions": package_versions(),
        }
        if self._column_names is not None:
            record["columns"] = self._column_names
        numbers: Any = rows.rows
        self.coreset_ = Coreset(rows.points, weights, numbers, rows.labels, record)


class CoresetKernelClassifier(KernelModel):
    r"""Classifier with a Gaussian kernel and few core points, for any number of rows.

    Minimises :math:`|w|^2 / 2 + (\lambda / M) \sum_i u_i\, l(y_i \langle w, \varphi(x_i)
    \rangle)` over combinations of core points, one class against the rest if there are more than
    two. M is the total weight. ``solver="csvrg"`` with ``core_points="cover"`` is the algorithm of
    Tan, Zhang and Wang (2019). The default is more accurate for
    the same number of core points, and faster. See :doc:`/guides/kernels`.

    Parameters
    ----------
    core_points : {"drawn", "cover"}, default="drawn"
        "drawn" takes the same number of random rows per class. "cover" takes those of `Coverage`.
    solver : {"newton", "csvrg", "avm"}, default="newton"
        "newton" holds drawn rows in memory. "csvrg" takes variance-reduced gradient steps over all
        rows, and "avm" one pass of plain ones, with the gradient of a row at its core point.
    loss : {"odm", "squared_hinge", "hinge"}, default="odm"
        "odm" is the loss of the optimal margin distribution machine. "hinge" is for "csvrg" and
        "avm".
    gamma : {"scale", "auto"} or float, default="scale"
        The kernel is ``exp(-gamma * distance**2)``, as in `sklearn.svm.SVC`.
    lam : float, optional
        :math:`\lambda`, by default the total weight. ``lam = C * M`` for the C of `SVC`.
    theta, mu : float, default=0.4
        For "odm". `theta`, in [0, 1), is half the width of the band of margins without loss. `mu`,
        in (0, 1], is the weight of margins above the band relative to those below.
    max_points : int, optional
        Largest number of core points, by default 500. With `diameter`, more are an error.
    diameter : float, optional
        For "cover": every row lies within half of it of a core point.
    size : int, optional
        Rows to train on, drawn from every class and weighted so that they represent all. By
        default 100 per core point for "newton", at least 10,000, and all rows for the others.
    random_state : int, Generator, RandomState or None, default=None
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    core_points_, dual_coef_ : ndarray of shape (r, d), and (1, r) or (n_classes, r)
    n_core_points_ : int
    coreset_ : Coreset
        The drawn rows, or the core points if all rows were trained on.
    classes_ : ndarray of shape (n_classes,)
    objective_ : float, or ndarray of shape (n_classes,)
        Objective of every problem, over the training rows.
    trace_ : list of dict
        "objective", summed over the problems, "reads" of the rows and "seconds" so far.
    n_iter_ : int
    diameter_, gamma_, lam_ : float

    Examples
    --------
    >>> X = np.random.default_rng(0).random((20_000, 2))
    >>> y = ((X - 0.5) ** 2).sum(axis=1) < 0.1
    >>> CoresetKernelClassifier(gamma=10.0, max_points=60, random_state=0).fit(X, y).score(X, y)
    0.9...
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KERNEL_CONSTRAINTS,
        "core_points": [StrOptions({"drawn", "cover"})],
        "solver": [StrOptions({"newton", "csvrg", "avm"})],
        "loss": [StrOptions(set(LOSSES))],
        "max_points": [Interval(Integral, 1, None, closed="left"), None],
        "diameter": [Real, None],
        "size": [Interval(Integral, 1, None, closed="left"), None],
    }

    core_points_: AnyArray
    diameter_: float

    def __init__(
        self,
        core_points: Literal["drawn", "cover"] = "drawn",
        solver: Literal["newton", "csvrg", "avm"] = "newton",
        loss: Literal["odm", "squared_hinge", "hinge"] = "odm",
        *,
        gamma: float | Literal["scale", "auto"] = "scale",
        lam: float | None = None,
        theta: float = 0.4,
        mu: float = 0.4,
        max_points: int | None = None,
        diameter: float | None = None,
        size: int | None = None,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.core_points = core_points
        self.solver = solver
        self.loss = loss
        self.gamma = gamma
        self.lam = lam
        self.theta = theta
        self.mu = mu
        self.max_points = max_points
        self.diameter = diameter
        self.size = size
        self.random_state = random_state
        self.on_invalid = on_invalid

    @property
    def n_core_points_(self) -> int:
        """Number of core points, the size of the model."""
        return len(self.core_points_)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find core points, and train.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels, or their name.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        CoresetKernelClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, there is one class only, or a cover needs more than
            `max_points`.

        Warns
        -----
        CoresetWarning
            If features are not scaled, so that the widest columns dominate distances, or the
            kernel hardly tells rows apart.

        Notes
        -----
        The model has no intercept, as in the papers. Equal rows are merged if X is in memory and
        has up to 10,000 rows. The result is then independent of their order and of the split of
        their weight.
        """
        self._validate_params()
        self._check_parameters()
        seed = resolve_seed(self.random_state)
        given = self._validate_in_memory(X, y, sample_weight)
        names = None
        if given is None:
            self._require_labels(y)
            blocks = row_blocks(X, y, sample_weight, on_invalid=self.on_invalid)
            self._set_features(X, blocks.schema.n_features, blocks.columns, blocks.cube)
        else:
            with refuse_as("y"):
                check_classification_targets(given.y)
            names = np.unique(given.y)
            blocks = _arranged(given, np.searchsorted(names, given.y), seed)
        blocks.refuse_zeros()
        summary = summarise_classes(blocks)
        self.classes_ = summary.classes if names is None else names[summary.classes]
        check_two_classes(self.classes_)
        self.gamma_ = resolve_gamma(self.gamma, self.n_features_in_, summary.variance)
        warn_unscaled(summary.low, summary.high, summary.total_variance, self.gamma_)
        core, drawn, diameter = self._core_points(blocks, summary, seed)
        rows = TrainingRows(blocks, summary.classes, summary.n_rows, dict(summary.weights))
        if drawn is not None:
            sample = row_blocks(drawn.points, drawn.labels, drawn.weights, chunks=len(drawn))
            weight = float(drawn.weights.sum())
            rows = TrainingRows(sample, summary.classes, len(drawn), {0: weight})
        machine = KernelMap(self.gamma_, np.asarray(core.points, dtype=np.float64))
        if isinstance(self.gamma, str):
            warn_alike(machine)
        self.lam_ = float(rows.weight if self.lam is None else self.lam)
        loss = resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        problem = KernelProblem(rows, machine, loss, self.lam_)
        if self.solver == "newton":
            solution = solve_newton(problem)
        elif self.solver == "csvrg":
            solution = solve_csvrg(problem, seed=seed)
        else:
            solution = solve_avm(problem, seed=seed)
        self._set_solution(machine, solution)
        self.core_points_, self.trace_ = np.asarray(core.points), rows.trace
        self.diameter_ = 2.0 * rows.radius if diameter is None else diameter
        kept = self._as_given(summary.classes, given, core if drawn is None else drawn)
        facts = {
            "method": "core points" if drawn is None else "drawn by class",
            "core_points": self.core_points,
            "diameter": self.diameter_,
            "n": summary.n_rows if given is None else given.X.shape[0],
            "seed": seed,
            "total_weight": float(kept.weights.sum()),
            "objective": LinearCost().record(),
        }
        self._keep(kept, kept.weights, facts)
        return self

    def _check_parameters(self) -> None:
        """Check arguments before the data are read."""
        resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        if self.solver == "newton" and self.loss == "hinge":
            raise InvalidInputError(
                'loss is "hinge", which has no second derivative for Newton\'s method',
                argument="loss",
                remedy='pass loss="squared_hinge", or solver="csvrg"',
            )
        if self.diameter is None:
            return
        check_diameter(self.diameter)
        if self.core_points == "drawn":
            raise InvalidInputError(
                f'diameter is {self.diameter}, but core_points="drawn" does not bound distances',
                argument="diameter",
                remedy='pass core_points="cover", or leave out diameter',
            )

    def _as_given(self, classes: AnyArray, given: InMemoryData | None, rows: Block) -> Block:
        """Return rows of blocks with the labels and numbers of the data."""
        labels = self.classes_[np.searchsorted(classes, labels_of(rows))]
        numbers: Any = rows.rows
        if given is not None:
            if given.X.shape[0] <= _SMALL:
                numbers = first_equal(given, rows.points, labels)
            numbers = given.numbers_of(numbers)
        return replace(rows, labels=plain_labels(labels), rows=numbers)

    def _core_points(
        self, blocks: RowBlocks, summary: ClassSummary, seed: int
    ) -> tuple[Block, Block | None, float | None]:
        """Find core points, training rows (None for all), and the diameter of a cover."""
        classes, diameter = summary.classes, None
        if self.core_points == "drawn":
            count = self.max_points or MAX_POINTS
            quotas = self._quotas(summary, count)
            strata = sample_classes(blocks, classes, points=count, quotas=quotas, seed=seed)
            core = sample_core_points(strata, count)
        else:
            by_default = MAX_POINTS if self.diameter is None else MAX_GRAM_ROWS
            covered = cover(blocks, self.diameter, max_points=self.max_points or by_default)
            core = Block(covered.points, covered.weights, covered.labels, covered.indices)
            diameter, quotas = covered.diameter, self._quotas(summary, len(covered))
            if quotas is not None:
                strata = sample_classes(blocks, classes, quotas=quotas, seed=seed)
        return core, None if quotas is None else training_rows(strata, quotas), diameter

    def _quotas(self, summary: ClassSummary, n_points: int) -> dict[Any, int] | None:
        """Training rows per class, or None for all rows."""
        size = self.size
        if size is None and self.solver == "newton":
            held = max(_MIN_ROWS, _HELD_NUMBERS // n_points)
            size = min(max(_MIN_ROWS, _ROWS_PER_POINT * n_points), held)
        if size is None or size >= summary.n_rows:
            return None
        return quotas_of(size, summary.classes, summary.class_weights)
