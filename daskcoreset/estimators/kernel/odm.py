"""The exact optimal margin distribution machine, for data that fit in memory."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.core.block import labels_of
from daskcoreset.core.deadline import check_time
from daskcoreset.core.labels import check_classes
from daskcoreset.core.linalg import dense_rows, one_thread
from daskcoreset.core.random import RandomState, Stage, resolve_seed, stream
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import a_type
from daskcoreset.errors import InvalidInputError, InvalidTypeError
from daskcoreset.estimators.kernel.classifier import (
    KERNEL_CONSTRAINTS,
    MAX_GRAM_ROWS,
    KernelModel,
    distinct_block,
)
from daskcoreset.estimators.kernel.kernels import KernelMap
from daskcoreset.estimators.kernel.objective import Solution, signs_of
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.objectives import MARGIN
from daskcoreset.solvers.losses import MarginLoss, resolve_loss


def solve_dual(
    gram: FloatArray,
    signs: FloatArray,
    weights: FloatArray,
    loss: MarginLoss,
    lam: float,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    seed: int = 0,
) -> Solution:
    """Sweep over the rows in random order until primal and dual meet.

    Parameters
    ----------
    gram : ndarray of shape (n, n), float64
        Kernel between the rows.
    signs : ndarray of shape (n, K), float64
        Signs of the rows in every problem.
    weights : ndarray of shape (n,), float64
        Positive.
    loss : MarginLoss
        "odm".
    lam : float
        Lambda.
    tol : float, default=1e-4
        Stop when the gap is below this part of the objective.
    max_iter : int, default=1000
        Sweeps at most.
    seed : int, default=0

    Returns
    -------
    Solution
        With ``alpha * y`` for coefficients, which are zero for rows inside the band, and the
        differences between primal and dual for gaps.

    Examples
    --------
    >>> from daskcoreset.solvers.losses import LOSSES
    >>> signs = np.array([[1.0], [-1.0]])
    >>> solution = solve_dual(np.eye(2), signs, np.ones(2), LOSSES["odm"], 2.0)
    >>> solution.beta.round(4).ravel(), solution.objectives.round(4)  # 2 (0.6 - z) = 0.36 z
    (array([ 0.5085, -0.5085]), array([0.3051]))

    References
    ----------
    Zhang and Zhou (2019), Optimal margin distribution machine. Hsieh et al. (2008), A dual
    coordinate descent method for large-scale linear SVM.
    """
    from daskcoreset.estimators.kernel import loops_numba as loops

    share = lam * weights / weights.sum()
    down = 1.0 / (2.0 * loss.scale * share)
    up = down / loss.mu
    band = np.array([loss.low, loss.high])
    beta = np.zeros_like(signs)
    objectives, gaps = np.full((2, signs.shape[1]), np.inf)
    n_iter = 0
    for k, labels in enumerate(np.ascontiguousarray(signs.T)):
        rng = stream(seed, Stage.DESCENT, k)
        alpha, image = np.zeros(len(labels)), np.zeros(len(labels))  # image = K (alpha y)
        for sweep in range(1, max_iter + 1):
            check_time("a kernel machine was being fitted", "pass a smaller size")
            loops.sweep_dual(
                gram, labels, down, up, band, rng.permutation(len(labels)), alpha, image
            )
            if sweep % 5 and sweep < max_iter:
                continue
            with one_thread():
                image[:] = gram @ (alpha * labels)  # rounding does not add up
                square = float(alpha * labels @ image)
            objective = 0.5 * square + float(share @ loss.value(labels * image))
            low, high = np.maximum(alpha, 0.0), np.minimum(alpha, 0.0)
            cost = (low**2 * down + high**2 * up) / 2.0 - loss.low * low - loss.high * high
            gap = objective + 0.5 * square + float(cost.sum())
            if gap <= tol * objective:
                break
        beta[:, k], objectives[k], gaps[k] = alpha * labels, objective, gap
        n_iter = max(n_iter, sweep)
    return Solution(beta, objectives, n_iter, gaps)


class ODMClassifier(KernelModel):
    r"""Optimal margin distribution machine on all rows in memory, with a Gaussian kernel.

    Minimises :math:`|w|^2 / 2 + (\lambda / M) \sum_i u_i ([1 - \theta - z_i]_+^2 +
    \mu [z_i - 1 - \theta]_+^2) / (1 - \theta)^2` with margins :math:`z_i = y_i \langle w,
    \varphi(x_i) \rangle` by coordinate descent on the dual problem. M is the total weight. The
    estimator holds the kernel matrix of the rows, n x n. It is the exact machine that
    `CoresetKernelClassifier` approximates. See :doc:`/guides/kernels`.

    Parameters
    ----------
    gamma, lam, theta, mu
        As in `CoresetKernelClassifier`.
    tol : float, default=1e-4
        Stop when the gap between the primal and the dual objective is below this part of it.
    max_iter : int, default=2000
        Largest number of sweeps over the rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the order of the rows.
    on_invalid : {"raise", "drop"} or None, default=None
        How to treat rows with NaN or infinity in `fit`: raise an error, or drop them. None raises.

    Attributes
    ----------
    support_vectors_ : ndarray of shape (r, d), float64
        Rows outside the band of margins, in any of the problems.
    dual_coef_ : ndarray of shape (1, r) or (n_classes, r), float64
    classes_ : ndarray of shape (n_classes,)
    objective_ : float, or ndarray of shape (n_classes,)
    gap_ : ndarray of shape (n_problems,), float64
        Upper bound on the excess of `objective_` over the least objective.
    n_iter_ : int
        Most sweeps of a problem.
    gamma_, lam_ : float
    coreset_ : Coreset
        The support vectors, with the weight of the rows equal to each.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        If the columns of X have names.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "below", "above")
    >>> model = ODMClassifier(lam=256, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95, bool(model.gap_[0] <= 1e-4 * model.objective_)
    (True, True)

    References
    ----------
    Zhang and Zhou (2019), Optimal margin distribution machine.
    Tan, Zhang and Wang (2019), equation 3.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KERNEL_CONSTRAINTS,
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    support_vectors_: FloatArray
    gap_: FloatArray

    def __init__(
        self,
        *,
        gamma: float | Literal["scale", "auto"] = "scale",
        lam: float | None = None,
        theta: float = 0.4,
        mu: float = 0.4,
        tol: float = 1e-4,
        max_iter: int = 2000,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.gamma = gamma
        self.lam = lam
        self.theta = theta
        self.mu = mu
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.on_invalid = on_invalid

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            In memory.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        ODMClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, InvalidTypeError, ValueError
            If an argument cannot be used, or y has one class. If X is not in memory, or has more
            than 20,000 distinct rows.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If `max_iter` ends the work.
        CoresetWarning
            If features are not scaled, or the kernel hardly tells rows apart.
        """
        self._validate_params()
        loss = resolve_loss("odm", theta=self.theta, mu=self.mu)
        # A memory map is read whole, like any array.
        X, y, sample_weight = (
            np.asarray(part) if isinstance(part, np.memmap) else part
            for part in (X, y, sample_weight)
        )
        data = self._validate_in_memory(X, y, sample_weight)
        if data is None:
            raise InvalidTypeError(
                f"X is {a_type(X)} out of core, but ODMClassifier needs an n x n matrix in memory",
                argument="X",
                remedy="use CoresetKernelClassifier, or pass a sample in memory",
            )
        row_blocks(data.X).refuse_zeros()
        seed = resolve_seed(self.random_state)
        block = distinct_block(data)
        if len(block) > MAX_GRAM_ROWS:
            raise InvalidInputError(
                f"X has {len(block)} distinct rows, whose kernel matrix takes "
                f"{8e-09 * len(block) ** 2:.1f} GB",
                argument="X",
                remedy=f"use CoresetKernelClassifier, or pass at most {MAX_GRAM_ROWS}",
            )
        summary = summarise_classes(row_blocks(block.points, block.labels, block.weights))
        check_classes(summary.classes, summary.n_used)
        machine = self._machine(summary, dense_rows(block.points))
        lam = float(summary.weight if self.lam is None else self.lam)
        solution = solve_dual(
            machine.gram(),
            signs_of(labels_of(block), summary.classes),
            block.weights,
            loss,
            lam,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=seed,
        )
        assert solution.gaps is not None  # noqa: S101 - of the dual
        if not (solution.gaps <= self.tol * solution.objectives).all():
            warnings.warn(
                "ODMClassifier stopped before tol was reached; raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        used = np.flatnonzero(solution.beta.any(axis=1))
        used = used if len(used) else np.arange(1)  # a model needs a row
        vectors = machine.points[used]
        kept = replace(block.take(used), points=vectors)
        facts = {
            "method": "support vectors",
            "n": data.X.shape[0],
            "seed": seed,
            "total_weight": float(summary.weight),
            "objective": MARGIN,
        }
        self.support_vectors_, self.gap_, self.lam_ = vectors, solution.gaps, lam
        solution = replace(solution, beta=np.ascontiguousarray(solution.beta[used]))
        core = KernelMap(machine.gamma, vectors)
        self._set_fitted(core, solution, summary.classes, kept, facts)
        return self
