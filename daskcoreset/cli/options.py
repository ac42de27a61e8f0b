"""Options of the commands, in one table, and what they mean to the library."""

from __future__ import annotations

import argparse
import datetime as dt
import inspect
import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from daskcoreset.constructions.coverage.cover import Coverage
from daskcoreset.constructions.draws import Draw, MergeReduce
from daskcoreset.constructions.tree.windows import read_date
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.open import member_names
from daskcoreset.inputs.options import Rows, open_rows
from daskcoreset.sensitivities import CONSTRUCTIONS, default_method
from daskcoreset.storage.locations import locate


def count(text: str) -> int:
    """Return a number of at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is below 1")
    return number


def pair(text: str) -> tuple[str, Any]:
    """Return the key and value of KEY=VALUE. The error shows no value, as it may be a password."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError("it has no key or no =; pass KEY=VALUE")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def names(text: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def date(text: str) -> dt.date:
    """Return a day or time."""
    return read_date(text)


def _value(metavar: str, text: str, kind: Any = str) -> dict[str, Any]:
    return {"type": kind, "metavar": metavar, "help": text}


def _choice(text: str, *allowed: Any, default: Any = None) -> dict[str, Any]:
    kind = type(allowed[0])
    return {"type": kind, "choices": allowed, "default": default, "help": text}


def _flag(text: str) -> dict[str, Any]:
    return {"action": "store_true", "help": text}


def _pairs(text: str) -> dict[str, Any]:
    text = f"{text} Repeat it for several. Values may be JSON."
    return {"action": "append", "default": [], **_value("KEY=VALUE", text, pair)}


_METHODS = [*CONSTRUCTIONS, "coverage"]
_METHODS_TEXT = f"How rows are chosen: {', '.join(_METHODS)}."

# How argparse takes every operand and option, by the name that the commands know it by.
TABLE: dict[str, dict[str, Any]] = {
    "IN": {"help": "Data: Zarr, Parquet, HDF5, .npy or .npz."},
    "BEHIND": {"metavar": "IN", "nargs": "?", "help": "Data of the coreset, drawn behind it."},
    "OUT": {"help": "Store or file to create."},
    "STORE": {"help": "Coreset saved by build."},
    "TREE": {"help": "Folder or URL of the tree."},
    "LEAF": {"nargs": "+", "help": "Names of leaves."},
    "--columns": _value("A,B", "Features to read, separated by commas.", names),
    "--storage-options": _pairs("Option for the storage of a URL, such as a key."),
    "--missing-chunks": _choice(
        "Missing chunks of a Zarr array.", "raise", "fill", default="raise"
    ),
    "--sample-dims": _value("A,B", "Dimensions of a cube that are rows.", names),
    "--feature-dims": _value("A,B", "Dimensions of a cube that are columns.", names),
    "--unit-length": _flag("Divide every row by its length."),
    "--y": _value("NAME", "Column or array of the labels."),
    "--sample-weight": _value("NAME", "Column or array of the weights."),
    "--size": _value("ROWS", "Number of rows of the coreset.", count),
    "--method": {"choices": _METHODS, "metavar": "NAME", "help": _METHODS_TEXT},
    "--set": _pairs("Parameter of the method, such as lam=0.1."),
    "--n-clusters": _value("K", "Number of clusters.", count),
    "--random-state": _value("SEED", "Seed, for reproducible results.", int),
    "--chunks": _value("ROWS", "Rows per block.", count),
    "--on-invalid": _choice("How to treat rows with NaN or infinity.", "raise", "drop"),
    "--sampling": _choice("How rows are drawn.", "systematic", "multinomial", default="systematic"),
    "--passes": _choice("Passes over the data.", 1, 2, default=1),
    "--tree": _flag("Merge and reduce coresets of blocks."),
    "--epsilon": _value("SHARE", "Double the size until costs differ by at most this.", float),
    "--plan": _flag("Show the plan, and build nothing."),
    "--scheduler": _value("ADDRESS", "Run on the Dask scheduler at this address."),
    "--workers": _value("N", "Run on N processes of this machine.", count),
    "--time-limit": _value("SECONDS", "Stop with an error after this time.", float),
    "--progress": {
        "action": argparse.BooleanOptionalAction,
        "help": "Show a progress bar. Default: on a terminal.",
    },
    "--overwrite": _flag("Replace an existing output."),
    "--json": _flag("Print one JSON object."),
    "--name": _value("LEAF", "Name of the leaf."),
    "--time": _value("DATE", "Day, time or number of the leaf, for windows."),
    "--from": {"dest": "first", **_value("LEAF", "First leaf of the window.")},
    "--to": {"dest": "last", **_value("LEAF", "Last leaf of the window, included.")},
    "--since": _value("DATE", "First day or time of the window.", date),
    "--until": _value("DATE", "Last day or time, included.", date),
    "--leaf": {"action": "append", **_value("LEAF", "A leaf of the window. Repeat it.")},
    "--folder": _value("FOLDER", "Folder of the store. Default: a new one."),
}

