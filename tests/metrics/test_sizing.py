"""How large: the bounds of the papers, and growing until two coresets agree."""

from __future__ import annotations

import math

from daskcoreset.metrics.sizing import theory_size


def test_theory_size__is_the_formula() -> None:
    expected = (7 * 20 * math.log(20) + math.log(20)) / 0.1**2
    assert theory_size(20, 7, epsilon=0.1, delta=0.05) == math.ceil(expected)
    strong = theory_size(20, 7, epsilon=0.1, delta=0.05, method="kmeans")
    assert strong == math.ceil(400 * expected)
