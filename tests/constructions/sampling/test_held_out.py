"""Rows held out: what they say of all rows, whatever the coreset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset.build import build_and_hold_out
from daskcoreset.constructions.sampling.held_out import HeldOut
from daskcoreset.core.coreset import Coreset
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform

RNG = np.random.default_rng(0)
X = RNG.standard_t(3, size=(60_000, 2)) * np.linspace(1.0, 3.0, 60_000)[:, np.newaxis]
X[::7] = X[3]  # one value of many rows
U = RNG.integers(0, 4, size=len(X)).astype(float)


def held_out(
    method: Sensitivity[Any], seed: int, count: int = 20_000, **options: Any
) -> tuple[Coreset, HeldOut | None]:
    options = {"sampling": "systematic", "passes": 1, "normalize": False} | options
    blocks = row_blocks(X, None, U, chunks=12_000)
    return build_and_hold_out(
        blocks, count, size=500, method=method, n_clusters=None, random_state=seed, **options
    )


def value(points: Any) -> Any:
    return np.log1p((points**2).sum(axis=1))


@pytest.mark.statistical
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("method", [Lightweight(), Uniform()])
@pytest.mark.parametrize("count", [20_000, 700])
def test_mean__unbiased_with_an_honest_error(
    method: Sensitivity[Any], passes: int, count: int
) -> None:
    """Means over 40 seeds are normal within five of their errors: a chance of 6e-7."""
    truth = float(U @ value(X)) / U.sum()
    z = []
    for seed in range(40):
        coreset, rows = held_out(method, seed, count, passes=passes)
        assert rows is not None
        assert len(rows.weights) <= count
        mean, error = rows.mean(value(coreset.points), value(rows.points))
        assert error > 0.0
        z.append((mean - truth) / error)
    assert abs(np.mean(z)) < 5.0 / np.sqrt(40)
    # Systematic draws vary less than independent ones, of which the error is.
    assert 0.2 < np.std(z) < 1.5


def test_hold_out__shares_no_row_with_the_coreset_and_counts_the_others() -> None:
    rows = RNG.normal(size=(5000, 3))
    blocks = row_blocks(rows, chunks=1000)
    options: dict[str, Any] = {"sampling": "systematic", "passes": 1, "normalize": False}
    coreset, kept = build_and_hold_out(
        blocks, 9000, size=800, method=Uniform(), n_clusters=None, random_state=0, **options
    )
    assert kept is not None
    both = np.concatenate([coreset.points, np.asarray(kept.points)])
    assert len(np.unique(both, axis=0)) == 5000  # all rows are candidates
    np.testing.assert_allclose(kept.factors, 1.0)
    on_all = kept.mean(coreset.points[:, 0], np.asarray(kept.points)[:, 0])
    assert on_all == (pytest.approx(rows[:, 0].mean(), abs=1e-12), 0.0)


def test_mean__infinite_values_have_an_infinite_error() -> None:
    _, rows = held_out(Uniform(), 0)
    assert rows is not None
    of_coreset, of_rows = np.zeros(500), np.zeros(len(rows.weights))
    of_rows[0] = -np.inf
    assert rows.mean(of_coreset, of_rows) == (-np.inf, np.inf)


def test_hold_out__nothing_of_independent_draws_or_where_all_rows_are_taken() -> None:
    assert held_out(Uniform(), 0, sampling="multinomial")[1] is None
    blocks = row_blocks(X[:400])
    options: dict[str, Any] = {"sampling": "systematic", "passes": 1, "normalize": False}
    with pytest.warns(UserWarning, match="not below"):
        _, rows = build_and_hold_out(
            blocks, 9, size=500, method=Uniform(), n_clusters=None, random_state=0, **options
        )
    assert rows is None
