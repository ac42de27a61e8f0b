import numpy as np
import pytest

from daskcoreset.solvers.mixture.cross_fit import expected_score
from daskcoreset.solvers.mixture.em import fit_mixture
from daskcoreset.solvers.mixture.model import score_samples


def test_expected_score__of_fresh_rows() -> None:
    off, above = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows, fresh = (rng.normal(size=(n, 4)) * [1, 2, 3, 4] for n in (150, 5000))
        mixture = fit_mixture(rows, n_components=4, random_state=0).mixture
        on_fresh = score_samples(mixture, fresh).mean()
        above.append(score_samples(mixture, rows).mean() - on_fresh)
        off.append(expected_score(rows, np.full(150, 1e4), mixture, 1_500_000) - on_fresh)
    assert np.mean(above) > 0.5
    assert abs(np.mean(off)) < 0.3 * np.mean(above)


def test_expected_score__of_rows_that_stand_for_themselves() -> None:
    """Rows far off that a coreset holds for certain are in the data once, and in the score."""
    rng = np.random.default_rng(0)
    far = 1e3 * rng.normal(size=(20, 3))
    data = np.vstack([rng.normal(size=(30_000, 3)), far])
    rows = np.vstack([data[:600], far])
    weights = np.concatenate([np.full(600, 50.0), np.ones(20)])
    mixture = fit_mixture(rows, weights, n_components=4, reg_covar=1e-3, random_state=0).mixture
    found = expected_score(rows, weights, mixture, 30_020, reg_covar=1e-3)
    assert found == pytest.approx(score_samples(mixture, data).mean(), abs=0.1)
    assert found == expected_score(rows, weights, mixture, 30_020, reg_covar=1e-3)
