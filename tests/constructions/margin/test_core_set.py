"""Bounds on the number of reads of the core-set loop."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from daskcoreset.constructions.margin.core_set import any_violator_bound, worst_violator_bound
from daskcoreset.solvers.hard_margin import hard_margin
from tests.tools.margins import separable


@given(seed=st.integers(0, 2**32 - 1), epsilon=st.floats(0.05, 0.9))
def test_bounds__hold_for_one_violator_at_a_time(seed: int, epsilon: float) -> None:
    """Fig. 1 in plain NumPy, the worst added and then any: both keep to their bounds."""
    rng = np.random.default_rng(seed)
    X, y = separable(rng, 60, 3, 0.5)
    z = X * y[:, None]
    radius, largest = np.linalg.norm(z, axis=1).max(), hard_margin(z).margin
    assume(largest > 0)
    for any_of_them in (False, True):
        core, before = [int(rng.integers(len(z)))], np.inf
        while True:
            fit = hard_margin(z[core])
            assert fit.margin < before
            # The recursion on which the bound rests.
            if before < np.inf:
                assert 1 / fit.margin**2 >= 1 / before**2 + epsilon**2 / (4 * radius**2) - 1e-12
            before = fit.margin
            margins = z @ np.asarray(fit.w)
            below = np.flatnonzero(margins < (1 - epsilon) * fit.margin)
            if not len(below):
                break
            core.append(int(rng.choice(below) if any_of_them else margins.argmin()))
        assert len(core) <= any_violator_bound(radius, largest, epsilon)
        if not any_of_them:
            assert len(core) <= worst_violator_bound(radius, largest, epsilon)


def test_bounds__are_infinite_without_a_margin() -> None:
    assert any_violator_bound(1.0, 0.0, 0.1) == worst_violator_bound(1.0, 0.0, 0.1) == np.inf
