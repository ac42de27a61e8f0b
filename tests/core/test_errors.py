"""Warnings of the library."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset import build
from daskcoreset.core.errors import CoresetWarning


def test_warnings__point_at_the_line_that_called() -> None:
    # Between it and the warning there are functions of contextlib, for the time limit.
    with pytest.warns(CoresetWarning, match="nothing was reduced") as caught:
        build(np.ones((3, 2)))
    assert caught[0].filename == __file__
