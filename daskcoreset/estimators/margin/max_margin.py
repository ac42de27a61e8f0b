"""The classifier with the largest margin, for any number of rows, with a certificate."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.constructions.margin.examples import survey
from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset, Violators
from daskcoreset.constructions.margin.problems import MultiClassProblem
from daskcoreset.constructions.margin.rows import find_classes
from daskcoreset.constructions.margin.separators import KERNELS, Kernel
from daskcoreset.constructions.margin.structured import structured_margin
from daskcoreset.core.blocks import MAX_LABELS
from daskcoreset.core.errors import InvalidInputError, warn_user
from daskcoreset.core.random import RandomState, resolve_seed
from daskcoreset.estimators.classifier import MARGIN_CONSTRAINTS, MarginModel, SeparatorDecision
from daskcoreset.estimators.kernel.kernels import resolve_gamma
from daskcoreset.estimators.kernel.objective import signs_of
from daskcoreset.estimators.margin.soft import (
    SOFT_ROWS,
    soft_kernel,
    soft_planes,
    uniform_rows,
)

if TYPE_CHECKING:
    from daskcoreset.constructions.margin.rows import FirstRead
    from daskcoreset.core.typing import AnyArray, FloatArray, IndexArray
    from daskcoreset.execution.engine import BlockResults
    from daskcoreset.inputs.blocks import RowBlocks

_EXACT = 1e-9
"""The epsilon of data in one block of memory, where reading costs nothing."""

_EXACT_CLASSES = 1e-6
"""The same for more than two classes, where steps are smaller."""

_STARTS = 64
"""Rows of each class that the first read brings, at most."""


class MaxMarginClassifier(MarginModel):
    r"""Classifier with the largest margin, up to ``1 - epsilon``, found on a few core rows.

    For two classes the hyperplane farthest from the nearest rows, through the origin or with a
    true intercept (`daskcoreset.MaxMarginCoreset`); for more, one vector a class
    so that every row's own class is ahead of all others by the largest margin (Crammer and
    Singer). Rows are read a few times whatever their number, and the result comes with a
    certificate: `factor_` times the largest margin there is.

    Parameters
    ----------
    epsilon : float, default=0.1
        Up to which the margin is the largest. Data that fit in one block of memory are solved
        exactly, for reading them costs nothing.
    fit_intercept : bool, default=True
    kernel : {"linear", "rbf", "poly", "sigmoid"} or callable, default="linear"
        As in `sklearn.svm.SVC`. With a kernel and more than two classes each class is
        separated from all others.
    gamma : {"scale", "auto"} or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
        Of the kernel.
    on_inseparable : {"soft", "raise"}, default="soft"
        What becomes of rows that nothing separates: a soft margin with a warning, or an error.
        Both tell the evidence, a convex combination of a few rows.
    C : float, default=1.0
        Weight of the squared hinge loss in the soft margin.
    violators : {"auto", "block"} or int, default="auto"
    max_passes : int, default=200
        As in `daskcoreset.MaxMarginCoreset`.
    verbose : bool or int, default=False
        Whether every read prints a line, for two classes.
    random_state : int, Generator, RandomState or None, default=None
        For the soft margin alone, of more than 10,000 rows, of which it takes so many. The
        largest margin is found without chance.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (n_classes, d), float64
        Without a kernel; for two classes of length one, so that decision values are distances.
    intercept_ : ndarray of shape (1,) or (n_classes,), float64
    classes_ : ndarray of shape (n_classes,)
        Labels of rows with a positive weight.
    separable_ : bool
    margin_ : float
        Of all rows; zero if they are not separable.
    factor_ : float
        Certified share of the largest margin; zero if the rows are not separable.
    core_indices_ : ndarray of shape (m,), int64
        Row numbers of the core set; empty if the rows are not separable.
    dual_coef_ : ndarray of shape (m,), float64
        Coefficients of the core rows, for two classes times +1 or -1.
    trace_ : tuple
        Of every read the size of the core set, the margin on it and on the data.
    core_ : MarginCoreset, tuple of such, or StructuredMargin, or None
        All that was found; a tuple with a kernel and more than two classes.
    evidence_ : InvalidInputError or None
        Why the rows are not separable, with `indices` and `coefficients` of a combination.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,), object
        Where the columns of X have names.

    Warns
    -----
    CoresetWarning
        If the rows are not separable, or `max_passes` ends the work.

    See Also
    --------
    OutlierMaxMarginClassifier : With some wrong labels.

    Notes
    -----
    A margin knows no weights: rows with a ``sample_weight`` of zero are left out, and all
    others count the same; the soft margin weighs them.

    Examples
    --------
    >>> import dask.array as da
    >>> X = da.random.default_rng(0).random(size=(20_000, 2), chunks=(5_000, 2))
    >>> y = (X[:, 0] > X[:, 1]).astype(int)
    >>> model = MaxMarginClassifier(epsilon=0.01).fit(X, y)
    >>> model.score(X, y), model.factor_ >= 0.99, len(model.core_indices_) < 200
    (1.0, True, True)

    References
    ----------
    Har-Peled, Roth and Zimak (2007), Fig. 1 and section 6.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "kernel": [StrOptions(set(KERNELS)), callable],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Real],
        "violators": [StrOptions({"auto", "block"}), Interval(Integral, 1, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        epsilon: float = 0.1,
        *,
        fit_intercept: bool = True,
        kernel: Any = "linear",
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        violators: Violators = "auto",
        max_passes: int = 200,
        verbose: bool | int = False,
        random_state: RandomState = None,
    ) -> None:
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.on_inseparable = on_inseparable
        self.C = C
        self.violators = violators
        self.max_passes = max_passes
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            Labels; a string where `daskcoreset.build` knows names.
        sample_weight : array-like of shape (n,), or str, optional
            Rows of weight zero are left out.

        Returns
        -------
        MaxMarginClassifier
            The estimator itself.

        Raises
        ------
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used, or there is one class only; with
            ``on_inseparable="raise"`` if the rows are not separable.
        """
        self._validate_params()
        blocks, names = self._labelled_blocks(X, y, sample_weight)
        survey = find_classes(blocks, max_classes=MAX_LABELS, n_keep=_STARTS)
        labels = survey.value.classes
        self.classes_ = labels if names is None else names[labels]
        try:
            self._separate(blocks, survey)
        except InvalidInputError as error:
            # Of two classes or more: what has coefficients is evidence.
            if self.on_inseparable == "raise" or not hasattr(error, "coefficients"):
                raise
            warn_user(f"a soft margin is fitted, for {error}")
            self._soften(blocks, labels, error)
        return self

    def _separate(self, blocks: RowBlocks, survey: BlockResults[FirstRead]) -> None:
        exact = blocks.need_no_scheduler
        epsilon = min(self.epsilon, _EXACT) if exact else self.epsilon
        several = len(self.classes_) > 2
        if several and self.kernel == "linear":
            if survey.value.n_used < survey.n_rows:
                raise InvalidInputError(
                    "sample_weight is zero for some rows out of core, which only two classes or "
                    "a kernel can take; leave such rows out."
                )
            self._separate_classes(blocks, survey.value.classes, max(epsilon, _EXACT_CLASSES))
            return
        coreset = MaxMarginCoreset(
            epsilon=epsilon,
            intercept=self.fit_intercept,
            kernel=self.kernel,
            gamma=self._gamma(blocks),
            degree=self.degree,
            coef0=self.coef0,
            violators=self.violators,
            max_passes=self.max_passes,
            progress=bool(self.verbose),
        )
        cores = [
            replace(coreset, positive=label).run_blocks(blocks, survey)
            for label in (survey.value.classes if several else survey.value.classes[1:])
        ]
        if self.kernel == "linear":
            w = cores[0].w
            assert w is not None  # noqa: S101 - without a kernel
            self._set_hyperplanes(w[None], np.array([cores[0].b]))
        else:
            self.intercept_ = np.array([core.b for core in cores])
            self._decision = SeparatorDecision(
                tuple(core.separator for core in cores), self.classes_
            )
        self._keep(
            tuple(cores) if several else cores[0],
            margin=min(core.margin for core in cores),
            factor=min(core.factor for core in cores),
            indices=np.concatenate([core.indices for core in cores]),
            dual=np.concatenate([core.dual * core.signs for core in cores]),
            trace=tuple(step for core in cores for step in core.trace),
        )

    def _separate_classes(self, blocks: RowBlocks, labels: AnyArray, epsilon: float) -> None:
        center, bias = None, 0.0
        if self.fit_intercept:
            # Weighted: a row twice is a row of weight two.
            known = survey(blocks)
            center, bias = known.moments.mean, known.spread
        problem = MultiClassProblem(blocks.rules.n_features, len(labels), center, bias)
        core = structured_margin(
            blocks, problem, epsilon, classes=labels, max_passes=self.max_passes
        )
        self._set_hyperplanes(*problem.planes_of_rows(core.w))
        self._keep(
            core,
            margin=core.data_margin,
            factor=core.factor,
            indices=core.examples,
            dual=core.dual,
            trace=core.trace,
        )

    def _keep(
        self,
        core: Any,
        *,
        margin: float = 0.0,
        factor: float = 0.0,
        indices: IndexArray | None = None,
        dual: FloatArray | None = None,
        trace: tuple[Any, ...] = (),
        evidence: Any = None,
    ) -> None:
        if self.kernel != "linear" and hasattr(self, "coef_"):
            del self.coef_  # of an earlier fit
        self.core_, self.margin_, self.factor_ = core, margin, factor
        no_rows = np.zeros(0, dtype=np.int64)
        self.core_indices_ = no_rows if indices is None else self._in_data(indices)
        self.dual_coef_ = np.zeros(0) if dual is None else dual
        self.trace_ = trace
        self.evidence_, self.separable_ = evidence, evidence is None

    def _gamma(self, blocks: RowBlocks) -> float:
        if self.kernel == "linear" or callable(self.kernel):
            return 1.0
        variance = summarise_classes(blocks).variance if self.gamma == "scale" else 1.0
        return resolve_gamma(self.gamma, blocks.rules.n_features, variance)

    def _soften(self, blocks: RowBlocks, classes: AnyArray, error: Exception) -> None:
        """Fit a soft margin to a uniform sample, or to all rows where they are few."""
        seed = resolve_seed(self.random_state)
        if self.kernel == "linear":
            planes = soft_planes(blocks, classes, self.C, intercept=self.fit_intercept, seed=seed)
            self._set_hyperplanes(*planes)
        else:
            rows, labels, weights = uniform_rows(blocks, SOFT_ROWS, seed)
            kernel = Kernel(self.kernel, self._gamma(blocks), self.degree, self.coef0)
            sides = tuple(
                soft_kernel(rows, signs, weights, self.C, kernel)
                for signs in signs_of(labels, classes).T
            )
            self.intercept_ = np.array([side.intercept for side in sides])
            self._decision = SeparatorDecision(sides, self.classes_)
        self._keep(None, evidence=error)
