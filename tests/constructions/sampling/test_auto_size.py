"""Sizes that grow until two coresets agree."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset.constructions.sampling import auto_size as growth
from daskcoreset.core.coreset import thaw
from daskcoreset.core.typing import FloatArray
from daskcoreset.errors import CoresetWarning
from daskcoreset.sensitivities import Mixture, Sensitivity, StrongBregman


def mixture(n: int = 20_000, seed: int = 0) -> FloatArray:
    """Eight uneven clusters in three dimensions, in random order."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(8, 3)) * 6
    share = np.array([0.5, 0.2, 0.1, 0.1, 0.05, 0.03, 0.015, 0.005])
    return centers[rng.choice(8, n, p=share)] + rng.normal(size=(n, 3))


def grown(X: Any, **options: Any) -> SimpleNamespace:
    """What `grow` says that it tried."""
    coreset = daskcoreset.grow(X, **{"method": "lightweight", **options})
    rule = thaw(coreset.provenance)["size_rule"]
    steps = [SimpleNamespace(**{"on_data": None, **step}) for step in rule["steps"]]
    reads = sum(step.reads for step in steps)
    return SimpleNamespace(**{**rule, "steps": steps, "coreset": coreset, "reads": reads})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that starts low, so that it has steps."""
    monkeypatch.setattr(growth, "_MIN_START", 40)
    monkeypatch.setattr(growth, "_ROWS_PER_CLUSTER", 5)


def test_auto_size__a_cost_of_zero_on_one_side_only_is_told_as_infinite() -> None:
    X = np.zeros((40, 1))
    X[0] = 1.0  # in a coreset of 20 of the 40 rows, or not
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = next(
            found
            for seed in range(50)
            if not (found := grown(X, method="uniform", n_clusters=1, random_state=seed)).agreed
            and found.steps[-1].disagreement is None
        )
    assert not found.agreed
    assert issubclass(said[-1].category, CoresetWarning)
    assert "inf" in str(said[-1].message)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["strong_bregman", "mixture"])
def test_auto_size__compares_the_cost_that_the_construction_is_made_for(name: str) -> None:
    rows = np.abs(mixture(5000)) + 0.1
    methods: dict[str, Sensitivity[Any]] = {
        "strong_bregman": StrongBregman(4, "kl"),
        "mixture": Mixture(4),
    }
    found = grown(rows, method=methods[name], n_clusters=4, epsilon=0.15, random_state=2)
    assert found.agreed
    report = found.coreset.audit(rows, random_state=1)
    assert (
        report.objective.name == {"strong_bregman": "distortion", "mixture": "mixture cost"}[name]
    )
    # The union has half of the difference that was allowed; fitted solutions are the worst.
    assert report.distortion < 0.15
