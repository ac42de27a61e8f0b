"""Coresets and portfolios as Zarr groups. A member of a portfolio is a group in its group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.points import from_arrays, to_arrays
from daskcoreset.core.portfolio import DataSummary, Portfolio
from daskcoreset.storage.coordinates import loaded_values, stored_values
from daskcoreset.storage.group import FROM_A_COPY, GroupContents, read_group, write_group
from daskcoreset.storage.locations import Location, clear_errors, store_name

_COORDINATE, _MEMBER, _MOMENTS = "coordinate", "member", "moments"


def save(
    value: Coreset | Portfolio,
    store: Location,
    *,
    overwrite: bool,
    storage_options: Mapping[str, Any] | None,
) -> None:
    """Store a coreset or a portfolio."""
    contents = _of_coreset(value) if isinstance(value, Coreset) else _of_portfolio(value)
    write_group(store, contents, overwrite=overwrite, storage_options=storage_options)


def load_coreset(store: Location, storage_options: Mapping[str, Any] | None) -> Coreset:
    """Load a coreset that `save` stored."""
    contents = read_group(store, kind="coreset", storage_options=storage_options)
    with clear_errors(store_name(store), "read", FROM_A_COPY):
        return _coreset_of(contents)


def load_portfolio(store: Location, storage_options: Mapping[str, Any] | None) -> Portfolio:
    """Load a portfolio that `save` stored."""
    contents = read_group(store, kind="portfolio", storage_options=storage_options)
    with clear_errors(store_name(store), "read", FROM_A_COPY):
        groups, attributes = dict(contents.groups), dict[str, Any](contents.attributes)
        kept, moments = groups.pop(_MOMENTS, None), None
        if kept is not None:
            record: dict[str, Any] = {**kept.arrays, **kept.attributes}
            columns = record.pop("columns")
            moments = DataSummary(**record, columns=None if columns is None else tuple(columns))
        names = enumerate(attributes["members"])
        members = {name: _coreset_of(groups[f"{_MEMBER}{i}"]) for i, name in names}
        return Portfolio(members, attributes["provenance"], moments)


def _of_coreset(coreset: Coreset) -> GroupContents:
    arrays, dims, attributes = to_arrays(coreset)
    attributes["provenance"] = thaw(coreset.provenance)
    forms: list[list[str]] = []
    for name, values in coreset.coordinates.items():
        key = f"{_COORDINATE}{len(forms)}"  # a name need not be one of Zarr
        arrays[key], form = stored_values(values)
        dims[key] = ("row",)
        forms.append([name, form])
    attributes["coordinate_forms"] = forms
    return GroupContents(arrays, dims, attributes, "coreset")


def _coreset_of(contents: GroupContents) -> Coreset:
    arrays, attributes = dict(contents.arrays), dict[str, Any](contents.attributes)
    forms = attributes["coordinate_forms"]
    coordinates = {
        name: loaded_values(arrays.pop(f"{_COORDINATE}{i}"), form)
        for i, (name, form) in enumerate(forms)
    }
    part = from_arrays(arrays, attributes)
    provenance = attributes["provenance"]
    return Coreset(part.points, part.weights, part.indices, part.labels, provenance, coordinates)


def _of_portfolio(portfolio: Portfolio) -> GroupContents:
    groups = {f"{_MEMBER}{i}": _of_coreset(member) for i, member in enumerate(portfolio.values())}
    if (moments := portfolio.moments) is not None:
        arrays = {"mean": moments.mean, "scatter": moments.scatter}
        dims = {"mean": ("feature",), "scatter": ("variable", "other_variable")}
        record = {name: getattr(moments, name) for name in ("count", "weight", "y_mean")}
        record["columns"] = None if moments.columns is None else list(moments.columns)
        groups[_MOMENTS] = GroupContents(arrays, dims, record, _MOMENTS)
    attributes = {"members": list(portfolio), "provenance": thaw(portfolio.provenance)}
    return GroupContents({}, {}, attributes, "portfolio", groups)
