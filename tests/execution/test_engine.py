"""Reads: values in the order of the blocks, few tasks a block, and rows mapped lazily."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest

from daskcoreset._build import build
from daskcoreset.errors import InvalidInputError
from tests.pairs import each

# --- blocks that are not what they declare ---------------------------------------------------


def _odd(change: Any, **declared: Any) -> Any:
    def changed(block: Any, block_id: Any = None) -> Any:
        return change(block) if block_id[0] == 1 else block

    plain = da.from_array(np.random.default_rng(0).normal(size=(400, 3)), chunks=(100, 3))
    return plain.map_blocks(changed, **{"dtype": "f8", "meta": np.empty((0, 0)), **declared})


@each(
    change={
        "shorter": lambda b: b[:-10],
        "longer": lambda b: np.concatenate([b, b]),
        "empty": lambda b: b[:0],
        "narrower": lambda b: b[:, :2],
    },
)
def test_build__block_of_another_shape_is_named(change: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"block \(?1"):
        build(_odd(change), size=50, random_state=0)


@pytest.mark.parametrize(
    ("dtype", "declared"),
    [("f8", "f4"), ("i8", "i2"), ("object", "f8"), ("c16", "f8"), ("U9", "f8")],
)
def test_build__block_of_a_dtype_that_changes_values_is_named(dtype: str, declared: str) -> None:
    wrong = _odd(lambda b: b.astype(dtype), dtype=declared, meta=np.empty((0, 0), declared))
    with pytest.raises(InvalidInputError, match=r"X has dtype .* in block \d, in place of"):
        build(wrong, size=50, random_state=0)
