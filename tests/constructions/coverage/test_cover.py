"""Covers as coresets: parameters, provenance and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import daskcoreset
from daskcoreset import Coverage
from daskcoreset.errors import CoresetWarning, InvalidInputError, InvalidTypeError
from tests.tools.covers import near_a_surface


def arrays_of(coreset: Any) -> tuple[bytes, bytes]:
    return coreset.indices.tobytes(), coreset.weights.tobytes()


def test_build__by_coverage() -> None:
    X = near_a_surface(300)
    named = daskcoreset.build(X, method="coverage", size=7)
    assert arrays_of(named) == arrays_of(daskcoreset.build(X, method=Coverage(size=7)))
    assert len(named) == 7
    assert named.provenance["parameters"] == {"diameter": None, "size": 7}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "diameter and size are missing"),
        ({"size": 9, "method": Coverage(1.0)}, "size has no effect with Coverage"),
    ]
    build: Any = daskcoreset.build
    for options, message in wrong:
        with pytest.raises(InvalidInputError, match=message):
            build(X, **{"method": "coverage", **options})
    with pytest.warns(CoresetWarning, match="nothing was reduced"):  # of 300 rows
        build(X, method=Coverage(diameter=1e-9))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, InvalidInputError),
        ({"diameter": 1.0, "size": 9}, InvalidInputError),
        ({"diameter": 0.0}, InvalidInputError),
        ({"diameter": float("nan")}, InvalidInputError),
        ({"diameter": 1e200}, InvalidInputError),
        ({"diameter": "wide"}, InvalidTypeError),
        ({"size": 0}, InvalidInputError),
        ({"size": 2.5}, InvalidTypeError),
    ],
    ids=str,
)
def test_coverage__refuses_wrong_parameters(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"diameter|size"):
        Coverage(**options)
