"""Lazy generators: one task a block, and the same bits everywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskcoreset import datasets

Arrays = tuple[da.Array, ...]
Make = Callable[..., Arrays]


def _benchmark(**options: Any) -> Arrays:
    return (datasets.make_benchmark(3, 5, **options),)


def _rows(make: Callable[..., Arrays]) -> Make:
    def made(**options: Any) -> Arrays:
        return make(250, 4, **({"random_state": 0} | options))

    return made


def _pathological(**options: Any) -> Arrays:
    return datasets.make_svm_pathological(250, **({"random_state": 0} | options))


def _outliers(**options: Any) -> Arrays:
    options = {"random_state": 0, "outliers": 0.1, "dof": 3.0} | options
    return datasets.make_mixture(250, 4, **options)


def _lower_bound(**options: Any) -> Arrays:
    return datasets.make_svm_lower_bound(10, **options)


RANDOM: dict[str, Make] = {
    "mixture": _rows(datasets.make_mixture),
    "outliers": _outliers,
    "imbalanced": _rows(datasets.make_imbalanced),
    "heavy-tailed": _rows(datasets.make_heavy_tailed),
    "near-mean": _rows(datasets.make_near_mean),
    "geometric": _rows(datasets.make_geometric),
    "giants": _rows(datasets.make_giants),
    "hidden": _rows(functools.partial(datasets.make_hidden, hidden_rows=5)),
    "svm-pathological": _pathological,
}


ALL = RANDOM | {"benchmark": _benchmark, "svm-lower-bound": _lower_bound}
every_generator = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
every_random_generator = pytest.mark.parametrize("make", RANDOM.values(), ids=RANDOM.keys())


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("something was computed while the arrays were defined")


# What all generators promise


@every_generator
def test_definition__computes_nothing_and_has_one_task_per_block(make: Make) -> None:
    with dask.config.set(scheduler=_refuse):
        arrays = make(chunks=100)
    for array in arrays:
        assert array.npartitions == 3
        assert len(dict(array.__dask_graph__())) == 3


@every_generator
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks__are_what_the_array_announces(make: Make, dtype: str) -> None:
    for array in make(chunks=100, dtype=dtype):
        value = array.compute(scheduler="synchronous")
        assert isinstance(value, np.ndarray)
        assert (value.shape, value.dtype) == (array.shape, array.dtype)
        assert len(value) == len(make()[0])
        assert np.isfinite(value).all()
    assert make(dtype=dtype)[0].dtype == np.dtype(dtype)
    assert make()[0].dtype == np.float32


@every_generator
def test_block__read_alone_equals_its_part_of_the_whole(make: Make) -> None:
    for array in make(chunks=100):
        whole = array.compute(scheduler="synchronous")
        alone = array.blocks[1].compute(scheduler="synchronous")
        np.testing.assert_array_equal(alone, whole[100:200])


@every_random_generator
def test_random_state__changes_points_and_names(make: Make) -> None:
    one, other = make(random_state=1)[0], make(random_state=2)[0]
    assert one.name != other.name
    assert not np.array_equal(one.compute(), other.compute())


# Arguments
