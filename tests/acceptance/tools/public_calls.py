"""Every public call, with arguments that work, for tests that spoil one of them.

All of them are made in an empty folder, which is the current one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from tests.acceptance.face import Draw, MergeReduce, library as dc

N = 40

NOTHING = "nothing"  # a path where nothing is

RNG = np.random.default_rng(0)

ROWS = RNG.normal(size=(N, 3)) + 3.0 * np.repeat([[0, 0, 0], [3, 1, 2]], N // 2, axis=0)

SIDES = np.repeat([-1, 1], N // 2)

VARIABLE = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


@dataclass(frozen=True)
class PublicCall:
    """A call and arguments that it takes.

    Attributes
    ----------
    name : str
    function : callable
    good : mapping of str to object
        Passed by name.
    shown : callable, optional
        Whose parameters may be spoilt, if not those of the function.
    """

    name: str
    function: Callable[..., Any]
    good: Mapping[str, Any] = field(default_factory=dict)
    shown: Callable[..., Any] | None = None

    @property
    def known(self) -> tuple[str, ...]:
        """Names of all arguments that may be spoilt."""
        parameters = inspect.signature(self.shown or self.function).parameters.values()
        names = [each.name for each in parameters if each.kind not in VARIABLE]
        return tuple(dict.fromkeys([*self.good, *(name for name in names if name != "self")]))


def made_and(then: Callable[[Any], Any], make: Callable[..., Any], **good: Any) -> PublicCall:
    """Make something with arguments of its own, and use it."""
    return PublicCall(make.__qualname__, lambda **options: then(make(**options)), good, make)


def method_of(held: Callable[[], Any], kind: Any, what: str, **good: Any) -> PublicCall:
    """Call a method of something new."""
    return PublicCall(
        f"{kind.__name__}.{what}",
        lambda **options: getattr(held(), what)(**options),  # noqa: PLW0108 - made anew for each
        good,
        getattr(kind, what),
    )


def coreset() -> Any:
    return dc.build(ROWS, SIDES, size=20, random_state=0)


def stream() -> Any:
    return dc.CoresetStream("uniform", size=20, random_state=0).partial_fit(ROWS)


def of_tree(what: str, **good: Any) -> PublicCall:
    """Call a method of a tree, which a refusal leaves as it was."""

    def call(**options: Any) -> Any:
        tree = dc.CoresetTree.create("tree", method="uniform", size=20, random_state=0)
        for name in ("a", "b"):
            tree.append(ROWS, name=name)
        version = tree.version
        try:
            return getattr(tree, what)(**options)
        except Exception:
            assert dc.CoresetTree.open("tree").version == version
            raise

    return PublicCall(f"CoresetTree.{what}", call, good, getattr(dc.CoresetTree, what))


def grown_tree(tree: Any) -> Any:
    tree.append(ROWS, name="a")
    return tree.coreset()


def fitted(estimator: Any) -> Any:
    return estimator.fit(ROWS, SIDES)


def computed(result: Any) -> Any:
    return [part[:2].compute() for part in result] if isinstance(result, tuple) else result


def of(method: Any) -> Any:
    return dc.build(ROWS, SIDES, size=20, method=method, random_state=0)


def of_positive(method: Any) -> Any:
    return dc.build(np.abs(ROWS) + 0.1, size=20, method=method, random_state=0)


def covered(method: Any) -> Any:
    return dc.build(ROWS, method=method)


OPTIONS: dict[str, dict[str, Any]] = {
    "CoresetEstimator": {"estimator": LogisticRegression(), "size": 20},
    "CoresetKMeans": {"n_clusters": 2, "size": 20},
    "CoresetBregman": {"n_clusters": 2, "size": 20},
    "CoresetGaussianMixture": {"n_components": 2, "size": 30},
    "CoresetLogisticRegression": {"size": 20},
    "CoresetSVC": {"size": 20},
    "CoresetRidge": {"size": 20},
    "CoresetElasticNet": {"size": 20},
    "ODMClassifier": {"max_iter": 5},
}


def of_estimators() -> Iterator[PublicCall]:
    """Parameters and rows of `fit`, and rows of all that a fitted model answers."""
    for name in dc.estimators.__all__:
        make = getattr(dc.estimators, name)
        if not hasattr(make, "fit"):
            continue
        good = OPTIONS.get(name, {})
        if "random_state" in inspect.signature(make).parameters:
            good = {"random_state": 0, **good}
        yield made_and(fitted, make, **good)
        yield method_of(partial(make, **good), make, "fit", X=ROWS, y=SIDES)
        model = fitted(make(**good))
        for what in ("predict", "transform", "score", "decision_function", "partial_fit"):
            if hasattr(model, what):
                names = inspect.signature(getattr(model, what)).parameters
                beside = {"y": SIDES} if "y" in names and what != "transform" else {}
                yield method_of(partial(deepcopy, model), make, what, X=ROWS, **beside)


def public_calls() -> list[PublicCall]:
    """Return the table."""
    held = coreset()
    built: dict[str, Any] = {"X": ROWS, "y": SIDES, "random_state": 0}
    points = {"points": ROWS, "weights": RNG.uniform(1.0, 2.0, N), "indices": np.arange(N)}
    gaussians: dict[str, Any] = {"n": 300, "d": 2, "n_clusters": 3, "random_state": 0}
    theory = {"n_clusters": 3, "n_features": 2, "epsilon": 0.1, "delta": 0.1}
    active = dc.estimators.ActiveMaxMarginClassifier(random_state=0)
    divergences = dc.objectives.divergences
    plain: list[tuple[Callable[..., Any], dict[str, Any]]] = [
        (dc.build, {**built, "size": 20}),
        (dc.build, {**built, "size": 20, "draw": MergeReduce()}),
        (dc.build, {**built, "size": 20, "draw": Draw(passes=2)}),
        (dc.build, {"X": ROWS, "size": 9, "method": "coverage"}),
        (dc.grow, {**built, "n_clusters": 2}),
        (dc.plan, {**built, "size": 20}),
        (dc.build_many, {**built, "sizes": 9, "methods": ["uniform"]}),
        (dc.compare, {"X": ROWS, "n_clusters": 2, "sizes": 9}),
        (dc.open_rows, {"source": ROWS}),
        (dc.Draw, {}),
        (dc.MergeReduce, {}),
        (dc.WeightedPoints, points),
        (dc.Coreset, points),
        (dc.CoresetStream, {"size": 20, "random_state": 0}),
        (dc.CoresetStream.load, {"path": NOTHING}),
        (dc.CoresetTree.create, {"path": "t"}),
        (dc.CoresetTree.follow, {"source": NOTHING, "path": "t"}),
        (dc.CoresetTree.open, {"path": NOTHING}),
        (dc.Coreset.from_zarr, {"store": NOTHING}),
        (active.start, {"X": ROWS}),
        (dc.metrics.kmeans_cost, {"X": ROWS, "centers": ROWS[:2]}),
        (dc.metrics.theory_size, theory),
        (dc.plotting.plot_coreset, {"coreset": held, "X": ROWS}),
        (dc.plotting.plot_coresets, {"coresets": {"a": held}, "X": ROWS}),
        (divergences.SquaredMahalanobis, {"precision": np.eye(3)}),
        (dc.objectives.Distortion, {}),
        (dc.objectives.LeastSquaresCost, {}),
        (dc.objectives.LinearCost, {}),
        (dc.objectives.MixtureCost, {}),
        (dc.objectives.QuantizationError, {}),
    ]
    return [
        *(PublicCall(function.__qualname__, function, good) for function, good in plain),
        made_and(of, dc.SVM, n_clusters=2),
        made_and(of, dc.Logistic),
        made_and(of, dc.LeastSquares),
        made_and(of, dc.StrongKMeans, n_clusters=2),
        made_and(of, dc.Mixture, n_components=2),
        made_and(of_positive, dc.StrongBregman, n_clusters=2),
        made_and(of_positive, dc.LightweightBregman),
        made_and(covered, dc.Coverage, size=9),
        made_and(grown_tree, dc.CoresetTree.create, path="t", size=20, random_state=0),
        made_and(computed, dc.datasets.make_geometric, **gaussians),
        made_and(computed, dc.datasets.make_mixture, **gaussians),
        made_and(computed, dc.datasets.make_near_mean, n=3000, d=2, random_state=0),
        method_of(stream, dc.CoresetStream, "partial_fit", X=ROWS),
        method_of(stream, dc.CoresetStream, "coreset"),
        method_of(stream, dc.CoresetStream, "save", path="stream"),
        method_of(coreset, dc.Coreset, "audit", X=ROWS, y=SIDES, n_clusters=2, random_state=0),
        method_of(coreset, dc.Coreset, "merge"),
        method_of(coreset, dc.Coreset, "to_zarr", store="c"),
        method_of(coreset, dc.Coreset, "equals", other=held),
        of_tree("append", X=ROWS, name="c"),
        of_tree("replace", leaf="a", X=ROWS),
        of_tree("delete", leaf="a"),
        of_tree("coreset", leaves="a"),
        of_tree("as_of", version=1),
        of_tree("partial_fit", X=ROWS),
        of_tree("locate", indices=np.arange(3)),
        *of_estimators(),
    ]
