"""Arguments that several commands take, and how they print what they found."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.errors import StoreError
from daskcoreset.core.locations import is_file_url, path_of_file_url
from daskcoreset.core.tables import kind_of_values, short_seed
from daskcoreset.inputs.containers import member_names
from daskcoreset.inputs.options import ReadOptions, Rows as OpenedRows
from daskcoreset.inputs.places import from_root

# Letters of values that the table of options shows beside a flag; it breaks longer ones anywhere.
_METAVAR = 16


def choice(*names: str, text: str) -> Any:
    """Return an option whose value is one of `names`."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}.")
        return value

    def begin(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    metavar = "|".join(names)
    if len(metavar) > _METAVAR:
        metavar, text = "NAME", f"{text} One of {', '.join(names)}."
    return typer.Option(metavar=metavar, callback=check, help=text, autocompletion=begin)


def _check_store(out: str) -> str:
    if Path(out).suffix in (".parquet", ".csv", ".npy", ".npz", ".h5"):
        raise typer.BadParameter(
            f"{out!r} would be a Zarr store, which is none of these files; choose another name. "
            f"`daskcoreset rows` writes the rows of a coreset as Parquet or CSV."
        )
    return out


In = Annotated[str, typer.Argument(metavar="IN", help="Zarr, Parquet, HDF5, .npy or .npz.")]
Out = Annotated[
    str, typer.Argument(metavar="OUT", help="Zarr store to make.", callback=_check_store)
]
Store = Annotated[str, typer.Argument(metavar="STORE", help="A coreset made by build.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
Labels = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column or array of IN that holds the labels.")
]
Weights = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column or array of IN that holds weights.")
]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--storage-option",
        metavar="KEY=VALUE",
        help="For what is a URL; may be repeated. Values that are JSON are read so.",
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME", help="Feature to read; may be repeated."),
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="Features to read, by commas.")
]
MissingChunks = Annotated[
    str, choice("raise", "fill", text="Zarr chunks that are not stored: an error, or filled.")
]
Rows = Annotated[int | None, typer.Option(min=1, metavar="ROWS", help="Rows per block.")]
Clusters = Annotated[
    int | None, typer.Option(min=1, metavar="K", help="Clusters k, for the methods that need it.")
]
Seed = Annotated[
    int | None, typer.Option(min=0, metavar="NUMBER", help="Makes the result repeatable.")
]
Metric = Annotated[
    str, choice("euclidean", "cosine", text="By cosine rows are divided by their lengths.")
]
OnInvalid = Annotated[
    str, choice("raise", "drop", text="What becomes of rows with NaN or infinity.")
]
Timeout = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="End the work after so long.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Progress = Annotated[
    bool | None, typer.Option(help="Show a bar; by default only on a terminal.", show_default=False)
]


def absolute(source: str) -> str:
    """Return a local path as one from the root, and anything else as it is."""
    # For workers in another folder, and for the provenance, which outlives this one.
    path = Path(from_root(source))
    return str(path.resolve()) if "://" not in source and path.exists() else source


def free_file(out: str, *suffixes: str, overwrite: bool) -> Path:
    """Return the path of a file to write, of one of these kinds; check that nothing is lost."""
    target = Path(from_root(path_of_file_url("OUT", out) if is_file_url(out) else out))
    if target.suffix not in suffixes:
        endings = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise typer.BadParameter(f"OUT is {out!r}; end it with {endings}.")
    if target.exists() and not overwrite:
        raise StoreError(f"{out} exists; pass --overwrite or choose another path")
    return target


def names_of(column: list[str] | None, columns: str | None) -> list[str] | None:
    """Return the features asked for one by one and in a list; None for all."""
    listed = [] if columns is None else [name.strip() for name in columns.split(",")]
    return [*(column or []), *filter(None, listed)] or None


def as_built(
    known: Mapping[str, Any], source: str, options: ReadOptions, **keys: str | None
) -> tuple[ReadOptions, dict[str, str | None]]:
    """Return what is read of IN: what is told, and else what STORE or TREE was built from.

    Parameters
    ----------
    known : mapping of str to object
        The provenance of STORE, or what else names columns and members.
    source : str
    options : ReadOptions
    **keys : str or None
        Members of IN that are told, by the names of the arguments.

    Returns
    -------
    ReadOptions, dict of str to str or None
        With the columns and members that are known, where IN has all of these columns, and has the
        member.
    """
    columns = known.get("columns") if options.columns is None else None
    open_keys = [name for name, key in keys.items() if key is None and name in known]
    if columns is None and not open_keys:
        return options, keys
    names = member_names(OpenedRows(source, options))
    if columns is not None and {*columns} <= {*names.columns}:
        options = replace(options, columns=list(columns))
    there = {*names.columns, *names.arrays}
    return options, {**keys, **{name: known[name] for name in open_keys if known[name] in there}}


def size_of(size: str | None) -> int | str | None:
    """Return the rows wanted: a number of at least one, or "auto"."""
    if size is None or size == "auto":
        return size
    if not size.isdecimal() or int(size) < 1:
        raise typer.BadParameter(f"--size {size!r} is no number of rows; give one, or auto.")
    return int(size)


def mapping(pairs: list[str] | None) -> dict[str, Any] | None:
    """Return storage options; no message shows a value, which may be a password."""
    if not pairs:
        return None
    mapping: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter("--storage-option has no name or no =; give KEY=VALUE.")
        try:
            mapping[key] = json.loads(value)
        except ValueError:
            mapping[key] = value
    return mapping


def for_url(path: str, options: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the storage options of a path: none, unless it is a URL."""
    return options if "://" in path else None


def read_options(
    source: str, told: dict[str, Any] | None, columns: list[str] | None, missing_chunks: Any
) -> ReadOptions:
    """Return how IN is read, by the storage options that are told, its columns and its gaps."""
    return ReadOptions(for_url(source, told), columns, missing_chunks)


def facts_of(coreset: Coreset) -> dict[str, Any]:
    """Return size, weight and provenance of a coreset in JSON values."""
    provenance = thaw(coreset.provenance)
    # `m` and `d` are there already, under the names that need no explanation.
    further = {key: value for key, value in provenance.items() if key not in ("m", "d")}
    return {
        "rows": len(coreset),
        "features": coreset.n_features,
        "dtype": str(coreset.points.dtype),
        "labels": None if coreset.labels is None else kind_of_values(coreset.labels),
        "weight": coreset.total_weight,
        **further,
    }


def report(title: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print facts as one JSON object, or as `show` does."""
    if as_json:
        typer.echo(_as_json(facts, indent=2))
    else:
        show(title, facts)


def show(title: str, facts: Mapping[str, Any]) -> None:
    """Print a table for a reader, or lines of key, tab and value for a program."""
    if not sys.stdout.isatty():
        for key, value in facts.items():
            typer.echo(f"{key}\t{value if isinstance(value, str) else _as_json(value)}")
        return
    table = Table(title=title, show_header=False, title_justify="left")
    for key, value in facts.items():
        # As Text, for in a plain string brackets would be markup.
        table.add_row(Text(key.replace("_", " "), style="bold"), Text(_readable(value)))
    Console().print(table)


def _readable(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        # A seed may have 39 digits: a pipe and --json have them all.
        return f"{value:,}" if value < 10**15 else short_seed(value)
    return f"{value:,.10g}" if isinstance(value, float) else _as_json(value)


def _as_json(value: Any, **options: Any) -> str:
    """Return JSON with letters as they are, or escaped where the output has no place for them."""
    text = json.dumps(value, ensure_ascii=False, **options)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, **options)
    return text
