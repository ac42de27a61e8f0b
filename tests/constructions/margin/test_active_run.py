"""Runs of active learning: no label is lost, come what may."""

from __future__ import annotations

import numpy as np
import pytest

from daskcoreset.constructions.margin.active import ActiveMaxMargin
from daskcoreset.constructions.margin.active_run import OracleError
from daskcoreset.core.errors import InvalidInputError
from tests.tools.active_pools import B, W, above, separable


@pytest.mark.nightly
def test_correct__a_slip_is_mended_and_no_label_lost() -> None:
    X = separable()
    slip = int((X @ W + B).argmax())  # by far on the other side
    asking = ActiveMaxMargin(random_state=0).start(X, known=([slip], ["no"]))
    with pytest.raises(OracleError, match="contradict") as caught:
        asking.run(above)
    assert slip in caught.value.__cause__.indices  # type: ignore[union-attr] # of the evidence
    before = asking.n_labels
    asking.correct({slip: "yes"})
    assert asking.n_labels == before
    proved = asking.result().certificate
    assert (proved.verified, proved.error) == (0, 1.0)  # of another separator, nothing is known
    found = asking.run(above)
    assert found.labels[found.indices.tolist().index(slip)] == "yes"
    assert (found.predict(X) == above(X)).all()
    with pytest.raises(InvalidInputError, match="has no label yet"):
        asking.correct({int(np.setdiff1d(np.arange(len(X)), asking.result().indices)[0]): "no"})
