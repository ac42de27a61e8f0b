"""The commands ``daskcoreset tree``: a tree that is kept on disk or on an object store."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, replace
from typing import Annotated

import typer

from daskcoreset.cli.parameters import (
    Clusters,
    Column,
    Columns,
    In,
    Json,
    Labels,
    MissingChunks,
    OnInvalid,
    Out,
    Overwrite,
    Seed,
    StorageOptions,
    Weights,
    absolute,
    as_built,
    choice,
    for_url,
    mapping,
    names_of,
    read_options,
    report,
    show,
)
from daskcoreset.constructions.tree.store import CoresetTree
from daskcoreset.constructions.tree.windows import read_date
from daskcoreset.core.errors import InvalidInputError, warn_user
from daskcoreset.core.locations import clean_url
from daskcoreset.inputs.options import Rows
from daskcoreset.sensitivities import CONSTRUCTIONS

trees = typer.Typer(
    no_args_is_help=True, help="A tree of coresets: add and remove parts of the data, ask for some."
)

Tree = Annotated[str, typer.Argument(metavar="TREE", help="Folder or URL of the tree.")]
LeafOnInvalid = Annotated[
    str | None,
    choice(
        "raise",
        "drop",
        text="What becomes of rows with NaN or infinity; by default as create was told.",
    ),
]
Leaf = Annotated[str, typer.Argument(metavar="LEAF", help="Name of a leaf.")]


@trees.command()
def create(
    tree: Tree,
    *,
    size: Annotated[
        int, typer.Option(min=1, metavar="ROWS", help="Rows of a coreset that is asked for.")
    ] = 1000,
    method: Annotated[str | None, choice(*CONSTRUCTIONS, text="Construction.")] = None,
    clusters: Clusters = None,
    seed: Seed = None,
    on_invalid: OnInvalid = "raise",
    storage_option: StorageOptions = None,
) -> None:
    """Make an empty tree."""
    CoresetTree.create(
        tree,
        method=method,
        size=size,
        n_clusters=clusters,
        random_state=seed,
        on_invalid=on_invalid,  # type: ignore[arg-type] # one of the choices
        storage_options=mapping(storage_option),
    )
    method = method or ("lightweight" if clusters is None else "kmeans")
    show("tree", {"tree": clean_url(tree), "method": method, "size": size})


@trees.command()
def append(
    tree: Tree,
    source: In,
    *,
    name: Annotated[str | None, typer.Option(help="Name of the leaf.")] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="Its day or time, for windows, such as 2026-03-02; or a number."
        ),
    ] = None,
    labels: Labels = None,
    weights: Weights = None,
    column: Column = None,
    columns: Columns = None,
    storage_option: StorageOptions = None,
    missing_chunks: MissingChunks = "raise",
    unit_length: Annotated[
        bool, typer.Option("--unit-length", help="Divide every row by its length.")
    ] = False,
    on_invalid: LeafOnInvalid = None,
) -> None:
    """Add the rows of IN as a leaf after the others.

    Columns, labels and weights are by default those of the leaves before, by their names.
    """
    kept = _open(tree, storage_option)
    told = mapping(storage_option)
    read = read_options(source, told, names_of(column, columns), missing_chunks)
    keys = {"y": labels, "sample_weight": weights}
    manifest = kept._manifest  # noqa: SLF001 - what the other leaves have
    manifest.next_leaf(name, time)  # a wrong name is an error before IN is opened
    if (schema := manifest.schema) is not None:
        known = {"columns": schema.columns, **schema.keys}
        read, keys = as_built(known, source, read, **keys)
    forgotten = keys["sample_weight"] is None and _is_weighted(kept)
    leaf = kept.append(
        Rows(absolute(source), replace(read, unit_length=unit_length)),
        keys["y"],
        keys["sample_weight"],
        name=name,
        time=time,
        on_invalid=on_invalid,  # type: ignore[arg-type] # one of the choices
    )
    if forgotten:
        warn_user(
            "--weights is missing, and the leaves before have weights: every row of IN counts as "
            "one. Where it has weights, delete the leaf, and append it with --weights."
        )
    show("leaf", {key: asdict(leaf)[key] for key in ("name", "rows", "time", "weight")})


@trees.command()
def delete(
    tree: Tree,
    leaves: Annotated[list[str], typer.Argument(metavar="LEAF...", help="Names of leaves.")],
    *,
    storage_option: StorageOptions = None,
) -> None:
    """Remove leaves, in one step."""
    kept = _open(tree, storage_option)
    kept.delete(leaves)
    show("tree", {"deleted": leaves, "leaves": len(kept)})


@trees.command()
def window(
    tree: Tree,
    out: Out,
    *,
    first: Annotated[
        str | None,
        typer.Option("--from", help="First leaf of the window, in the order of the list."),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last leaf, included.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day or time, by those of the leaves.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Last day or time, included.")
    ] = None,
    leaf: Annotated[list[str] | None, typer.Option(help="A leaf; may be repeated.")] = None,
    overwrite: Overwrite = False,
    storage_option: StorageOptions = None,
) -> None:
    """Save a coreset of all leaves, or of some, as OUT."""
    by_name, by_date = first is not None or last is not None, since is not None or until is not None
    if leaf and by_name:
        raise InvalidInputError("--leaf and --from or --to exclude each other; give one of them.")
    if by_date and (leaf or by_name):
        raise InvalidInputError(
            "--since and --until exclude --leaf, --from and --to; give dates or names."
        )
    dates = slice(_date("--since", since), _date("--until", until))
    told = mapping(storage_option)
    wanted = leaf or (dates if by_date else slice(first, last))
    coreset = _open(tree, storage_option).coreset(wanted)
    coreset.to_zarr(out, overwrite=overwrite, storage_options=for_url(out, told))
    facts = {"store": clean_url(out), "rows": len(coreset)}
    names = [one["name"] for one in coreset.provenance["leaves"]]
    show("coreset", {**facts, "weight": coreset.total_weight, "leaves": names})


@trees.command()
def verify(tree: Tree, *, storage_option: StorageOptions = None) -> None:
    """Read all of the tree, and compare the digests."""
    kept = _open(tree, storage_option)
    kept.verify()
    show("tree", {"tree": clean_url(tree), "leaves": len(kept), "damage": None})


@trees.command("list")
def leaves(tree: Tree, *, storage_option: StorageOptions = None, as_json: Json = False) -> None:
    """Print the table of the leaves."""
    table = _open(tree, storage_option).leaves
    if as_json:
        shown = ("rows", "time", "weight")
        facts = {leaf.name: {key: asdict(leaf)[key] for key in shown} for leaf in table}
        report("leaves", facts, as_json=True)
    else:
        typer.echo(repr(table))


def _is_weighted(tree: CoresetTree) -> bool:
    """Whether all leaves with rows weigh something else than their rows, counted as one each."""
    counts = [(leaf.rows - leaf.n_dropped, leaf.weight) for leaf in tree.leaves if leaf.rows]
    return bool(counts) and all(rows != weight for rows, weight in counts)


def _date(flag: str, text: str | None) -> dt.date | None:
    """Return the day, or the time of a day, that a flag names."""
    try:
        return None if text is None else read_date(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{flag} is {text!r}, which is no date; give one, such as 2026-03-02."
        ) from error


def _open(tree: str, storage_option: list[str] | None) -> CoresetTree:
    return CoresetTree.open(
        tree, storage_options=mapping(storage_option) if "://" in tree else None
    )
