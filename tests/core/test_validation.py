"""Arguments that look like numbers or names and are none."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import daskcoreset
from daskcoreset import datasets
from daskcoreset.core.errors import InvalidInputError, InvalidTypeError
from daskcoreset.core.validation import (
    as_float,
    as_int,
    check_choice,
    check_count,
    check_number,
    check_share,
    is_choice,
    is_int,
    is_number,
)
from daskcoreset.metrics.audit import audit
from daskcoreset.metrics.plot import plot_coreset
from daskcoreset.metrics.sizing import theory_size
from daskcoreset.objectives import QuantizationError

X = np.random.default_rng(0).normal(size=(200, 3))
SPAN: Any = np.timedelta64(20, "s")
EMPTY: Any = np.array([])


@pytest.mark.parametrize("value", [True, np.True_, SPAN, 2.0, "2", None, EMPTY, np.array([2])])
def test_is_int__takes_integers_alone(value: Any) -> None:
    assert not is_int(value)
    assert all(map(is_int, (2, np.uint8(2), np.int64(-2))))


@pytest.mark.parametrize("value", [True, np.True_, SPAN, "2", None, EMPTY, 2j])
def test_is_number__takes_real_numbers_alone(value: Any) -> None:
    assert not is_number(value)
    assert all(map(is_number, (2, 2.5, np.float32(2), Fraction(1, 2), np.nan)))


@pytest.mark.parametrize("value", [EMPTY, np.array(["a"]), np.array(["a", "b"]), None, ["a"], "c"])
def test_is_choice__takes_names_alone(value: Any) -> None:
    assert not is_choice(value, ("a", "b"))
    assert is_choice(np.str_("a"), ("a", "b"))


def test_checks__say_what_to_pass() -> None:
    with pytest.raises(InvalidTypeError, match=r"k must be an integer, got .*20.*; pass an int"):
        as_int("k", SPAN)
    with pytest.raises(InvalidInputError, match="k must be at least 2, got 1; pass more"):
        as_int("k", 1, 2)
    with pytest.raises(InvalidTypeError, match=r"p must be a number, got .*20.*; pass a float"):
        as_float("p", SPAN)
    with pytest.raises(InvalidInputError, match=r"p must lie between 0 and 1, got 1; .* 0\.1"):
        as_float("p", 1)
    for check in (check_count, check_number, check_share):
        with pytest.raises(InvalidTypeError, match=r"n is .*20.*; pass a"):
            check("n", SPAN)
    with pytest.raises(InvalidInputError, match=r'way must be "a", "b" or "c", got array\('):
        check_choice("way", EMPTY, "a", "b", "c")


def coreset() -> daskcoreset.Coreset:
    return daskcoreset.build(X, size=20, random_state=0)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        pytest.param("size", lambda: daskcoreset.build(X, size=SPAN), id="build-size"),
        pytest.param("chunks", lambda: daskcoreset.build(X, chunks=SPAN), id="build-chunks"),
        pytest.param(
            "split_every", lambda: daskcoreset.build(X, split_every=SPAN), id="build-split_every"
        ),
        pytest.param(
            "random_state", lambda: daskcoreset.build(X, random_state=SPAN), id="build-random_state"
        ),
        pytest.param(
            "n_clusters", lambda: daskcoreset.StrongKMeans(SPAN), id="StrongKMeans-n_clusters"
        ),
        pytest.param(
            "n_clusters", lambda: QuantizationError(SPAN), id="QuantizationError-n_clusters"
        ),
        pytest.param(
            "n_clusters",
            lambda: theory_size(SPAN, 2, epsilon=0.1, delta=0.1),
            id="theory_size-n_clusters",
        ),
        pytest.param("lam", lambda: daskcoreset.SVM(SPAN), id="SVM-lam"),
        pytest.param(
            "sample_size",
            lambda: audit(coreset(), X, n_clusters=2, sample_size=SPAN),
            id="audit-sample_size",
        ),
        pytest.param(
            "confidence",
            lambda: audit(coreset(), X, n_clusters=2, confidence=SPAN),
            id="audit-confidence",
        ),
        pytest.param("bins", lambda: plot_coreset(coreset(), X, bins=SPAN), id="plot_coreset-bins"),
        pytest.param("n", lambda: datasets.make_mixture(SPAN, 2), id="make_mixture-n"),
        pytest.param(
            "spread", lambda: datasets.make_mixture(10, 2, spread=SPAN), id="make_mixture-spread"
        ),
        pytest.param("size", lambda: daskcoreset.CoresetStream(size=SPAN), id="CoresetStream-size"),
        pytest.param(
            "max_points", lambda: daskcoreset.Coverage(max_points=SPAN), id="Coverage-max_points"
        ),
        pytest.param(
            "diameter", lambda: daskcoreset.Coverage(diameter=SPAN), id="Coverage-diameter"
        ),
        pytest.param(
            "epsilon",
            lambda: daskcoreset.MaxMarginCoreset(epsilon=SPAN),
            id="MaxMarginCoreset-epsilon",
        ),
    ],
)
def test_spans_of_time__are_no_numbers(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises(InvalidTypeError, match=rf"^{name} .*(20|timedelta64).*; pass "):
        call()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        pytest.param(
            "sampling", lambda: daskcoreset.build(X, size=20, sampling=EMPTY), id="build-sampling"
        ),
        pytest.param(
            "strategy", lambda: daskcoreset.build(X, size=20, strategy=EMPTY), id="build-strategy"
        ),
        pytest.param(
            "on_invalid",
            lambda: daskcoreset.build(X, size=20, on_invalid=EMPTY),
            id="build-on_invalid",
        ),
        pytest.param(
            "chunks", lambda: daskcoreset.build(X, size=20, chunks=EMPTY), id="build-chunks"
        ),
        pytest.param(
            "rough", lambda: daskcoreset.StrongKMeans(2, rough=EMPTY), id="StrongKMeans-rough"
        ),
        pytest.param("variant", lambda: daskcoreset.SVM(variant=EMPTY), id="SVM-variant"),
        pytest.param("variant", lambda: daskcoreset.Logistic(variant=EMPTY), id="Logistic-variant"),
        pytest.param(
            "cells", lambda: daskcoreset.Coverage(diameter=1.0, cells=EMPTY), id="Coverage-cells"
        ),
        pytest.param(
            "strategy",
            lambda: daskcoreset.Coverage(diameter=1.0, strategy=EMPTY),
            id="Coverage-strategy",
        ),
        pytest.param(
            "method",
            lambda: theory_size(2, 2, epsilon=0.1, delta=0.1, method=EMPTY),
            id="theory_size-method",
        ),
        pytest.param("name", lambda: datasets.load_bundled(EMPTY), id="load_bundled-name"),
        pytest.param(
            "sampling",
            lambda: daskcoreset.CoresetStream(size=20, sampling=EMPTY),
            id="CoresetStream-sampling",
        ),
        pytest.param(
            "on_invalid",
            lambda: daskcoreset.CoresetStream(size=20, on_invalid=EMPTY),
            id="CoresetStream-on_invalid",
        ),
    ],
)
def test_empty_arrays__are_no_choices(name: str, call: Callable[[], Any]) -> None:
    with pytest.raises((InvalidInputError, InvalidTypeError), match=rf"^{name}.*array\("):
        call()
