"""Maximum margin between more than two classes, and between answers of any structure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from daskcoreset.constructions.class_summary import summarise_classes
from daskcoreset.constructions.margin.core_set import CoreSet
from daskcoreset.constructions.margin.sequence import SequenceProblem
from daskcoreset.constructions.margin.structured import (
    MultiClassProblem,
    StructuredProblem,
    Triples,
    check_whole,
    predict_examples,
    share_right,
    structured_margin,
)
from daskcoreset.core.labels import check_classes
from daskcoreset.core.messages import warn_user
from daskcoreset.core.typing import AnyArray
from daskcoreset.core.validation import shown
from daskcoreset.errors import InvalidInputError, InvalidTypeError, NotSeparableError
from daskcoreset.estimators.checks import is_in_memory, refuse_as
from daskcoreset.estimators.margin.max_margin import MARGIN_CONSTRAINTS, MarginModel
from daskcoreset.execution.engine import map_reduce, map_rows
from daskcoreset.inputs.blocks import RowBlocks, row_blocks

# ``problem(n_features, n_classes)``.
Maker = Callable[[int, int], StructuredProblem]


class StructuredMaxMargin(MarginModel):
    """Classifier that separates the right answer from all others with the largest margin.

    The margin is the largest up to a factor of ``1 - epsilon``. See :doc:`/guides/kernels`.

    Parameters
    ----------
    problem : {"multiclass", "sequence"}, StructuredProblem or callable, default="multiclass"
        Form of an answer. "multiclass" gives a class to every row, as Crammer and Singer do.
        "sequence" gives a class to every row of a run of rows, with Viterbi's algorithm. A
        callable returns ``problem(n_features, n_classes)``, and gets labels as numbers of
        classes. A `StructuredProblem` takes the labels, whole numbers, as they are.
    epsilon : float, default=0.1
        The margin is at least ``1 - epsilon`` of the largest.
    fit_intercept : bool, default=True
        Whether classes have a bias, for "multiclass" and "sequence".
    on_inseparable : {"soft", "raise"}, default="soft"
        Action if no separator answers all examples correctly: allow errors by the squared hinge
        loss and warn, or raise with the evidence.
    C : float, default=1.0
        Weight of that loss.
    per_block : int, default=10
        Largest number of wrong answers that a block adds to the core set per pass.
    max_passes : int or None, default=None
        Largest number of passes over the data. None allows all that the certificate takes.
    on_invalid : {"raise", "drop"} or None, default=None
        As in `daskcoreset.build`, for the rows that `fit` reads.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Classes of the labels. For a `StructuredProblem`, the numbers from 0 to the largest one.
    coef_, intercept_ : ndarray of shape (1, d) or (K, d), and (1,) or (K,), float64
        For "multiclass". With two classes, the second minus the first.
    w_ : ndarray of shape (D,), float64
        Coefficients of the joint features.
    problem_ : StructuredProblem
    margin_, core_margin_ : float
        Margin on all data, and on the core set, an upper bound of the largest margin there is.
        Both count slacks if errors are allowed.
    coreset_ : Coreset
        For "multiclass", the rows of the core triples, once each, with weight one.
    result_ : CoreSet
        Core triples, duals and trace.

    Notes
    -----
    Neighboring rows with one number or text in `groups` are a sequence. Out of core, every block
    holds whole sequences.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    >>> StructuredMaxMargin().fit(X, ["a", "b", "c"]).predict(X).tolist()
    ['a', 'b', 'c']

    References
    ----------
    Har-Peled, Roth and Zimak (2007), the section on structured output.
    Crammer and Singer (2001).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MARGIN_CONSTRAINTS,
        "problem": [StrOptions({"multiclass", "sequence"}), StructuredProblem, callable],
        "per_block": [Interval(Integral, 1, None, closed="left")],
        "max_passes": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        problem: Literal["multiclass", "sequence"] | StructuredProblem | Maker = "multiclass",
        *,
        epsilon: float = 0.1,
        fit_intercept: bool = True,
        on_inseparable: Literal["soft", "raise"] = "soft",
        C: float = 1.0,
        per_block: int = 10,
        max_passes: int | None = None,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> None:
        self.problem = problem
        self.epsilon = epsilon
        self.fit_intercept = fit_intercept
        self.on_inseparable = on_inseparable
        self.C = C
        self.per_block = per_block
        self.max_passes = max_passes
        self.on_invalid = on_invalid

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Find the separator.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
            Any input of `daskcoreset.build`.
        y : array-like of shape (n,), or str
            The label of every row.
        groups : array-like of shape (n,), or str, optional
            Neighboring rows with the same value are one example. By default, every row is one. Out
            of core, each example lies within one block.

        Returns
        -------
        StructuredMaxMargin
            The estimator itself.

        Raises
        ------
        NotSeparableError
            If `on_inseparable` is "raise", and no separator answers all examples correctly.
        InvalidInputError, ValueError, TypeError
            If an argument cannot be used.
        """
        self._validate_params()
        if groups is None and self.problem == "sequence":
            raise InvalidInputError(
                'groups is None, but problem="sequence" needs it',
                argument="groups",
                remedy="pass one sequence number per row",
            )
        if groups is not None and self.problem == "multiclass":
            raise InvalidInputError(
                'groups is given, but each row is an example of problem="multiclass"',
                argument="groups",
                remedy='leave it out, or pass problem="sequence"',
            )
        blocks = self._labelled_blocks(X, y, groups=groups)
        problem, classes = self._problem_of(blocks)
        solve = partial(
            structured_margin,
            blocks,
            problem,
            float(self.epsilon),
            classes=classes,
            per_block=self.per_block,
            max_passes=self.max_passes,
            reads=int(classes is not None),
        )
        try:
            found = solve()
            facts = found.describe()
        except NotSeparableError as error:
            if self.on_inseparable == "raise":
                raise
            warn_user(
                f"{error} A soft margin is fitted with C={self.C}; scale the features, change C, "
                f'or pass on_inseparable="raise" to stop.'
            )
            found = solve(C=float(self.C))
            # Its margins are those with slacks.
            facts = {"converged": found.converged, "reads": found.reads}
        self._keep(found, problem, classes, facts)
        return self

    def _problem_of(self, blocks: RowBlocks) -> tuple[StructuredProblem, AnyArray | None]:
        if isinstance(self.problem, StructuredProblem):
            return self.problem, None
        summary = summarise_classes(blocks)
        check_classes(summary.classes[:2], summary.n_used)
        d, K = blocks.schema.n_features, len(summary.classes)
        if self.problem == "sequence":
            return SequenceProblem(d, K, bias=float(self.fit_intercept)), summary.classes
        if self.problem == "multiclass":
            return MultiClassProblem.of(summary, intercept=self.fit_intercept), summary.classes
        with refuse_as("problem", "return a StructuredProblem"):
            made = self.problem(d, K)
        if not isinstance(made, StructuredProblem):
            raise InvalidTypeError(
                f"problem returned {shown(made)} for {d} features and {K} classes",
                argument="problem",
                remedy="return a StructuredProblem",
            )
        return made, summary.classes

    def _keep(
        self,
        found: CoreSet[Triples],
        problem: StructuredProblem,
        classes: AnyArray | None,
        facts: dict[str, Any],
    ) -> None:
        for name in ("coef_", "intercept_", "coreset_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.problem_, self.result_, self.w_ = problem, found, found.w
        self._predict_block = partial(predict_examples, problem=problem, w=found.w, classes=classes)
        self.margin_, self.core_margin_ = found.margin, found.core_margin
        self.classes_ = np.arange(found.largest_label + 1) if classes is None else classes
        if isinstance(problem, MultiClassProblem) and classes is not None:
            W, b = problem.planes_of_rows(found.w)
            two = len(classes) == 2
            self._set_hyperplanes(W[1:] - W[:1] if two else W, b[1:] - b[:1] if two else b)
            self._keep_core("structured_max_margin", found.rows(), found.n_rows, facts)

    def predict(self, X: Any, *, groups: Any = None) -> Any:
        """Predict the label of every row.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        groups : array-like of shape (n,), or str, optional
            As in `fit`.

        Returns
        -------
        ndarray or dask.array.Array of shape (n,)
            Lazy if X is out of core.

        Raises
        ------
        InvalidInputError
            When rows are predicted, if a block boundary cuts an example.
        """
        check_is_fitted(self)
        if groups is None and hasattr(self, "coef_"):
            return super().predict(X)
        blocks = self._examples(X, None, groups)
        if blocks.in_memory:
            return map_reduce(blocks, self._predict_block, np.append).value
        if groups is not None:
            check_whole(blocks)
        return map_rows(blocks, self._predict_block, dtype=self.classes_.dtype)

    def _examples(self, X: Any, y: Any, groups: Any) -> RowBlocks:
        """Open examples for a fitted model: those in memory as one block."""
        data = None
        if is_in_memory(groups):
            data = self._validate_in_memory(X, y, None, reset=False)
        if data is None:
            return self._open(X, y, groups=groups)
        return row_blocks(data.X, data.y, groups=groups, chunks=data.X.shape[0])

    def score(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
    ) -> float:
        """Return the share of rows whose label is predicted, in one pass if X is out of core.

        Parameters
        ----------
        X : array-like of shape (n, d), or path
        y : array-like of shape (n,), or str
        sample_weight : array-like of shape (n,), or str, optional
            Leave it out with groups.
        groups : array-like of shape (n,), or str, optional
            As in `fit`.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if groups is None and hasattr(self, "coef_"):
            return super().score(X, y, sample_weight)
        if y is None or sample_weight is not None:
            raise InvalidInputError(
                "structured answers are scored with y and without sample_weight",
                argument="y",
                remedy="pass y, and leave out sample_weight",
            )
        return share_right(self._examples(X, y, groups), self._predict_block)

    def decision_function(self, X: Any) -> Any:
        """Score of every class, for "multiclass".

        Parameters
        ----------
        X : array-like of shape (n, d), or path

        Returns
        -------
        ndarray or dask.array.Array of shape (n,) or (n, n_classes), float64
            Lazy if X is out of core.

        Raises
        ------
        InvalidInputError
            For other problems, whose answers are too many to score.
        """
        check_is_fitted(self)
        if not hasattr(self, "coef_"):
            raise InvalidInputError(
                'only problem="multiclass" scores every class', remedy="call predict instead"
            )
        return super().decision_function(X)
