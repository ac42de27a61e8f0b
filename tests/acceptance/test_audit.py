"""Audits: costs on a coreset beside those on all data, and intervals for other solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.acceptance import face


@pytest.mark.parametrize(
    "method", ["lightweight", "uniform", face.LightweightBregman("itakura_saito")]
)
def test_audit__after_build_with_every_default(method: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, size=(3_000, 3)) + rng.integers(1, 9, (3_000, 1))
    report = face.build(X, size=400, method=method, random_state=0).audit(X, random_state=0)
    solutions = dict(zip(report.names, report.solutions, strict=True))
    assert {2, 8, 32} < {len(each) for each in solutions.values()} <= set(range(1, 33))
    for k in (2, 8, 32):
        assert sum(f"k={k}" in name for name in solutions) == len(solutions) // 3
    assert report.distortion < 0.5
    assert f"k={k}" in repr(report)


def test_audit__of_fewer_rows_than_centers() -> None:
    X = np.arange(6.0).reshape(3, 2)
    with pytest.warns(face.errors.CoresetWarning, match="nothing was reduced"):
        coreset = face.build(X, random_state=0)
    report = coreset.audit(X, random_state=0)
    np.testing.assert_allclose(report.on_coreset, report.on_data)
