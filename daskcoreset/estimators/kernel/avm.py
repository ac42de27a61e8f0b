"""Approximation vector machine, the baseline of the coverage methods."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Literal, Self

from sklearn.utils._param_validation import Interval, StrOptions

from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.kernel.base import CORE_POINT_CONSTRAINTS, CorePointModel
from daskcoreset.estimators.kernel.kernels import Profile
from daskcoreset.estimators.kernel.rows import KernelProblem, Solution
from daskcoreset.estimators.kernel.sgd import solve_avm

# Steps of ``n_steps="auto"`` at least.
_MIN_STEPS = 10_000


class AVMClassifier(CorePointModel):
    r"""Stochastic gradient steps of length 1/t, every row's gradient at its core point.

    The baseline of `CSVRGClassifier`, with its objective and cover: one pass of plain steps
    instead of variance-reduced ones, and the second half of the iterates averaged.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "odm"}, default="hinge"
        The authors' for classification is the hinge.
    kernel, gamma, lam, C, mu, theta, diameter, max_points, cells, strategy
        As in `CSVRGClassifier`.
    n_steps : int or "auto", default="auto"
        Steps on rows drawn in proportion to weights; "auto" is one for each row, and 10,000 at
        least.
    verbose, progress, random_state
        As in `CSVRGClassifier`.
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity when `fit` reads them, as in `daskcoreset.build`.

    Attributes
    ----------
    core_points_ : ndarray of shape (r, d)
    n_core_points_ : int
    coreset_ : Coreset
        The core points, with weights as in `CSVRGClassifier`.
    dual_coef_ : ndarray of shape (1, r) or (n_classes, r), float64
    classes_ : ndarray of shape (n_classes,)
    objective_ : float, or ndarray of shape (n_classes,)
    trace_ : list of dict
    n_iter_ : int
        Steps taken.
    diameter_, gamma_, lam_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    CoresetWarning
        As `CSVRGClassifier`, about features that do not fit the kernel.

    Notes
    -----
    The authors' code takes `delta` for a radius, and drops rows in silence once `max_size` core
    points are there; here it is the diameter, and every row counts.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((2000, 2))
    >>> y = np.where(X[:, 0] > X[:, 1], "below", "above")
    >>> AVMClassifier(lam=512, max_points=50, random_state=0).fit(X, y).score(X, y) > 0.9
    True

    References
    ----------
    Le, Nguyen, Nguyen and Phung (2017), Approximation vector machines for large-scale online
    learning.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CORE_POINT_CONSTRAINTS,
        "n_steps": [Interval(Integral, 1, 2**28, closed="both"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        loss: Literal["odm", "hinge", "squared_hinge"] = "hinge",
        *,
        kernel: str | Profile = "rbf",
        gamma: float | Literal["scale", "auto"] = "scale",
        lam: float | None = None,
        C: float | None = None,
        mu: float = 0.4,
        theta: float = 0.4,
        diameter: float | None = None,
        max_points: int | None = None,
        cells: Literal["euclidean", "chebyshev"] = "euclidean",
        strategy: Literal["auto", "drawn", "online", "farthest"] = "auto",
        n_steps: int | Literal["auto"] = "auto",
        verbose: bool | int = False,
        progress: bool | None = False,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.lam = lam
        self.C = C
        self.mu = mu
        self.theta = theta
        self.diameter = diameter
        self.max_points = max_points
        self.cells = cells
        self.strategy = strategy
        self.n_steps = n_steps
        self.verbose = verbose
        self.progress = progress
        self.random_state = random_state
        self.on_invalid = on_invalid

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cover the rows, and train.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        AVMClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            As in `CSVRGClassifier`.
        """
        return self._fit(X, y, sample_weight)

    def _max_reads(self) -> int:
        return 2

    def _solve(self, problem: KernelProblem, start: FloatArray, seed: int) -> Solution:
        del start  # steps begin at zero
        is_auto = self.n_steps == "auto"
        n_steps = max(_MIN_STEPS, problem.rows.n_rows) if is_auto else int(self.n_steps)
        return solve_avm(problem, n_steps=n_steps, seed=seed)
