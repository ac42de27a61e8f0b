"""Kernel classifiers on core points, for any number of rows."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskcoreset.constructions.class_summary import ClassSummary, summarise_classes
from daskcoreset.constructions.coverage.cover import check_diameter
from daskcoreset.constructions.coverage.reads import cover
from daskcoreset.core.block import Block
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.labels import check_classes, plain_labels
from daskcoreset.core.messages import package_versions
from daskcoreset.core.points import distinct_rows
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
from daskcoreset.errors import InvalidInputError
from daskcoreset.estimators.base import BUILD_CONSTRAINTS
from daskcoreset.estimators.checks import InMemoryData, require_y
from daskcoreset.estimators.decision import DecisionModel
from daskcoreset.estimators.kernel.kernels import (
    KernelDecision,
    KernelMap,
    resolve_gamma,
    warn_of_scales,
)
from daskcoreset.estimators.kernel.objective import KernelProblem, Solution
from daskcoreset.estimators.kernel.rows import (
    quotas_of,
    sample_classes,
    sample_core_points,
    training_rows,
)
from daskcoreset.estimators.kernel.solvers import solve_avm, solve_csvrg, solve_newton
from daskcoreset.inputs.blocks import RowBlocks, row_blocks
from daskcoreset.objectives.linear import LinearCost
from daskcoreset.solvers.losses import LOSSES, MarginLoss, resolve_loss

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
    "theta": [Interval(Real, 0, 1, closed="left")],
    "mu": [Interval(Real, 0, 1, closed="right")],
    "on_invalid": BUILD_CONSTRAINTS["on_invalid"],
}


def distinct_block(data: InMemoryData) -> Block:
    """Return rows in memory by value, equal ones merged, with their numbers as given."""
    first, weights = distinct_rows(data.X, data.weights, data.y)
    return Block(data.X[first], weights, plain_labels(data.y[first]), data.numbers_of(first))


def blocks_of(data: InMemoryData, seed: int) -> tuple[RowBlocks, IndexArray | None]:
    """Return rows in memory as blocks, and the numbers as given of their rows. None for the same.

    Up to 10,000 rows are in an order that depends on values alone. The result is then independent
    of the order of the rows and of the split of their weight.
    """
    if data.X.shape[0] > _SMALL:
        return row_blocks(data.X, data.y, data.sample_weight), data.numbers
    rows = distinct_block(data)
    rows = rows.take(stream(seed, Stage.DESCENT, _ARRANGE).permutation(len(rows)))
    return row_blocks(rows.points, rows.labels, rows.weights), rows.rows


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

    def _machine(self, summary: ClassSummary, points: Any) -> KernelMap:
        """Return the kernel of core points. Warn if gamma does not suit the columns."""
        gamma = resolve_gamma(self.gamma, points.shape[1], summary.variance)
        machine = KernelMap(gamma, np.asarray(points, dtype=np.float64))
        warn_of_scales(machine, chosen=not isinstance(self.gamma, str))
        return machine

    def _set_fitted(
        self,
        core: KernelMap,
        solution: Solution,
        classes: AnyArray,
        kept: Block,
        facts: dict[str, Any],
    ) -> None:
        """Set the attributes of a fit. `coreset_` gets rows with labels and numbers as given."""
        self.classes_, self.gamma_ = classes, core.gamma
        self.dual_coef_ = np.ascontiguousarray(solution.beta.T)
        self.objective_: Any = solution.objectives
        if len(solution.objectives) == 1:
            self.objective_ = float(solution.objectives[0])
        self.n_iter_ = solution.n_iter
        self._decision = KernelDecision(core, solution.beta, classes)
        record = {
            **facts,
            "m": len(kept),
            "d": int(kept.points.shape[1]),
            "versions": package_versions(),
        }
        if self._column_names is not None:
            record["columns"] = self._column_names
        numbers: Any = kept.rows
        self.coreset_ = Coreset(kept.points, kept.weights, numbers, kept.labels, record)


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
        Largest number of core points, by default 500 and at most 20,000. With `diameter`, more are
        an error.
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
        "max_points": [Interval(Integral, 1, MAX_GRAM_ROWS, closed="both"), None],
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
            If features are not scaled, so that the widest columns dominate distances, the kernel
            hardly tells rows apart, or a solver takes long.

        Notes
        -----
        The model has no intercept, as in the papers. Equal rows are merged if X is in memory and
        has up to 10,000 rows. The result is then independent of their order and of the split of
        their weight.
        """
        self._validate_params()
        loss = self._checked_loss()
        seed = resolve_seed(self.random_state)
        data, numbers = self._validate_in_memory(X, y, sample_weight), None
        if data is None:
            require_y(self, y)
            blocks = row_blocks(X, y, sample_weight, on_invalid=self.on_invalid)
        else:
            blocks, numbers = blocks_of(data, seed)
        blocks.refuse_zeros()
        summary = summarise_classes(blocks)
        check_classes(summary.classes, summary.n_used)
        core, drawn, diameter = self._core_points(blocks, summary, seed)
        machine = self._machine(summary, core.points)
        rows, n_rows, weights = blocks, summary.n_rows, summary.weights
        if drawn is not None:
            rows = row_blocks(drawn.points, drawn.labels, drawn.weights, chunks=len(drawn))
            n_rows, weights = len(drawn), {0: float(drawn.weights.sum())}
        lam = float(sum(weights.values()) if self.lam is None else self.lam)
        problem = KernelProblem(rows, summary.classes, n_rows, weights, machine, loss, lam)
        if self.solver == "newton":
            solution = solve_newton(problem)
        elif self.solver == "csvrg":
            solution = solve_csvrg(problem, seed=seed)
        else:
            solution = solve_avm(problem, seed=seed)
        diameter = 2.0 * problem.radius if diameter is None else diameter
        kept = core if drawn is None else drawn
        if numbers is not None:
            kept = replace(kept, rows=numbers[kept.rows])
        facts = {
            "method": "core points" if drawn is None else "drawn by class",
            "core_points": self.core_points,
            "diameter": diameter,
            "n": summary.n_rows if data is None else data.X.shape[0],
            "seed": seed,
            "total_weight": float(kept.weights.sum()),
            "objective": LinearCost().record(),
        }
        if data is None:
            self._set_features(X, blocks.schema.n_features, blocks.columns, blocks.cube)
        self.core_points_, self.diameter_ = np.asarray(core.points), diameter
        self.lam_, self.trace_ = lam, problem.trace
        self._set_fitted(machine, solution, summary.classes, kept, facts)
        return self

    def _checked_loss(self) -> MarginLoss:
        """Return the loss, after checks of the arguments that need no data."""
        loss = resolve_loss(self.loss, theta=self.theta, mu=self.mu)
        if self.solver == "newton" and loss.linear:
            raise InvalidInputError(
                'loss is "hinge", which has no second derivative for Newton\'s method',
                argument="loss",
                remedy='pass loss="squared_hinge", or solver="csvrg"',
            )
        if self.diameter is None:
            return loss
        check_diameter(self.diameter)
        if self.core_points == "drawn":
            raise InvalidInputError(
                f'diameter is {self.diameter}, but core_points="drawn" does not bound distances',
                argument="diameter",
                remedy='pass core_points="cover", or leave out diameter',
            )
        return loss

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
        size, n_classes = self.size, len(summary.classes)
        if size is not None and size < n_classes:
            raise InvalidInputError(
                f"size={size} is too small for {n_classes} classes, which need a row each",
                argument="size",
                remedy=f"pass at least {n_classes}",
            )
        if size is None and self.solver == "newton":
            held = max(_MIN_ROWS, _HELD_NUMBERS // n_points)
            size = min(max(_MIN_ROWS, _ROWS_PER_POINT * n_points), held)
        if size is None or size >= summary.n_rows:
            return None
        return quotas_of(size, summary.classes, summary.class_weights)
