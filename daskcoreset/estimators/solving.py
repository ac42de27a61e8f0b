"""From an estimator to the solver that runs on its coreset."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import CoresetError, InvalidInputError, InvalidTypeError
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.random import resolve_seed
from daskcoreset.estimators.base import require_weighted_fit, solver_seed

# Parameters of an estimator that are not those of its solver: weights of classes are in the weights
# of the coreset, and the solver has a seed of its own.
_NOT_HANDED_ON = {"class_weight", "random_state"}


def handed_on(model: Any, solver: type) -> dict[str, Any]:
    """Return the parameters that a class of solvers has, too, with their values in the estimator.

    Parameters
    ----------
    model : estimator object
    solver : type
        A class of estimators whose parameters have defaults.

    Examples
    --------
    >>> from sklearn.linear_model import Lasso, Ridge
    >>> handed_on(Lasso(2.0), Ridge)["alpha"]
    2.0
    """
    ours = model.get_params(deep=False)
    shared = set(ours).intersection(solver().get_params(deep=False)) - _NOT_HANDED_ON
    return {name: ours[name] for name in sorted(shared)}


def solver_of(model: Any, coreset: Coreset) -> Any:
    """Return what an estimator solves with, not fitted: its `estimator`, or the default.

    The default one draws from a seed that belongs to that of the coreset, if it draws at all.
    """
    if model.estimator is not None:
        return clone(model.estimator)
    solver = model._default_solver()  # noqa: SLF001 - the estimator is ours
    if "random_state" in solver.get_params(deep=False):
        seed = coreset.provenance.get("seed")
        seed = resolve_seed(model.random_state) if seed is None else seed
        solver.set_params(random_state=solver_seed(seed))
    return solver


def solve_with(model: Any, solver: Any, points: Any, labels: Any, weights: Any) -> Any:
    """Fit what `solver_of` gives, on one thread; errors of an `estimator` are its own."""
    refused = refused_by_solver() if model.estimator is None else nullcontext()
    with refused, one_thread():
        return solver.fit(points, labels, sample_weight=weights)


def check_solver(model: Any, n_classes: int = 2) -> None:
    """Check the solver of an estimator before data are read for it, of so many classes.

    Raises
    ------
    InvalidTypeError
        The ``fit`` of `estimator` takes no ``sample_weight``.
    InvalidInputError
        The default solver takes no such parameters together, in the words of scikit-learn.
    """
    if model.estimator is not None:
        require_weighted_fit(model.estimator, "pass one that does")
        return
    solver = model._default_solver()  # noqa: SLF001 - the estimator is ours
    known = solver.get_params(deep=False)
    quiet = {name: value for name, value in (("verbose", 0), ("max_iter", 1)) if name in known}
    with refused_by_solver(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of four rows; those of the coreset are shown
        solver.set_params(**quiet).fit(*_tried(n_classes))


def _tried(n_classes: int) -> tuple[list[list[float]], list[int]]:
    """Return two rows of each class, or of each of three: more are as many as three to a solver."""
    labels = 2 * list(range(min(n_classes, 3)))
    return [[float(row)] for row in range(len(labels))], labels


@contextmanager
def refused_by_solver() -> Iterator[None]:
    """Turn what a solver of scikit-learn refuses into an error of ours, in its words."""
    try:
        yield
    except CoresetError:
        raise
    except (TypeError, ValueError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidInputError
        raise kind(str(error)) from error


def logistic_penalty(l1_ratio: float, C: float) -> dict[str, Any]:
    """Return the parameters of ``LogisticRegression`` that are its penalty.

    Those before scikit-learn 1.8 name it, and heed ``l1_ratio`` for that of an elastic net alone.

    Examples
    --------
    >>> LogisticRegression(**logistic_penalty(0.0, 1.0)).fit([[0.0], [1.0]], [0, 1]).coef_.shape
    (1, 1)
    """
    if LogisticRegression().get_params().get("penalty") != "l2":
        return {"l1_ratio": l1_ratio}
    if np.isinf(C):
        return {"penalty": None, "C": 1.0}  # they warn of any other C
    if l1_ratio in (0.0, 1.0):
        return {"penalty": "l2" if l1_ratio == 0.0 else "l1"}
    return {"penalty": "elasticnet", "l1_ratio": l1_ratio}
