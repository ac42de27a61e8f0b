"""What a cover answers for rows that it has not seen."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from daskcoreset.constructions.coverage import cover
from daskcoreset.inputs.blocks import row_blocks
from tests.tools.covers import distances, near_a_surface


def test_cover_nearest__of_other_rows() -> None:
    X = near_a_surface(300)
    found = cover(row_blocks(X), 0.5)
    labels, gaps = found.nearest(sp.csr_array(X + 3.0))
    expected = distances(X + 3.0, found.points, "euclidean")
    np.testing.assert_allclose(gaps, expected.min(axis=1))
    assert labels.tolist() == expected.argmin(axis=1).tolist()
