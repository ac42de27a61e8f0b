"""Every public call, with arguments that work, for tests that spoil one of them."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from tests.acceptance.face import Draw, MergeReduce, library as dc

N = 40

NOTHING = "nothing"  # a path where nothing is

RNG = np.random.default_rng(0)

ROWS = RNG.normal(size=(N, 3)) + 3.0 * np.repeat([[0, 0, 0], [3, 1, 2]], N // 2, axis=0)

SIDES = np.repeat([-1, 1], N // 2)

APART = ROWS - [4.5, 1.5, 3.0]  # a plane through the origin separates the sides

WEIGHTS = RNG.uniform(1.0, 2.0, N)


@dataclass(frozen=True)
class PublicCall:
    """A call and arguments that it takes.

    Attributes
    ----------
    name : str
    function : callable
    good : mapping of str to object
        Passed by name.
    known : tuple of str
        Names of all arguments that may be spoilt.
    """

    name: str
    function: Callable[..., Any]
    good: Mapping[str, Any] = field(default_factory=dict)

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the arguments."""
        parameters = inspect.signature(self.function).parameters.values()
        kinds = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
        names = [each.name for each in parameters if each.kind not in kinds]
        return tuple(dict.fromkeys([*self.good, *names]))


def _with(make: Callable[..., Any], then: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a call of `make` with its own arguments, followed by the use of what is made."""

    def call(**options: Any) -> Any:
        return then(make(**options))

    call.__signature__ = inspect.signature(make)  # type: ignore[attr-defined] # as mypy has it
    return call


def _fitted(estimator: Any) -> Any:
    return estimator.fit(ROWS, SIDES)


def _estimators() -> list[PublicCall]:
    small: dict[str, Any] = {"random_state": 0}
    options: dict[str, dict[str, Any]] = {
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
    calls = []
    for name in dc.estimators.__all__:
        make = getattr(dc.estimators, name)
        if not hasattr(make, "fit"):
            continue
        good = options.get(name, {})
        if "random_state" in inspect.signature(make).parameters:
            good = {**small, **good}
        calls.append(PublicCall(f"{name}.fit", _with(make, _fitted), good))
        fitted = _fitted(make(**good))
        for method in ("predict", "transform", "score", "decision_function", "partial_fit"):
            if hasattr(fitted, method):
                data: dict[str, Any] = {"X": ROWS}
                names = inspect.signature(getattr(fitted, method)).parameters
                if "y" in names and method != "transform":
                    data["y"] = SIDES
                calls.append(PublicCall(f"{name}.{method}", _late(make, good, method), data))
        data = {"X": ROWS, "y": SIDES}
        calls.append(PublicCall(f"{name}.fit(X)", _late(make, good, "fit"), data))
    return calls


def _late(make: Any, good: dict[str, Any], method: str) -> Callable[..., Any]:
    """Return a method of an estimator that is fitted anew for every call."""
    fitted = None if method == "fit" else _fitted(make(**good))

    def call(**data: Any) -> Any:
        from copy import deepcopy

        estimator = make(**good) if fitted is None else deepcopy(fitted)
        return getattr(estimator, method)(**data)

    call.__signature__ = inspect.signature(getattr(make(**good), method))  # type: ignore[attr-defined] # as mypy has it
    return call


def _tree(**options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        tree = dc.CoresetTree.create(Path(folder) / "t", **options)
        tree.append(ROWS, name="a")
        return tree.coreset()


_tree.__signature__ = inspect.signature(  # type: ignore[attr-defined] # as mypy has it
    lambda method, size, inner_size, random_state, sampling, on_invalid, n_clusters: None  # noqa: ARG005 - its names are used
)


def _of_tree(what: str) -> Callable[..., Any]:
    def call(**options: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            tree = dc.CoresetTree.create(
                Path(folder) / "t", method="uniform", size=20, random_state=0
            )
            tree.append(ROWS, name="a")
            tree.append(ROWS, name="b")
            version = tree.version
            try:
                return getattr(tree, what)(**options)
            except Exception:
                assert dc.CoresetTree.open(Path(folder) / "t").version == version
                raise

    function = getattr(dc.CoresetTree, what)
    call.__signature__ = _without_self(function)  # type: ignore[attr-defined] # as mypy has it
    return call


def _without_self(function: Any) -> inspect.Signature:
    signature = inspect.signature(function)
    kept = [each for name, each in signature.parameters.items() if name != "self"]
    return signature.replace(parameters=kept)


def _of_stream(what: str) -> Callable[..., Any]:
    def call(**options: Any) -> Any:
        stream = dc.CoresetStream("uniform", size=20, random_state=0).partial_fit(ROWS)
        try:
            return getattr(stream, what)(**options)
        except Exception:
            # Of an iterator, batches before the bad one were taken.
            assert stream.n_rows % N in {0, 1, 3}
            raise

    function = getattr(dc.CoresetStream, what)
    call.__signature__ = _without_self(function)  # type: ignore[attr-defined] # as mypy has it
    return call


def _coreset() -> dc.Coreset:
    return dc.build(ROWS, SIDES, size=20, random_state=0)


def _of_coreset(what: str) -> Callable[..., Any]:
    held = _coreset()

    def call(**options: Any) -> Any:
        return getattr(held, what)(**options)

    call.__signature__ = _without_self(getattr(dc.Coreset, what))  # type: ignore[attr-defined] # as mypy has it
    return call


def _of_path(what: Callable[..., Any]) -> Callable[..., Any]:
    """Return a call that writes: what it writes by a bad path of text must not stay here."""

    def call(**options: Any) -> Any:
        import os

        with tempfile.TemporaryDirectory() as folder:
            before = Path.cwd()
            os.chdir(folder)
            try:
                return what(**options)
            finally:
                os.chdir(before)

    call.__signature__ = inspect.signature(what)  # type: ignore[attr-defined] # as mypy has it
    return call


def _each(calls: dict[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return list(calls.items())


def public_calls() -> list[PublicCall]:
    """Return the table."""
    held = _coreset()
    built: dict[str, Any] = {"X": ROWS, "y": SIDES, "random_state": 0}
    points = {"points": ROWS, "weights": WEIGHTS, "indices": np.arange(N)}

    def computed(result: Any) -> Any:
        return [part[:2].compute() for part in result] if isinstance(result, tuple) else result

    def of(construction: Any) -> Any:
        return dc.build(ROWS, SIDES, size=20, method=construction, random_state=0)

    def of_rows(construction: Any) -> Any:
        return dc.build(np.abs(ROWS) + 0.1, size=20, method=construction, random_state=0)

    def covered(construction: Any) -> Any:
        return dc.build(ROWS, method=construction)

    gaussians: dict[str, Any] = {"n": 300, "d": 2, "n_clusters": 3, "random_state": 0}
    calls: list[PublicCall] = [
        PublicCall("build", dc.build, {**built, "size": 20}),
        PublicCall("build, tree", dc.build, {**built, "size": 20, "draw": MergeReduce()}),
        PublicCall("grow", dc.grow, {**built, "n_clusters": 2}),
        PublicCall("build, coverage", dc.build, {"X": ROWS, "size": 9, "method": "coverage"}),
        PublicCall("plan", dc.plan, {**built, "size": 20}),
        PublicCall("build, two passes", dc.build, {**built, "size": 20, "draw": Draw(passes=2)}),
        PublicCall("build_many", dc.build_many, {**built, "sizes": 9, "methods": ["uniform"]}),
        PublicCall("open_rows", dc.open_rows, {"source": ROWS}),
        PublicCall("Draw", dc.Draw, {}),
        PublicCall("MergeReduce", dc.MergeReduce, {}),
        PublicCall("audit", held.audit, {**built, "n_clusters": 2}),
        PublicCall("compare", dc.compare, {"X": ROWS, "n_clusters": 2, "sizes": 9}),
        PublicCall("WeightedPoints", dc.WeightedPoints, points),
        PublicCall("Coreset", dc.Coreset, points),
        PublicCall("SVM", _with(dc.SVM, of), {"n_clusters": 2}),
        PublicCall("Logistic", _with(dc.Logistic, of), {}),
        PublicCall("LeastSquares", _with(dc.LeastSquares, of), {}),
        PublicCall("StrongKMeans", _with(dc.StrongKMeans, of), {"n_clusters": 2}),
        PublicCall("StrongBregman", _with(dc.StrongBregman, of_rows), {"n_clusters": 2}),
        PublicCall("LightweightBregman", _with(dc.LightweightBregman, of_rows), {}),
        PublicCall("Mixture", _with(dc.Mixture, of), {"n_components": 2}),
        PublicCall("Coverage", _with(dc.Coverage, covered), {"size": 9}),
        PublicCall(
            "ActiveMaxMarginClassifier.start",
            dc.estimators.ActiveMaxMarginClassifier(random_state=0).start,
            {"X": ROWS},
        ),
        PublicCall("CoresetStream", _of_path(dc.CoresetStream), {"size": 20, "random_state": 0}),
        *(
            PublicCall(f"CoresetStream.{what}", _of_path(_of_stream(what)), good)
            for what, good in _each(
                {
                    "partial_fit": {"X": ROWS},
                    "coreset": {},
                    "save": {"path": "stream"},
                }
            )
        ),
        PublicCall("CoresetStream.load", _of_path(dc.CoresetStream.load), {"path": NOTHING}),
        PublicCall("CoresetTree.create", _tree, {"size": 20, "random_state": 0}),
        PublicCall("CoresetTree.create(path)", _of_path(dc.CoresetTree.create), {"path": "t"}),
        PublicCall(
            "CoresetTree.follow", _of_path(dc.CoresetTree.follow), {"source": NOTHING, "path": "t"}
        ),
        PublicCall("CoresetTree.open", _of_path(dc.CoresetTree.open), {"path": NOTHING}),
        *(
            PublicCall(f"CoresetTree.{what}", _of_tree(what), good)
            for what, good in _each(
                {
                    "append": {"X": ROWS, "name": "c"},
                    "replace": {"leaf": "a", "X": ROWS},
                    "delete": {"leaf": "a"},
                    "coreset": {"leaves": "a"},
                    "as_of": {"version": 1},
                    "partial_fit": {"X": ROWS},
                    "locate": {"indices": np.arange(3)},
                }
            )
        ),
        *(
            PublicCall(f"Coreset.{what}", _of_path(_of_coreset(what)), good)
            for what, good in _each(
                {
                    "audit": {"X": ROWS, "y": SIDES, "n_clusters": 2},
                    "merge": {},
                    "to_zarr": {"store": "c"},
                    "equals": {"other": held},
                }
            )
            if hasattr(dc.Coreset, what)
        ),
        PublicCall("Coreset.from_zarr", _of_path(dc.Coreset.from_zarr), {"store": NOTHING}),
        *(
            PublicCall(name, _with(getattr(dc.datasets, name), computed), good)
            for name, good in _each(
                {
                    "make_geometric": gaussians,
                    "make_mixture": gaussians,
                    "make_near_mean": {"n": 3000, "d": 2, "random_state": 0},
                }
            )
        ),
        PublicCall("kmeans_cost", dc.metrics.kmeans_cost, {"X": ROWS, "centers": ROWS[:2]}),
        PublicCall("plot_coreset", dc.plotting.plot_coreset, {"coreset": held, "X": ROWS}),
        PublicCall(
            "plot_coresets", dc.plotting.plot_coresets, {"coresets": {"a": held}, "X": ROWS}
        ),
        PublicCall(
            "theory_size",
            dc.metrics.theory_size,
            {"n_clusters": 3, "n_features": 2, "epsilon": 0.1, "delta": 0.1},
        ),
        PublicCall(
            "SquaredMahalanobis",
            dc.objectives.divergences.SquaredMahalanobis,
            {"precision": np.eye(3)},
        ),
        *(
            PublicCall(name, getattr(dc.objectives, name), {})
            for name in (
                "Distortion",
                "LeastSquaresCost",
                "LinearCost",
                "MixtureCost",
                "QuantizationError",
            )
        ),
    ]
    return [*calls, *_estimators()]
