"""Options that several commands share, named after the arguments of the library."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from daskcoreset.constructions.coverage.cover import Coverage
from daskcoreset.constructions.draws import Draw, MergeReduce
from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.tables import kind_of_values, short_seed
from daskcoreset.errors import InvalidInputError
from daskcoreset.inputs.open import member_names
from daskcoreset.inputs.options import Rows, open_rows
from daskcoreset.sensitivities import CONSTRUCTIONS, default_method
from daskcoreset.storage.locations import locate


def choice(*names: str, text: str) -> Any:
    """Return an option whose value is one of `names`."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(names)}.")
        return value

    def begin(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    text = f"{text} One of {', '.join(names)}."
    return typer.Option(metavar="NAME", callback=check, help=text, autocompletion=begin)


def pairs(flag: str, text: str) -> Any:
    """Return an option of the form KEY=VALUE, which may be repeated."""
    return typer.Option(
        flag, metavar="KEY=VALUE", help=f"{text} Repeat it for several. Values may be JSON."
    )


def read_pairs(flag: str, given: list[str] | None) -> dict[str, Any]:
    """Return pairs as a dictionary. Messages show no value, because it may be a password."""
    found: dict[str, Any] = {}
    for pair in given or []:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise typer.BadParameter(f"{flag} has no key or no =; pass KEY=VALUE.")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def names_in(text: str | None) -> list[str] | None:
    """Return names that are separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


In = Annotated[str, typer.Argument(metavar="IN", help="Data: Zarr, Parquet, HDF5, .npy or .npz.")]
Store = Annotated[str, typer.Argument(metavar="STORE", help="Coreset saved by build.")]
StorageOptions = Annotated[
    list[str] | None, pairs("--storage-options", "Option for the storage of a URL, such as a key.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Y = Annotated[str | None, typer.Option(metavar="NAME", help="Column or array of the labels.")]
SampleWeight = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column or array of the weights.")
]
Clusters = Annotated[int | None, typer.Option(min=1, metavar="K", help="Number of clusters.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed, for reproducible results.")]
Chunks = Annotated[int | None, typer.Option(min=1, metavar="ROWS", help="Rows per block.")]
OnInvalid = Annotated[
    str | None, choice("raise", "drop", text="How to treat rows with NaN or infinity.")
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="SECONDS", help="Stop with an error after this time."),
]
Progress = Annotated[
    bool | None,
    typer.Option(help="Show a progress bar. Default: on a terminal.", show_default=False),
]


@dataclass(frozen=True)
class Reading:
    """The options of `daskcoreset.open_rows`."""

    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Features to read, separated by commas.")
    ] = None
    storage_options: StorageOptions = None
    missing_chunks: Annotated[
        str, choice("raise", "fill", text="How to treat missing chunks of a Zarr array.")
    ] = "raise"
    sample_dims: Annotated[
        str | None, typer.Option(metavar="A,B", help="Dimensions of a cube that are rows.")
    ] = None
    feature_dims: Annotated[
        str | None, typer.Option(metavar="A,B", help="Dimensions of a cube that are columns.")
    ] = None
    unit_length: Annotated[
        bool, typer.Option("--unit-length", help="Divide every row by its length.")
    ] = False

    def told(self, place: str) -> dict[str, Any] | None:
        """Return the storage options of a URL, and None for other places."""
        found = read_pairs("--storage-options", self.storage_options)
        return found if found and "://" in place else None

    def open(self, source: str, columns: list[str] | None = None) -> Rows:
        """Return the rows of IN, as an absolute path, because workers run in other folders."""
        missing: Any = self.missing_chunks
        place = locate("IN", source)
        return open_rows(
            str(place) if isinstance(place, Path) and place.exists() else source,
            columns=names_in(self.columns) or columns,
            storage_options=self.told(source),
            missing_chunks=missing,
            sample_dims=names_in(self.sample_dims),
            feature_dims=names_in(self.feature_dims),
            unit_length=self.unit_length,
        )

    def open_as(
        self, known: Mapping[str, Any], source: str, **keys: str | None
    ) -> tuple[Rows, dict[str, str | None]]:
        """Return the rows of IN and its members, by default those that are known.

        Parameters
        ----------
        known : mapping of str to object
            Names of columns and members, such as the provenance of a coreset.
        source : str
        **keys : str or None
            Members that the options name, by argument.
        """
        rows = self.open(source)
        columns = known.get("columns") if self.columns is None else None
        missing = [name for name, key in keys.items() if key is None and name in known]
        if columns is None and not missing:
            return rows, keys
        there = {*member_names(rows)}
        if columns is not None and {*columns} <= there:
            rows = self.open(source, list(columns))
        return rows, {**keys, **{name: known[name] for name in missing if known[name] in there}}


@dataclass(frozen=True)
class Building:
    """The options of `daskcoreset.build` that do not name the rows."""

    size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of rows. Default: 10,000, or 100 per cluster if that is more."
        ),
    ] = None
    method: Annotated[
        str | None, choice(*CONSTRUCTIONS, "coverage", text="How rows are chosen.")
    ] = None
    parameters: Annotated[
        list[str] | None, pairs("--set", "Parameter of the method, such as lam=0.1.")
    ] = None
    n_clusters: Clusters = None
    random_state: Seed = None
    chunks: Chunks = None
    on_invalid: OnInvalid = "raise"
    sampling: Annotated[str, choice("systematic", "multinomial", text="How rows are drawn.")] = (
        "systematic"
    )
    passes: Annotated[int, typer.Option(min=1, max=2, help="Passes over the data.")] = 1
    tree: Annotated[bool, typer.Option("--tree", help="Merge and reduce coresets of blocks.")] = (
        False
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `daskcoreset.build`, without the size."""
        sampling: Any = self.sampling
        passes: Any = self.passes
        draw = MergeReduce(sampling=sampling) if self.tree else Draw(sampling, passes)
        if self.tree and self.passes != 1:
            raise typer.BadParameter(
                "--passes is given with --tree, which makes one pass; leave out --passes."
            )
        return {
            "method": self.construction,
            "n_clusters": self.n_clusters,
            "random_state": self.random_state,
            "chunks": self.chunks or "auto",
            "on_invalid": self.on_invalid,
            "draw": draw,
        }

    @property
    def construction(self) -> Any:
        """The method, with its parameters if any are set."""
        given = read_pairs("--set", self.parameters)
        if not given:
            return self.method
        name = default_method(self.method, self.n_clusters)
        kind: Any = Coverage if name == "coverage" else CONSTRUCTIONS[name]
        known = inspect.signature(kind).parameters
        if unknown := [one for one in given if one not in known]:
            raise InvalidInputError(
                f"method {name!r} has no parameter {unknown[0]!r}",
                argument="set",
                remedy=f"pass one of {', '.join(known)}" if known else "leave it out",
            )
        for one in known:
            if one in {"n_clusters", "n_components"} and self.n_clusters is not None:
                given.setdefault(one, self.n_clusters)
        return kind(**given)


@dataclass(frozen=True)
class Running:
    """Scheduler, workers and time limit of a build."""

    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on the Dask scheduler at this address."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Run on N processes of this machine."),
    ] = None
    limit: TimeLimit = None
    progress: Progress = None


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the fields of its parameters that are dataclasses, as options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {}
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            types = get_type_hints(hints[name], include_extras=True)
            parameters += [
                inspect.Parameter(
                    one.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=one.default,
                    annotation=types[one.name],
                )
                for one in fields(hints[name])
            ]
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @wraps(command)
    def called(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        command(**given)

    parameters.sort(key=lambda one: one.kind)
    made: Any = called
    made.__signature__ = inspect.Signature(parameters)
    made.__annotations__ = {one.name: one.annotation for one in parameters}
    del made.__wrapped__
    return called


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


def show(title: str, facts: Mapping[str, Any], *, as_json: bool = False) -> None:
    """Print a table on a terminal, lines of key, tab and value in a pipe, or one JSON object."""
    if as_json:
        typer.echo(_as_json(facts, indent=2))
        return
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
    if value is None or isinstance(value, bool | str):
        return "none" if value is None else str(value)
    if isinstance(value, int):
        # A seed may have 39 digits: a pipe and --json have them all.
        return f"{value:,}" if value < 10**15 else short_seed(value)
    return f"{value:,.10g}" if isinstance(value, float) else _as_json(value)


def _as_json(value: Any, **options: Any) -> str:
    """Return JSON. Letters are escaped if the output cannot encode them."""
    text = json.dumps(value, ensure_ascii=False, **options)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, **options)
    return text