READING = "--columns --storage-options --missing-chunks --sample-dims --feature-dims --unit-length"


class UsageError(Exception):
    """The command line is wrong. The message ends with a hint to the help."""


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors, so that `main` prints them like all others."""

    def error(self, message: str) -> NoReturn:
        """Raise the error."""
        raise UsageError(f"{message.rstrip('.')}; see: {self.prog} --help")


def add_command(group: Any, name: str, run: Callable[[Namespace], None], takes: str) -> None:
    """Add a command to a group, with the operands and options that `takes` names in `TABLE`."""
    text = inspect.cleandoc(run.__doc__ or "")
    parser = group.add_parser(
        name, help=text.partition("\n")[0], description=text, allow_abbrev=False
    )
    for each in takes.split():
        parser.add_argument(each, **TABLE[each])
    parser.set_defaults(run=run, error=parser.error)


def storage_of(given: Namespace, place: str) -> dict[str, Any] | None:
    """Return the storage options of a URL, and None for other places."""
    return dict(given.storage_options) or None if "://" in place else None


def rows_of(given: Namespace, source: str, columns: list[str] | None = None) -> Rows:
    """Return the rows of IN, as an absolute path, because workers run in other folders."""
    place = locate("IN", source)
    return open_rows(
        str(place) if isinstance(place, Path) and place.exists() else source,
        columns=given.columns or columns,
        storage_options=storage_of(given, source),
        missing_chunks=given.missing_chunks,
        sample_dims=given.sample_dims,
        feature_dims=given.feature_dims,
        unit_length=given.unit_length,
    )


def rows_as(
    known: Mapping[str, Any], given: Namespace, source: str, *keys: str
) -> tuple[Rows, dict[str, str | None]]:
    """Return the rows of IN, and the names of the members `keys` of it.

    Columns and members that no option names have those that are known, if IN has them. `known` may
    be the provenance of a coreset.
    """
    rows = rows_of(given, source)
    members = {key: getattr(given, key) for key in keys}
    missing = [key for key in keys if members[key] is None and key in known]
    columns = known.get("columns") if given.columns is None else None
    if columns is None and not missing:
        return rows, members
    there = {*member_names(rows)}
    if columns is not None and {*columns} <= there:
        rows = rows_of(given, source, list(columns))
    return rows, {**members, **{key: known[key] for key in missing if known[key] in there}}


def method_of(given: Namespace) -> Any:
    """Return the method, with its parameters if any are set."""
    parameters = dict(given.set)
    if not parameters:
        return given.method
    name = default_method(given.method, given.n_clusters)
    kind: Any = Coverage if name == "coverage" else CONSTRUCTIONS[name]
    known = inspect.signature(kind).parameters
    if unknown := [one for one in parameters if one not in known]:
        raise InvalidInputError(
            f"method {name!r} has no parameter {unknown[0]!r}",
            argument="set",
            remedy=f"pass one of {', '.join(known)}" if known else "leave it out",
        )
    for one in {"n_clusters", "n_components"} & known.keys():
        if given.n_clusters is not None:
            parameters.setdefault(one, given.n_clusters)
    return kind(**parameters)


def draw_of(given: Namespace) -> Draw | MergeReduce:
    """Return how rows are drawn."""
    if not given.tree:
        return Draw(given.sampling, given.passes)
    if given.passes != 1:
        given.error("--passes is given with --tree, which makes one pass; leave out --passes")
    return MergeReduce(sampling=given.sampling)
