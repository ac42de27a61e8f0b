"""What an advisor compares: the constructions for a task, tried on a pilot."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from daskcoreset.build import build
from daskcoreset.core.blocks import Block, labels_of
from daskcoreset.core.coreset import Coreset
from daskcoreset.core.errors import InvalidInputError
from daskcoreset.core.linalg import one_thread
from daskcoreset.core.random import Stage, stream
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
from daskcoreset.solvers.spherical import unit_centers


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


def _own_cost(objective: Any, rows: Block, solution: Any) -> float:
    return float(objective.cost(rows, solution))


def _solved(objective: Any, rows: Block, rng: np.random.Generator, start: Any = None) -> Any:
    del start
    return objective.solve(rows, rng)


def _clustered(
    objective: QuantizationError,
    rows: Block,
    rng: np.random.Generator,
    start: FloatArray | None = None,
) -> FloatArray:
    """Solve as `CoresetKMeans` does by default, or from given centers."""
    k, seed = objective.n_clusters or 1, int(rng.integers(2**32))
    rows = rows.take(np.flatnonzero(rows.weights > 0.0))
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
        From the cost, weighted rows, a generator and the best solution known, or None, to one.
    cost : callable
        From the cost, weighted rows and a solution to what solutions are told apart by: the cost
        itself, or another number that differs from it by what is the same for all solutions.
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
    cost: Callable[..., float] = _own_cost
    by_chance: bool = False


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
        solve=MixtureCost.solve_well,
        cost=MixtureCost.negative_log_likelihood,
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


def _of_all_classes(objective: Objective[Any], rows: Block) -> Any:
    """Return the cost of classifiers of all classes of the rows."""
    if isinstance(objective, LinearCost) and len(labels := np.unique(labels_of(rows))) > 2:
        return SeveralClasses(objective, labels)
    return objective


@dataclass(eq=False)
class Trials:
    """Coresets of a pilot, which stands for all rows, and what their solutions cost on it.

    Attributes
    ----------
    pilot : Coreset
    task : Task
    n_clusters : int or None
    size : int
        Rows of the coresets.
    n_rows : int
        Of the data.
    seed : int
    costs : dict of str to list of float
        Cost on the pilot of the solution of every trial, by candidate.
    coreset_costs : dict of str to list of float
        The same where the solver starts at the best solution known: what the coreset itself costs.
    drawn : dict of str to list of Block
        Rows of the coreset of every trial, by candidate.
    least_cost : float
        Of the best solution known, as the task tells solutions apart.
    scale : float
        Cost of the best solution known, of which errors are shares.
    none : float
        Cost that is nothing but rounding beside that of the first solution.
    seconds : dict of str to float
        Of the quickest build from the pilot, by candidate: the first one compiles loops.
    unmet : set of str
        Constructions for linear models of which a trial met but a part of the sums that weights
        are calibrated to, by chance.
    """

    pilot: Coreset
    task: Task
    n_clusters: int | None
    size: int
    n_rows: int
    seed: int
    costs: dict[str, list[float]] = field(default_factory=dict)
    coreset_costs: dict[str, list[float]] = field(default_factory=dict)
    drawn: dict[str, list[Block]] = field(default_factory=dict, repr=False)
    least_cost: float = np.inf
    seconds: dict[str, float] = field(default_factory=dict)
    unmet: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rows = block_of(self.pilot)
        objective = self.task.objective(self.n_clusters).fitted(self.rows)
        self.objective: Any = _of_all_classes(objective, self.rows)
        rng = stream(self.seed, Stage.SIZING, 2)
        # By chance, the best of all trials counts: a rough one of few rows does to begin with.
        rows = self._drawn(self.task.candidates[0], rng) if self.task.by_chance else self.rows
        with warnings.catch_warnings():  # as of trials
            warnings.simplefilter("ignore")
            first = self._solution(rows, rng)
        self._keep(first, self.task.cost(self.objective, self.rows, first))
        self.none = 1e-12 * self.scale

    def run(self, candidates: Sequence[Candidate], count: int) -> None:
        """Try each candidate `count` times more."""
        for candidate in candidates:
            costs = self.costs.setdefault(candidate.name, [])
            for _ in range(count):
                costs.append(self._cost(candidate, len(costs)))
        if not self.task.by_chance:
            self.coreset_costs = self.costs
            return
        # The best one may be that of a trial, and ends lower on all rows of the pilot.
        self._solved(self.rows, stream(self.seed, Stage.SIZING, 4), self.best)
        start = self.best
        for name, blocks in self.drawn.items():
            self.coreset_costs[name] = [
                self._solved(rows, stream(self.seed, Stage.SIZING, 5), start) for rows in blocks
            ]

    def _cost(self, candidate: Candidate, trial: int) -> float:
        rng = stream(self.seed, Stage.SIZING, 3, trial)
        rows = self._drawn(candidate, rng)
        self.drawn.setdefault(candidate.name, []).append(rows)
        return self._solved(rows, rng)

    def _drawn(self, candidate: Candidate, rng: np.random.Generator) -> Block:
        with warnings.catch_warnings():  # they are about the pilot
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            coreset = candidate.build(
                self.pilot.points,
                self.pilot.labels,
                sample_weight=self.pilot.weights,
                n_clusters=self.n_clusters,
                size=self.size,
                random_state=int(rng.integers(2**63)),
                chunks=len(self.pilot),
                progress=False,
            )
        taken = time.perf_counter() - began
        self.seconds[candidate.name] = min(taken, self.seconds.get(candidate.name, np.inf))
        calibration = coreset.provenance.get("calibration")
        if self.task.labels and calibration and calibration["part"] < 1.0:
            self.unmet.add(candidate.name)
        return block_of(coreset)

    def _solution(self, rows: Block, rng: np.random.Generator, start: Any = None) -> Any:
        found = self.task.solve(self.objective, rows, rng, start)
        if self.pilot.metric == "cosine" and isinstance(self.objective, QuantizationError):
            rows = rows.take(np.flatnonzero(rows.weights > 0.0))
            return unit_centers(rows.points, rows.weights, found)
        return found

    def _solved(self, rows: Block, rng: np.random.Generator, start: Any = None) -> float:
        """Cost on the pilot of the solution on some rows, which may be the best one known."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                solution = self._solution(rows, rng, start)
        except ValueError:  # of rows that show no solution, such as those of one class
            return np.inf
        cost = self.task.cost(self.objective, self.rows, solution)
        if cost < self.least_cost:
            self._keep(solution, cost)
        return cost

    def _keep(self, solution: Any, cost: float) -> None:
        """Take a solution for the best one known."""
        self.least_cost, self.best = cost, solution
        self.scale = _own_cost(self.objective, self.rows, solution)

    def errors(self, name: str, *, of_coreset: bool = False) -> FloatArray:
        """Relative errors of the solutions, for all rows in place of the pilot.

        With `of_coreset` those of solvers that start at the best solution known.
        """
        gaps = np.array((self.coreset_costs if of_coreset else self.costs)[name]) - self.least_cost
        # A cost of nothing but rounding is one of zero, over which any other is infinitely more.
        if self.scale <= max(self.none, 1e-300):
            return np.where(gaps <= max(self.none, self._rounding()), 0.0, np.inf)
        errors = np.maximum(gaps / self.scale, 0.0)
        if self.task.by_chance and not of_coreset:
            # What the coreset itself costs more on all rows; starts miss as much on either.
            own = np.array(self.coreset_costs[name]) - self.least_cost
            own = np.maximum(own / self.scale, 0.0)
            with np.errstate(invalid="ignore"):
                return errors + np.nan_to_num(own * (self._beyond_pilot(name) - 1.0), posinf=0.0)
        return errors * self._beyond_pilot(name)

    def _beyond_pilot(self, name: str) -> float:
        """How much more a coreset of all rows errs than one of the pilot."""
        if self.n_rows == len(self.pilot):
            return 1.0
        # A draw without replacement from so few rows is nearer to them than one from all.
        candidate = next(one for one in self.task.candidates if one.name == name)
        drawn = candidate.n_drawn(self.n_clusters, self.size, self.pilot.n_features)
        of_all, of_pilot = (1.0 - drawn / n for n in (self.n_rows, len(self.pilot)))
        return max(of_all, 0.0) / max(of_pilot, 1e-9)

    def _rounding(self) -> float:
        """Cost that is nothing but rounding."""
        points: Any = self.rows.points
        return 1e-18 * float(self.rows.weights.sum()) * float(abs(points).max()) ** 2

    def least_spread(self) -> float:
        """Least deviation, between builds, of the logarithm of the error of a linear model.

        The excess of a solution is near to a quadratic form of a gradient that is Gaussian in as
        many directions as there are parameters. Its logarithm deviates least where all directions
        count alike: as that of a chi-squared value of so many degrees of freedom. Trials that
        agree more closely do so by chance.
        """
        if not self.task.labels:
            return 0.0
        from scipy.special import polygamma

        several = isinstance(self.objective, SeveralClasses)
        n_models = len(self.objective.labels) - 1 if several else 1
        return float(np.sqrt(polygamma(1, 0.5 * n_models * (self.pilot.n_features + 1))))

    def largest_share(self) -> float:
        """Share of the best cost on a uniform sample that one row would have, were it drawn."""
        losses = self.objective.losses(self.rows, self.best)
        total = float((losses * self.rows.weights).sum())
        factor = float(self.rows.weights.sum()) / self.size
        return factor * float(losses.max()) / total if total > 0.0 else 0.0


def block_of(coreset: Coreset) -> Block:
    """Return the rows of a coreset with their weights."""
    return Block(coreset.points, coreset.weights, coreset.labels, coreset.indices)
