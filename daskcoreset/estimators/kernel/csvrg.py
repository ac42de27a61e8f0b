"""Kernel classifiers on data of any size, by the coreset variance-reduced gradient."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.random import RandomState
from daskcoreset.core.typing import FloatArray
from daskcoreset.core.validation import check_flag
from daskcoreset.estimators.available import available_where
from daskcoreset.estimators.kernel.base import CORE_POINT_CONSTRAINTS, CorePointModel
from daskcoreset.estimators.kernel.kernels import Profile
from daskcoreset.estimators.kernel.newton import solve_exact
from daskcoreset.estimators.kernel.probability import (
    CALIBRATION_ROWS,
    Sigmoids,
    held_out_values,
    probabilities,
)
from daskcoreset.estimators.kernel.rows import KernelProblem, LabelledBlocks, Solution
from daskcoreset.estimators.kernel.sgd import solve_csvrg
from daskcoreset.estimators.margin.soft import uniform_rows

# Numbers in the Hessians of all problems, 1 GiB, up to which "auto" is "exact".
_MAX_HESSIAN_NUMBERS = 2**27

# Rows that ``size="auto"`` draws at least, and for every core point.
_MIN_ROWS, _ROWS_PER_POINT = 10_000, 100


def _without_probability(model: Any) -> str | None:
    return None if model.probability else "pass probability=True to the estimator, before fit."


class CSVRGClassifier(CorePointModel):
    r"""Kernel classifier with few core points, for any number of rows.

    Minimises :math:`|w|^2 / 2 + (\lambda / M) \sum_i u_i\, l(y_i \langle w, \varphi(x_i)
    \rangle)` over combinations of the core points of a delta-cover, one class against the rest
    where there are more than two. M is the total weight.

    By default this is not the algorithm that it is named after: core points are drawn at random,
    as many of every class, and the problem in their span is solved by Newton's method.
    ``strategy="online", solver="csvrg"`` are a cover and the paper's variance-reduced gradient, and
    with ``stand_ins="core_points", drawn_share=0.0`` both are as in the paper.

    Parameters
    ----------
    loss : {"odm", "hinge", "squared_hinge"}, default="odm"
        "odm" is that of the optimal margin distribution machine, the paper's. "squared_hinge"
        leaves large margins alone; which is the better one depends on the data. "hinge" takes
        more reads than the others.
    kernel : {"rbf", "laplacian"} or callable, default="rbf"
        Of the squared Euclidean distance; see `kernels.resolve_kernel`.
    gamma : {"scale", "auto", "learned"} or float, default="scale"
        Of a kernel with a name, as in `sklearn.svm.SVC`; "learned" with ``metric="learned"`` and
        the kernel "rbf", in the same steps as the metric.
    metric : {"euclidean", "learned"}, default="euclidean"
        "learned" stretches every column by a factor, `scales_`, by which the least objective of a
        pilot falls: of at most 8,000 rows, half of which judge, and 300 core points, drawn in the
        same read. It gains most where columns tell nothing, or differ in what they tell
        (``docs/guide/kernels.md``). Not with `diameter`, covers and `partial_fit`.
    lam : float, optional
        The paper's :math:`\lambda`; it does not grow with the number of rows.
    C : float, optional
        The same in the scale of `sklearn.svm.SVC`: ``lam = C * M``. One of the two at most;
        C is 1 without both.
    mu : float, default=0.4
        Weight of margins above the band against those below, in (0, 1]; of "odm".
    theta : float, default=0.4
        Half the width of the band of margins without loss, in [0, 1); of "odm".
    diameter : float, optional
        Of the cells: every row lies within half of it of a core point.
    max_points : int, optional
        Core points at most. 500 where neither this nor `diameter` is given; more of them make the
        machine more accurate, slower to train and slower to predict.
    cells : {"euclidean", "chebyshev"}, default="euclidean"
        Balls or boxes.
    strategy : {"auto", "drawn", "online", "farthest"}, default="auto"
        How core points are found. "online" and "farthest" are those of
        `daskcoreset.coverage.cover`, and keep to `diameter`. "drawn" takes `max_points`
        rows at random, as many of every class; they are a cover as well, and `diameter_` says
        of which diameter. On most sets of `benchmarks/kernels.py` that is the more accurate, for
        covers put their few points at the rim of the data. "auto" is "online" with a diameter,
        and "drawn" without.
    drawn_share : float, default=0.5
        Of "online" and "farthest" without a diameter: the part of `max_points` that is drawn
        first, as many rows of every class. The others open cells for rows far from all of them,
        so that together they cover, and what these leave over is drawn as well. 0 is a cover
        alone, of a smaller diameter: most of its cells hold single far rows, and one or a few
        nearly all others, whose class it hardly tells where one class is rare or columns are many
        (``docs/guide/kernels.md``).
    solver : {"auto", "exact", "csvrg"}, default="auto"
        "csvrg" is the paper's algorithm. "exact" solves the problem in the span of the core
        points by Newton's method, with the loss at the rows themselves: on the sets of the
        benchmark it needs fewer reads and ends lower. "auto" is "exact", unless its Hessians
        would take more than 1 GiB.
    size : int, "auto" or None, default=None
        Rows to train on, drawn from every class and weighted so that they stand for all;
        "auto" is 100 for every core point, 10,000 at least. What is fitted, and `objective_`,
        `gap_` and `diameter_`, are then of these rows, which are held in memory; the data are
        read twice. None trains on all rows, which takes a few reads of kernel values, more time,
        and mostly ends a little more accurate (``docs/guide/kernels.md``).
    max_iter : int, default=100
        Reads of "exact" at most, and snapshots of "csvrg".
    option : {"I", "II"}, default="I"
        Snapshot of "csvrg": the last iterate of an epoch, or one drawn uniformly.
    stand_ins : {"span", "core_points"}, default="span"
        Where "csvrg" lets the gradients of rows stand: at the nearest vector of the span of the
        core points, or at the nearest core point, as in the paper. Both keep its bounds; the
        first ends at the least objective in the span (`benchmarks/kernels.py`).
    eta : float, optional
        Length of the steps of "csvrg"; ``0.05 / L`` by default.
    n_inner : int, optional
        Inner steps of an epoch of "csvrg"; ``100 L`` by default, and a million at most.
    tol : float, default=1e-4
        "exact" stops when a further step of Newton's method promises to lower the objective by
        less than half this part of it, or `gap_` proves as much; "csvrg" when an epoch changes
        it by less than this part, which need not be near the least objective.
    probability : bool, default=False
        Whether `predict_proba` is there. Sigmoids are fitted to the decision values of at most
        10,000 rows, drawn uniformly in one more read; where there are no more rows than that,
        by five further fits, so that no row has a say in its own value. After `partial_fit` to
        those of its rows.
    warm_start : bool, default=False
        Whether `fit` begins with the core points and coefficients of the one before, for other
        parameters or more steps; `diameter_` says how well they cover the rows.
    verbose : bool or int, default=False
        Whether every read prints a line.
    progress : bool or None, default=False
        As in `daskcoreset.build`; None shows a bar in a terminal or notebook.
    random_state : int, Generator, RandomState or None, default=None
        With an int, the same data, chunks and versions give the same result.
    on_invalid : {"raise", "drop"} or None, default=None
        What becomes of rows with NaN or infinity when `fit` reads them, as in `daskcoreset.build`.

    Attributes
    ----------
    core_points_ : ndarray of shape (r, d)
        Rows of the data.
    n_core_points_ : int
    coreset_ : Coreset
        The rows that `size` drew, with weights by which they stand for all, after `partial_fit`
        those of that call. Where all rows were trained on, the core points: drawn ones with the
        weights of the draw, in every class together those of the class; those of covers, and after
        `partial_fit` and `warm_start`, with the weight of the rows nearest to each, whatever their
        class. `partial_fit` numbers rows on from those of earlier calls. `audit` compares costs
        on `coreset_` with those on all rows; no read is made for the weights.
    dual_coef_ : ndarray of shape (1, r) or (n_classes, r), float64
        Coefficients of the core points.
    classes_ : ndarray of shape (n_classes,)
        Labels of rows with a positive weight.
    objective_ : float, or ndarray of shape (n_classes,)
        Of every problem, over the rows that were trained on.
    gap_ : ndarray of shape (n_problems,), float64
        How far `objective_` is above the least in the span, at most. It is proved, by a bound
        that becomes tight last: lower `tol` for a small one.
    trace_ : list of dict
        Of every read "objective" (the sum over the problems), "reads" and "seconds".
    n_iter_ : int
    converged_ : bool
        Whether `objective_` is the least one in the span but for the part `tol`: by the promise
        of a further step or by `gap_` with "exact", by `gap_` alone with "csvrg".
    solver_ : {"exact", "csvrg"}
    diameter_, gamma_, lam_ : float
    scales_ : ndarray of shape (d,), float64
        Factors of the columns in distances, with ``metric="learned"``; the sum of the variances of
        the columns is as without.
    approximation_bound_ : float
        Theorem 4's bound on the error of the gradients of "csvrg".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    CoresetWarning
        When features are not scaled: the widest columns then dominate distances. The paper
        scales to [0, 1]. When few far rows, or columns far from zero, make `gamma` so small that
        the kernel hardly tells rows apart.
    sklearn.exceptions.ConvergenceWarning
        When `converged_` is False.

    See Also
    --------
    AVMClassifier : The baseline: one pass of plain stochastic gradient steps.
    ODMClassifier : The exact machine, for data in memory.

    Notes
    -----
    There is no intercept, as in the papers. `predict` and `decision_function` are lazy where X
    is out of core. Up to 10,000 rows in memory, equal rows are merged: neither their order nor
    the split of their weight matters.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).random(size=(20_000, 2), chunks=(5_000, 2))
    >>> y = ((X[:, 0] - 0.5) ** 2 + (X[:, 1] - 0.5) ** 2 < 0.1).astype(int)
    >>> model = CSVRGClassifier(gamma=10.0, max_points=60, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.97, model.n_core_points_ <= 60
    (True, True)
    >>> model.predict(X)  # nothing is read yet
    dask.array<..., shape=(20000,), dtype=int64, chunksize=(5000,), chunktype=numpy.ndarray>

    References
    ----------
    Tan, Zhang and Wang (2019), Coreset stochastic variance-reduced gradient with application to
    optimal margin distribution machine.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CORE_POINT_CONSTRAINTS,
        "gamma": [
            StrOptions({"scale", "auto", "learned"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "metric": [StrOptions({"euclidean", "learned"})],
        "drawn_share": [Interval(Real, 0, 1, closed="left")],
        "solver": [StrOptions({"auto", "exact", "csvrg"})],
        "size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "option": [StrOptions({"I", "II"})],
        "stand_ins": [StrOptions({"span", "core_points"})],
        "eta": [Interval(Real, 0, 1, closed="neither"), None],
        "n_inner": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "probability": ["boolean"],
        "warm_start": ["boolean"],
    }

    solver_: Literal["exact", "csvrg"]

    def __init__(
        self,
        loss: Literal["odm", "hinge", "squared_hinge"] = "odm",
        *,
        kernel: str | Profile = "rbf",
        gamma: float | Literal["scale", "auto", "learned"] = "scale",
        metric: Literal["euclidean", "learned"] = "euclidean",
        lam: float | None = None,
        C: float | None = None,
        mu: float = 0.4,
        theta: float = 0.4,
        diameter: float | None = None,
        max_points: int | None = None,
        cells: Literal["euclidean", "chebyshev"] = "euclidean",
        strategy: Literal["auto", "drawn", "online", "farthest"] = "auto",
        drawn_share: float = 0.5,
        solver: Literal["auto", "exact", "csvrg"] = "auto",
        size: int | Literal["auto"] | None = None,
        max_iter: int = 100,
        option: Literal["I", "II"] = "I",
        stand_ins: Literal["span", "core_points"] = "span",
        eta: float | None = None,
        n_inner: int | None = None,
        tol: float = 1e-4,
        probability: bool = False,
        warm_start: bool = False,
        verbose: bool | int = False,
        progress: bool | None = False,
        random_state: RandomState = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.metric = metric
        self.lam = lam
        self.C = C
        self.mu = mu
        self.theta = theta
        self.diameter = diameter
        self.max_points = max_points
        self.cells = cells
        self.strategy = strategy
        self.drawn_share = drawn_share
        self.solver = solver
        self.size = size
        self.max_iter = max_iter
        self.option = option
        self.stand_ins = stand_ins
        self.eta = eta
        self.n_inner = n_inner
        self.tol = tol
        self.probability = probability
        self.warm_start = warm_start
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
            Labels; a string where `daskcoreset.build` takes names.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        CSVRGClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, there is one class only, the cover needs more than
            `max_points`, or blocks of sparse rows have more than 16,384 columns and, zeros
            included, 2 ** 28 numbers.
        """
        check_flag("warm_start", self.warm_start)
        warm = self.warm_start and hasattr(self, "_table")
        return self._fit(X, y, sample_weight, warm=warm)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train on further rows.

        Rows of earlier calls are no longer needed: each stands at its core point, with its
        class and weight, which changes gradients by no more than Theorem 4 says. Core points
        are added for rows that those at hand do not cover; when they would be more than
        `max_points`, cells are enlarged.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
        classes : array-like of shape (n_classes,), optional
            All classes there will be; needed in the first call where its rows lack some.
        sample_weight : array-like of shape (n,), or str, optional

        Returns
        -------
        CSVRGClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            As `fit` does, or for a class that the first call, of `fit` or of this, did not name
            or hold: every class has its own problem, which the past would have to be read again
            for. `CoresetSVC` and `CoresetLogisticRegression` take new classes.
        """
        if self.metric == "learned":
            raise InvalidInputError(
                "partial_fit cannot learn a metric, which all earlier rows would have to be read "
                'for again; pass metric="euclidean", or call fit.'
            )
        return self._fit(X, y, sample_weight, classes=classes, resume=hasattr(self, "_table"))

    @available_where(_without_probability)
    def predict_proba(self, X: Any) -> Any:
        """Probability of every class, for every row, with ``probability=True``.

        The likeliest class is mostly, but not always, the one that `predict` gives.

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n, n_classes), float64
            Lazy where X is out of core.
        """
        check_is_fitted(self, "_sigmoids")
        shares = partial(probabilities, self._decision, self._sigmoids)
        called, classes = ("probability", "class"), self.classes_
        return self._apply(X, shares, np.float64, len(classes), called=called, classes=classes)

    def _calibrate(self, data: LabelledBlocks, seed: int) -> None:
        if not self.probability:
            return
        rows, labels, weights = uniform_rows(data.blocks, CALIBRATION_ROWS, seed)
        codes, values = np.searchsorted(data.classes, labels), None
        if data.summary.n_rows <= CALIBRATION_ROWS and len(np.unique(codes)) == len(data.classes):
            quiet = {"probability": False, "progress": False, "verbose": False}
            model = clone(self).set_params(**quiet, random_state=seed)
            values = held_out_values(model, rows, codes, weights)
        if values is None:
            values = self._decision.decide(rows)
        self._sigmoids = Sigmoids.fit(values, codes, weights)

    def _max_reads(self) -> int:
        return self.max_iter + 2

    def _size(self, n_points: int) -> int | None:
        return max(_MIN_ROWS, _ROWS_PER_POINT * n_points) if self.size == "auto" else self.size

    def _solve(self, problem: KernelProblem, start: FloatArray, seed: int) -> Solution:
        self.solver_ = "exact" if self.solver == "auto" else self.solver
        n_hessian_numbers = start.shape[1] * len(problem.core) ** 2
        if self.solver == "auto" and n_hessian_numbers > _MAX_HESSIAN_NUMBERS:
            self.solver_ = "csvrg"
        if self.solver_ == "exact":
            return solve_exact(problem, beta=start, tol=self.tol, max_iter=self.max_iter, seed=seed)
        return solve_csvrg(
            problem,
            beta=start,
            n_epochs=self.max_iter,
            option=self.option,
            eta=self.eta,
            n_inner=self.n_inner,
            tol=self.tol,
            seed=seed,
            stand_ins=self.stand_ins,
        )
