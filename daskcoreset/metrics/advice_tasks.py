"""What an advisor compares for every task, and how solutions are found and told apart."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from daskcoreset.build import build
from daskcoreset.constructions.sampling.held_out import HeldOut, judges
from daskcoreset.core.blocks import Block, labels_of
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.points import deduplicate
from daskcoreset.core.typing import AnyArray, FloatArray
from daskcoreset.objectives import (
    LeastSquaresCost,
    LinearCost,
    MixtureCost,
    Objective,
    QuantizationError,
)
from daskcoreset.sensitivities.kmeans import StrongKMeans
from daskcoreset.solvers import kmeans
from daskcoreset.solvers.mixture.em import fit_before_steps, fit_mixture
from daskcoreset.solvers.mixture.model import Mixture, score_samples


@dataclass(frozen=True)
class Candidate:
    """A construction that is compared.

    Attributes
    ----------
    name : str
        What it is called in the table.
    options : mapping of str to object
        Options of `daskcoreset.build`, `method` among them, which may be a function of the number
        of clusters.
    of_rows : bool
        Whether its coresets are rows, which may be sparse and have labels.
    """

    name: str
    options: Mapping[str, Any]
    of_rows: bool = True

    def options_for(self, n_clusters: int | None) -> dict[str, Any]:
        """Options of `daskcoreset.build` for solutions of so many clusters."""
        method = self.options["method"]
        return {**self.options, "method": method(n_clusters) if callable(method) else method}

    def build(self, X: Any, y: Any = None, *, n_clusters: int | None, **options: Any) -> Any:
        """Call `daskcoreset.build` for solutions of so many clusters, where they have any."""
        chosen = {**self.options_for(n_clusters), **options}
        if n_clusters is not None:
            chosen["n_clusters"] = n_clusters
        return build(X, y, **chosen)

    def n_drawn(self, n_clusters: int | None, size: int, n_features: int) -> int:
        """Rows that are drawn for a coreset of `size`: for one of centroids more."""
        if self.of_rows:
            return size
        drawn: int = self.options_for(n_clusters)["method"].design.n_drawn(size, n_features)
        return drawn


@dataclass(frozen=True)
class Drawn:
    """Rows to solve on.

    Attributes
    ----------
    rows : Block
    held_out : HeldOut or None
        Candidates beside them, where a solver chooses among its runs by these.
    """

    rows: Block
    held_out: HeldOut | None = None


def _solved(objective: Any, drawn: Drawn, rng: np.random.Generator, start: Any = None) -> Any:
    del start
    return objective.solve(drawn.rows, rng)


def _clustered(
    objective: QuantizationError,
    drawn: Drawn,
    rng: np.random.Generator,
    start: FloatArray | None = None,
) -> FloatArray:
    """Solve as `CoresetKMeans` does by default, or from given centers."""
    k, seed = objective.n_clusters or 1, int(rng.integers(2**32))
    rows = drawn.rows.take(np.flatnonzero(drawn.rows.weights > 0.0))
    if len(rows) <= k:
        return objective.solve(rows, rng)
    options: dict[str, Any] = {"init": "k-means++", "n_init": kmeans.auto_starts(k), "tol": 1e-4}
    if start is not None and len(start) == k:
        # What errors are measured over ends in its optimum: where few rows far out hold the
        # variance, a tolerance relative to that ends after a step, far above.
        options |= {"init": start, "n_init": 1, "tol": 0.0}
    with warnings.catch_warnings():  # of fewer distinct rows than clusters
        warnings.simplefilter("ignore")
        found = kmeans.solve(rows.points, rows.weights, k, max_iter=300, seed=seed, **options)
    return found.centers


def _mixed(
    objective: MixtureCost,
    drawn: Drawn,
    rng: np.random.Generator,
    start: Mixture | None = None,
) -> Mixture:
    """Solve as `CoresetGaussianMixture` does by default, or from a given mixture.

    Of fewer distinct rows than components there are as many components as rows; a mixture of
    another number than that is no start.
    """
    points, weights, _ = deduplicate(drawn.rows.points, drawn.rows.weights)
    k = min(objective.n_components or 1, int((weights > 0.0).sum()))
    warm = None if start is None or len(start.means) != k else fit_before_steps(start)
    judge, screen = judges(drawn.held_out, score_samples, drawn.rows.points)
    with warnings.catch_warnings():  # of runs that did not converge
        warnings.simplefilter("ignore")
        fit = fit_mixture(
            points, weights, n_components=k, n_init="auto", random_state=rng,
            warm_start=warm, judge=judge, screen=screen,
        )  # fmt: skip
    return fit.mixture


def _of_centroids(n_clusters: int) -> StrongKMeans:
    return StrongKMeans(n_clusters, representatives="centroids")


def _methods(*names: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(name, {"method": name}) for name in names)


@dataclass(frozen=True)
class Task:
    """What solutions are for, and the constructions for it.

    Attributes
    ----------
    objective : callable
        From the number of clusters, or None, to the cost.
    candidates : tuple of Candidate
        The safest first, which wins ties; a new construction is one entry more. The last one is
        "uniform".
    pilot : str
        Method of one read by which the pilot is drawn.
    labels, clusters : bool
        Whether rows have labels, and solutions a number of clusters.
    solve : callable
        From the cost, what was drawn, a generator and the best solution known, or None, to one.
    in_nats : bool
        Whether solutions are told apart by the negative log-likelihood, and errors are nats a row,
        by weight, and no shares of the cost of the best solution: a likelihood has no zero.
    by_chance : bool
        Whether solutions depend on where the solver starts. Constructions are compared by
        solutions from the best one known then, and the error that is foretold is that of a solver
        which does not know it.
    """

    objective: Callable[[int | None], Objective[Any]]
    candidates: tuple[Candidate, ...]
    pilot: str
    labels: bool = False
    clusters: bool = False
    solve: Callable[..., Any] = _solved
    in_nats: bool = False
    by_chance: bool = False

    def cost(self, objective: Any, rows: Block, solution: Any) -> float:
        """Return what solutions are told apart by."""
        cost = objective.negative_log_likelihood if self.in_nats else objective.cost
        return float(cost(rows, solution))


TASKS: dict[str, Task] = {
    "clustering": Task(
        QuantizationError,
        (
            Candidate("kmeans", {"method": "kmeans"}),
            Candidate("centroids", {"method": _of_centroids}, of_rows=False),
            *_methods("lightweight", "uniform"),
        ),
        "kmeans",
        clusters=True,
        solve=_clustered,
        by_chance=True,
    ),
    "mixture": Task(
        MixtureCost,
        _methods("mixture", "lightweight", "uniform"),
        "mixture",
        clusters=True,
        solve=_mixed,
        in_nats=True,
        by_chance=True,
    ),
    "classification": Task(
        lambda _: LinearCost("logistic"),
        _methods("logistic", "svm", "uniform"),
        "logistic",
        labels=True,
    ),
    "svm": Task(lambda _: LinearCost("hinge"), _methods("svm", "uniform"), "logistic", labels=True),
    "regression": Task(
        lambda _: LeastSquaresCost(),
        _methods("least_squares", "uniform"),
        "least_squares",
        labels=True,
    ),
}


@dataclass(frozen=True)
class SeveralClasses:
    """Classifiers of more than two classes, as scikit-learn's twins fit them.

    Those by the logistic loss have the softmax of all classes, as `LogisticRegression` has, and
    those by the hinge are one against the rest for every class. `LinearCost` is of one class.

    Attributes
    ----------
    one : LinearCost
        Of a single class.
    labels : ndarray of shape (K,)
        All classes, sorted.
    """

    one: LinearCost
    labels: AnyArray

    def solve(self, block: Block, rng: np.random.Generator) -> Any:
        """Return coefficients of shape (K, d) and intercepts; an error where a class is missing."""
        own = labels_of(block)
        if len(np.unique(own)) < len(self.labels):
            raise InvalidInputError("rows show no solution: a class is missing; pass more rows.")
        if self.one.loss == "hinge":
            found = [self.one.solve(replace(block, labels=own == one), rng) for one in self.labels]
            return np.stack([one.coef for one in found]), np.array([o.intercept for o in found])
        from sklearn.linear_model import LogisticRegression

        with one_thread():
            model = LogisticRegression(C=self.one.lam, max_iter=1000, tol=1e-6)
            model.fit(block.points, own, sample_weight=block.weights)
        return model.coef_, model.intercept_

    def losses(self, block: Block, solution: Any) -> FloatArray:
        """Losses of the rows, float64 of shape (n,)."""
        coef, intercept = solution
        points: Any = block.points
        values = np.asarray(points @ coef.T, dtype=np.float64) + intercept
        is_own = labels_of(block)[:, np.newaxis] == self.labels
        losses: FloatArray = np.logaddexp.reduce(values, axis=1) - values[is_own]
        if self.one.loss == "hinge":
            losses = self.one.margin_loss(np.where(is_own, values, -values)).sum(axis=1)
        return self.one.lam * losses

    def cost(self, block: Block, solution: Any) -> float:
        """Cost on all rows, the penalty included."""
        return 0.5 * float(np.square(solution[0]).sum()) + float(
            self.losses(block, solution) @ block.weights
        )


def of_all_classes(objective: Objective[Any], rows: Block) -> Any:
    """Return the cost of classifiers of all classes of the rows."""
    if isinstance(objective, LinearCost) and len(labels := np.unique(labels_of(rows))) > 2:
        return SeveralClasses(objective, labels)
    return objective


def block_of(coreset: Coreset) -> Block:
    """Return the rows of a coreset with their weights."""
    return Block(coreset.points, coreset.weights, coreset.labels, coreset.indices)
