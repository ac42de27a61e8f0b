"""Constructions and their names."""

from __future__ import annotations

import inspect

import pytest

from daskcoreset.errors import InvalidInputError
from daskcoreset.sensitivities import (
    CONSTRUCTIONS,
    SVM,
    StrongKMeans,
    Uniform,
    construction_for,
    resolve_method,
    takes_parts,
)
from tests.tools.blocks import TwoFolds


def test_constructions__are_known_by_their_names() -> None:
    assert {"lightweight", "uniform"} <= set(CONSTRUCTIONS)
    for name, kind in CONSTRUCTIONS.items():
        assert kind.name == name
        # Those that cannot do without an argument say so; see below.
        parameters = inspect.signature(kind).parameters.values()
        if all(parameter.default is not parameter.empty for parameter in parameters):
            assert resolve_method(name) == kind()


def test_resolve_method__construction_is_taken_as_it_is() -> None:
    construction = TwoFolds(share=3.0)

    assert resolve_method(construction) is construction
    assert construction.parameters() == {"share": 3.0}


def test_resolve_method__n_clusters_goes_to_the_construction_that_takes_it() -> None:
    assert resolve_method("kmeans", n_clusters=7) == StrongKMeans(7)
    with pytest.raises(InvalidInputError, match="'uniform' takes no n_clusters"):
        resolve_method("uniform", n_clusters=7)


def test_construction_for__a_number_of_parts_that_it_leaves_open_or_has() -> None:
    assert construction_for("uniform", 3) == Uniform()
    assert construction_for(Uniform(), 3) == Uniform()
    assert construction_for(StrongKMeans(3), 3) == StrongKMeans(3)
    for method in ("logistic", StrongKMeans(4), SVM()):
        with pytest.raises(InvalidInputError, match="n_clusters"):
            construction_for(method, 3)
    assert [takes_parts(StrongKMeans(4), k) for k in (3, 4, 5)] == [False, True, False]
    assert not takes_parts(SVM(), 2)
