"""Thousands of spoilt arguments and damaged stores: the right answer, or an error that says what.

Each run is a process of its own, with bounds on its memory and on the time of every mutation, in
which the load of a pickled object is an error; see `tests.acceptance.tools.fuzzing`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.tools import fuzzing
from tests.acceptance.tools.byte_fuzz import OWN

MUTATIONS = [
    pytest.param(120, id="some"),
    pytest.param(2000, id="many", marks=pytest.mark.nightly),
]

# MiB, imports and compiled loops among them.
MOST_MEMORY = 1500


@pytest.mark.slow
@pytest.mark.parametrize("count", MUTATIONS)
def test_arguments__that_are_spoilt_are_named(tmp_path: Path, count: int) -> None:
    found = fuzzing.run("tests.acceptance.tools.argument_fuzz", tmp_path, seed=1, count=count)
    assert found["count"] >= count
    assert found["peak_mib"] < MOST_MEMORY
    assert found["failures"] == []


@pytest.mark.slow
@pytest.mark.parametrize("count", MUTATIONS)
def test_stores__that_are_damaged_give_no_wrong_answer(tmp_path: Path, count: int) -> None:
    found = fuzzing.run("tests.acceptance.tools.byte_fuzz", tmp_path, seed=1, count=count)
    assert found["count"] >= count
    assert len(found["stores"]) > len(OWN)
    assert found["peak_mib"] < MOST_MEMORY
    assert found["failures"] == []
