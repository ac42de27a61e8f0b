"""Classes from float32 where it leaves no doubt."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.typing import FloatArray
from daskcoreset.estimators.classifier import DecisionFunction
from daskcoreset.estimators.kernel.decision import KernelDecision, SingleValues
from daskcoreset.estimators.kernel.kernels import Isotropic, KernelMap


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("offset", "factor"), [(0.0, 1.0), (1e5, 1.0), (0.0, 1e9), (0.0, 1e45)])
def test_predict__in_float32_as_in_float64(
    n_classes: int, offset: float, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3_000, 4)) + offset
    rows[:5] += 1e20  # whose values are zero
    core = KernelMap(Isotropic("rbf", 0.3), rows[20:80])
    beta = factor * rng.normal(size=(60, 1 if n_classes == 2 else n_classes))
    decision = KernelDecision(core, beta, np.arange(n_classes))
    expected = DecisionFunction.predict(decision, rows)
    seen: list[int] = []
    values = KernelDecision.values

    def counted(self: KernelDecision, points: FloatArray) -> FloatArray:
        seen.append(len(points))
        return values(self, points)

    monkeypatch.setattr(KernelDecision, "values", counted)
    np.testing.assert_array_equal(decision.predict(rows), expected)
    # What float32 leaves in doubt is little, whatever the size of coefficients.
    assert 5 <= sum(seen) <= 60


@pytest.mark.parametrize("d", [2, 50])
def test_single_values__errors_are_above_those_made(d: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2_000, d)) * np.exp(rng.normal(size=(2_000, 1)))
    core = KernelMap(Isotropic("rbf", 2.0 / d), rows[:300], 0.5 + rng.random(d))
    beta = rng.normal(size=(300, 2)) * np.array([1e30, 1e-30])
    exact = KernelDecision(core, beta, np.arange(3)).values(rows) / np.abs(beta).max()
    for part, values, errors in SingleValues(core, beta).tiles(rows):
        assert (np.abs(values - exact[part]) < errors).all()
        large = np.abs(exact[part, 0]) > 1e-3
        assert np.median(errors[large, 0] / np.abs(exact[part, 0])[large]) < 1e-2
