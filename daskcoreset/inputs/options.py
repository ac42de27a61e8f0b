"""How inputs are opened: one record of options, from every public door to `open_all`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar

from daskcoreset.core.errors import InvalidInputError, InvalidTypeError, warn_user
from daskcoreset.core.validation import check_choice, check_options, shown

MissingChunks: TypeAlias = Literal["raise", "fill"]

P = ParamSpec("P")
R = TypeVar("R")


class ReadKeywords(TypedDict, total=False):
    """Keywords of every call that opens data; `daskcoreset.build` describes them."""

    storage_options: Mapping[str, Any] | None
    columns: Sequence[str] | None
    missing_chunks: MissingChunks
    sample_dims: str | Sequence[str] | None
    feature_dims: str | Sequence[str] | None


@dataclass(frozen=True)
class ReadOptions:
    """How X, y and sample_weight are opened; the fields are those of `ReadKeywords`.

    Attributes
    ----------
    storage_options : mapping of str to object, or None
        For the file system of a URL: never shown, since they hold keys and passwords.
    columns : sequence of str or None
        Features to read, in this order; None reads all.
    missing_chunks : {"raise", "fill"}
        What a chunk of a Zarr array is that is not stored: an error, or the fill value.
    sample_dims, feature_dims : tuple of str, or None
        Dimensions of an xarray object whose cells are rows, and those whose cells are columns.
    """

    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    columns: Sequence[str] | None = None
    missing_chunks: MissingChunks = "raise"
    sample_dims: str | Sequence[str] | None = None
    feature_dims: str | Sequence[str] | None = None

    @property
    def has_dims(self) -> bool:
        """Whether X is asked for as an array of several dimensions."""
        return self.sample_dims is not None or self.feature_dims is not None

    @property
    def keywords(self) -> dict[str, Any]:
        """The options as keywords of a public call, without those that ask for nothing."""
        told = {option.name: getattr(self, option.name) for option in fields(self)}
        return {name: value for name, value in told.items() if value != getattr(DEFAULTS, name)}

    @classmethod
    def of(cls, X: Any) -> tuple[Any, ReadOptions]:
        """Return what was passed as X, and how it is to be opened."""
        return (X.data, X.options) if isinstance(X, Reading) else (X, DEFAULTS)

    def __post_init__(self) -> None:
        check_choice("missing_chunks", self.missing_chunks, "raise", "fill")
        check_options(self.storage_options)
        for name in ("sample_dims", "feature_dims"):
            object.__setattr__(self, name, _checked_dims(name, getattr(self, name)))
        columns = self.columns
        if columns is None:
            return
        if isinstance(columns, str) or not isinstance(columns, Sequence):
            raise InvalidTypeError(
                f"columns is {shown(columns)}; pass a list of names of columns, such as [{'a'!r}]."
            )
        object.__setattr__(self, "columns", tuple(columns))
        try:
            n_names = len(set(columns))
        except TypeError as error:
            problem = f"columns is {shown(columns)}; pass a list of names of columns."
            raise InvalidTypeError(problem) from error
        if not columns or n_names != len(columns):
            raise InvalidInputError(
                f"columns is {list(columns)}; name at least one column, and none of them twice."
            )


def _checked_dims(name: str, dims: Any) -> tuple[str, ...] | None:
    if dims is None:
        return None
    listed = (dims,) if isinstance(dims, str) else dims
    if not isinstance(listed, Sequence) or not all(isinstance(dim, str) for dim in listed):
        raise InvalidTypeError(
            f'{name} is {dims!r}; pass names of dimensions, such as ("time", "lat", "lon").'
        )
    if len(set(listed)) != len(listed):
        raise InvalidInputError(f"{name} is {dims!r}; name each dimension once.")
    return tuple(listed)


DEFAULTS = ReadOptions()


@dataclass(frozen=True, eq=False)
class Reading:
    """What was passed as X, and how it is to be opened: goes wherever X goes."""

    data: Any
    options: ReadOptions


def reading(X: Any, options: ReadOptions, beside: Sequence[Any] = ()) -> Any:
    """Return X as it is to be opened: itself where nothing is asked for.

    Parameters
    ----------
    X : object
        As in `daskcoreset.build`, or an iterator of batches.
    options : ReadOptions
    beside : sequence of object
        y and sample_weight: where they are strings, they name columns that are kept.

    Returns
    -------
    object
        A data frame with the columns asked for, or a `Reading`.
    """
    if options == DEFAULTS:
        return X
    if isinstance(X, Iterator):
        return _batches(X, options)
    if both := [name for name in options.columns or () if name in _names(beside)]:
        warn_user(
            f"columns has {both}, which y, sample_weight or groups names, too: it is read as that, "
            f"and is no feature. Leave it out of columns."
        )
    is_frame = hasattr(type(X), "columns") and type(X).__name__ != "LazyFrame"
    if is_frame and options.storage_options is None and not options.has_dims:
        return select_columns(X, options.columns, beside)
    return Reading(X, options)


def _names(beside: Sequence[Any]) -> list[str]:
    return [one for one in beside if isinstance(one, str)]


def _batches(batches: Iterator[Any], options: ReadOptions) -> Iterator[Any]:
    for batch in batches:
        X, *beside = batch if isinstance(batch, tuple) else (batch,)
        yield (reading(X, options, beside), *beside)


def with_columns(X: Any, columns: Iterable[str] | None) -> Any:
    """Return X with these columns alone, where it has names and none were asked for."""
    data, options = (X.data, X.options) if isinstance(X, Reading) else (X, DEFAULTS)
    if columns is None or options.columns is not None:
        return X
    return reading(data, replace(options, columns=tuple(columns)))


def select_columns(frame: Any, columns: Sequence[str] | None, beside: Sequence[Any]) -> Any:
    """Return a frame of the columns asked for, and of those that are labels or weights."""
    if columns is None:
        return frame
    names = list(getattr(frame, "column_names", frame.columns))
    if any("[" in str(name) and name not in names for name in columns):
        # The module imports this one.
        from daskcoreset.inputs.parquet import with_vectors

        frame = with_vectors(frame)
        names = list(getattr(frame, "column_names", frame.columns))
    keys = [key for key in _names(beside) if key in names]
    check_columns(columns, names)
    wanted = [name for name in columns if name not in keys] + keys
    if hasattr(frame, "column_names"):
        # Columns that are named are features, also if the metadata of pandas call them an index.
        return frame.select(wanted).replace_schema_metadata(None)
    return frame[wanted]


def check_columns(columns: Sequence[str], names: Sequence[Any]) -> None:
    """Check that all columns that were asked for are there."""
    if unknown := [name for name in columns if name not in names]:
        raise InvalidInputError(
            f"columns has {unknown}, but X has the columns {list(names)}; name some of these."
        )
    if twice := [name for name in columns if list(names).count(name) > 1]:
        raise InvalidInputError(
            f"columns has {twice}, of which X has more than one each; rename them."
        )


def is_path(part: Any) -> bool:
    """Whether a part is a path or URL, or a list of them."""
    if isinstance(part, (list, tuple)):
        return bool(part) and all(isinstance(one, (str, os.PathLike)) for one in part)
    return isinstance(part, (str, os.PathLike))


def takes_reading(door: Callable[P, R]) -> Callable[P, R]:
    """Give a public call with the argument X the keywords of `ReadOptions`.

    The call declares ``**_reading: Unpack[ReadKeywords]``, for type checkers. It gets none of them:
    X arrives as a `Reading`. Its signature shows the keywords one by one.
    """
    signature = inspect.signature(door)
    names = [option.name for option in fields(ReadOptions)]
    parameters = [one for one in signature.parameters.values() if one.name != "_reading"]
    known = signature.replace(parameters=parameters)
    by_place = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    n_required = sum(one.default is one.empty for one in by_place)
    places = ", ".join(one.name for one in by_place if one.name != "self")

    @wraps(door)
    def opened(*args: P.args, **keywords: P.kwargs) -> R:
        if not keywords and n_required <= len(args) <= len(by_place):
            return door(*args, **keywords)
        options: dict[str, Any] = {name: keywords.pop(name) for name in names if name in keywords}
        try:
            bound = known.bind(*args, **keywords)
        except TypeError as error:
            advice = f"; pass all but {places} by name" if len(args) > len(by_place) else ""
            raise TypeError(f"{door.__qualname__}() {error}{advice}") from None
        if not options:
            return door(*args, **keywords)
        arguments = bound.arguments
        beside = [arguments.get(name) for name in ("y", "sample_weight", "groups")]
        arguments["X"] = reading(arguments.get("X"), ReadOptions(**options), beside)
        return door(*bound.args, **bound.kwargs)

    kinds = ReadKeywords.__annotations__
    shown = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(DEFAULTS, name),
            annotation=kinds[name].__forward_arg__,
        )
        for name in names
    ]
    rest = [one for one in parameters if one.kind is one.VAR_KEYWORD]
    parameters = [one for one in parameters if one not in rest]
    opened.__signature__ = signature.replace(parameters=[*parameters, *shown, *rest])  # type: ignore[attr-defined] # what inspect looks for
    return opened
