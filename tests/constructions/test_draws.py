"""`Draw` and `MergeReduce`: every option is checked when one is made."""

from __future__ import annotations

from typing import Any

import pytest

from daskcoreset.constructions.draws import Draw, MergeReduce
from daskcoreset.errors import InvalidInputError, InvalidTypeError


@pytest.mark.parametrize("kind", [Draw, MergeReduce])
@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("sampling", "simple", InvalidInputError),
        ("normalize", "no", InvalidTypeError),
        ("split_every", 1, InvalidInputError),
        ("split_every", 2.0, InvalidTypeError),
    ],
)
def test_draw__checks_its_options(kind: Any, option: str, value: Any, error: Any) -> None:
    with pytest.raises(error, match=option):
        kind(**{option: value})


@pytest.mark.parametrize("passes", [0, 3, True, "2"])
def test_passes__are_one_or_two(passes: Any) -> None:
    with pytest.raises(InvalidInputError, match="passes"):
        Draw(passes=passes)


def test_inner_size__is_a_positive_integer() -> None:
    assert MergeReduce(inner_size=1).inner_size == 1
    with pytest.raises(InvalidInputError, match="inner_size"):
        MergeReduce(inner_size=0)
    with pytest.raises(InvalidTypeError, match="inner_size"):
        MergeReduce(inner_size=1.5)  # type: ignore[arg-type]
