"""The pilot of SVM coresets, and how near it is to the optimum."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.core.blocks import Block
from daskcoreset.sensitivities import SVM
from daskcoreset.solvers.linear import solve_svm
from tests.tools.two_classes import settled, two_classes

pytestmark = [
    pytest.mark.filterwarnings("ignore:a solution fitted on the coreset"),  # which are tiny here
    pytest.mark.filterwarnings("ignore:how far a solution fitted"),
]


def test_opt__near_the_optimum_and_below_it_where_the_pilot_holds_all() -> None:
    X, y = two_classes(1000)
    rough = settled(SVM(), Block(X, np.ones(1000), y))
    best = solve_svm(X, y.astype(float), np.ones(1000), tol=1e-8)
    assert 0.999 * best.cost <= rough.opt <= best.cost
