"""The state of active learning: its first separator."""

from __future__ import annotations

import math

import numpy as np
import pytest

from daskcoreset.constructions.margin.active_state import ActiveOptions, separate
from daskcoreset.constructions.margin.labels import Labelled


@pytest.mark.parametrize("intercept", [True, False])
def test_separate__starts_from_a_row_of_each_class(intercept: bool) -> None:
    rows, none = np.array([[-3.0, 1.0], [-2.0, -1.0], [2.0, 0.0]]), np.empty(0, np.int64)
    labelled = Labelled(np.arange(3), rows, np.array([0, 0, 1]), np.zeros(3, np.int64), ("a", "b"))
    assert labelled.signs.tolist() == [-1.0, -1.0, 1.0]
    rule = ActiveOptions(1.0, 0.1, 0.1, intercept, 1, False, None, math.inf, 0)
    found = separate(labelled, None, none, rule)
    assert found.core.tolist() == [0, 2]
