"""The contract of a sensitivity as a suite of tests, and its tools.

The test of a new construction subclasses `SensitivityContract`::

    class TestLightweight(SensitivityContract):
        def construction(self) -> Lightweight:
            return Lightweight()

Nothing else of the package imports this module. It needs pytest and hypothesis
(``pip install "daskcoreset[test]"``), and the markers ``statistical`` and ``distributed``
registered with pytest.
"""

from __future__ import annotations

from daskcoreset.testing.contract import SensitivityContract
from daskcoreset.testing.tools import (
    CountingArray,
    CountingScheduler,
    assert_mean,
    assert_multinomial,
    cut_rows,
    draw,
    row_sets,
    shared_cluster,
    shared_pool,
)
from daskcoreset.testing.traffic import Traffic

__all__ = [
    "CountingArray",
    "CountingScheduler",
    "SensitivityContract",
    "Traffic",
    "assert_mean",
    "assert_multinomial",
    "cut_rows",
    "draw",
    "row_sets",
    "shared_cluster",
    "shared_pool",
]
