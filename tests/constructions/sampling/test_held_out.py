"""Rows held out: what they say of all rows, whatever the coreset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskcoreset import Draw
from daskcoreset._build import build_and_hold_out
from daskcoreset.constructions.sampling.held_out import HeldOut
from daskcoreset.core.coreset import Coreset
from daskcoreset.inputs.blocks import row_blocks
from daskcoreset.sensitivities import Lightweight, Sensitivity, Uniform
from tests.pairs import each

RNG = np.random.default_rng(0)
X = RNG.standard_t(3, size=(60_000, 2)) * np.linspace(1.0, 3.0, 60_000)[:, np.newaxis]
X[::7] = X[3]  # one value of many rows
U = RNG.integers(0, 4, size=len(X)).astype(float)


PLAIN: dict[str, Any] = {
    "size": 500,
    "method": Uniform(),
    "n_clusters": None,
    "random_state": 0,
    "draw": Draw(sampling="systematic", passes=1, normalize=False),
}


def held_out(
    method: Sensitivity[Any], seed: int, count: int = 20_000, **options: Any
) -> tuple[Coreset, HeldOut | None]:
    blocks = row_blocks(X, None, U, chunks=12_000)
    given: dict[str, Any] = PLAIN | {"method": method, "random_state": seed} | options
    return build_and_hold_out(blocks, count, **given)


def value(points: Any) -> Any:
    return np.log1p((points**2).sum(axis=1))


@pytest.mark.statistical
@each(count=[20_000, 700], method=[Lightweight(), Uniform()], passes=[1, 2])
def test_mean__unbiased_with_an_honest_error(
    method: Sensitivity[Any], passes: Any, count: int
) -> None:
    """Means over 24 seeds are normal within five of their errors: a chance of 6e-7."""
    truth = float(U @ value(X)) / U.sum()
    z = []
    for seed in range(24):
        coreset, rows = held_out(method, seed, count, draw=Draw(passes=passes))
        assert rows is not None
        assert len(rows.weights) <= count
        mean, error = rows.mean(value(coreset.points), value(rows.points))
        assert error > 0.0
        z.append((mean - truth) / error)
    assert abs(np.mean(z)) < 5.0 / np.sqrt(24)
    # Systematic draws vary less than independent ones, of which the error is.
    assert 0.2 < np.std(z) < 1.5


def test_hold_out__shares_no_row_with_the_coreset_and_counts_the_others() -> None:
    rows = RNG.normal(size=(5000, 3))
    coreset, kept = build_and_hold_out(row_blocks(rows, chunks=1000), 9000, **PLAIN)
    assert kept is not None
    of_coreset, others = np.asarray(coreset.points), np.asarray(kept.points)
    both = np.concatenate([of_coreset, others])
    assert len(np.unique(both, axis=0)) == 5000  # all rows are candidates
    np.testing.assert_allclose(kept.factors, 1.0)
    mean, error = kept.mean(of_coreset[:, 0], others[:, 0])
    assert mean == pytest.approx(rows[:, 0].mean(), abs=1e-12)
    assert error == 0.0
