"""The commands ``daskcoreset tree``: a tree that is kept on disk or on an object store."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict
from typing import Annotated, Any

import typer

from daskcoreset.cli.files import check_target
from daskcoreset.cli.options import (
    Clusters,
    In,
    Json,
    OnInvalid,
    Overwrite,
    Progress,
    Reading,
    SampleWeight,
    Seed,
    StorageOptions,
    Y,
    choice,
    expanded,
    read_pairs,
    show,
)
from daskcoreset.constructions.tree.store import CoresetTree
from daskcoreset.constructions.tree.windows import read_date
from daskcoreset.core.messages import warn_user
from daskcoreset.sensitivities import CONSTRUCTIONS, default_method
from daskcoreset.storage.locations import clean_url

trees = typer.Typer(
    no_args_is_help=True,
    help="Keep a tree of coresets: add and remove leaves, and get a coreset of any of them.",
)

Tree = Annotated[str, typer.Argument(metavar="TREE", help="Folder or URL of the tree.")]


@trees.command()
def create(
    tree: Tree,
    *,
    size: Annotated[int, typer.Option(min=1, help="Rows of a coreset of the tree.")] = 1000,
    method: Annotated[str | None, choice(*CONSTRUCTIONS, text="How rows are chosen.")] = None,
    n_clusters: Clusters = None,
    random_state: Seed = None,
    on_invalid: OnInvalid = "raise",
    storage_options: StorageOptions = None,
) -> None:
    """Create an empty tree."""
    CoresetTree.create(
        tree,
        method=method,
        size=size,
        n_clusters=n_clusters,
        random_state=random_state,
        on_invalid=on_invalid,  # type: ignore[arg-type] # one of the choices
        storage_options=read_pairs("--storage-options", storage_options) or None,
    )
    method = default_method(method, n_clusters)
    show("tree", {"tree": clean_url(tree), "method": method, "size": size})


@trees.command()
@expanded
def append(
    tree: Tree,
    source: In,
    reading: Reading,
    *,
    name: Annotated[str | None, typer.Option(help="Name of the leaf.")] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Day, time or number of the leaf, for windows."),
    ] = None,
    y: Y = None,
    sample_weight: SampleWeight = None,
    on_invalid: OnInvalid = None,
    progress: Progress = None,
) -> None:
    """Add the rows of IN as the last leaf.

    By default, columns, labels and weights have the names of the earlier leaves.
    """
    kept = _open(tree, reading.storage_options)
    manifest = kept._now  # noqa: SLF001 - what the other leaves have
    manifest.next_leaf(name, time)  # a wrong name is an error before IN is opened
    schema = manifest.schema
    known: dict[str, Any] = {} if schema is None else {"columns": schema.columns, **schema.keys}
    rows, keys = reading.open_as(known, source, y=y, sample_weight=sample_weight)
    forgotten = keys["sample_weight"] is None and _is_weighted(kept)
    leaf = kept.append(
        rows,
        keys["y"],
        keys["sample_weight"],
        name=name,
        time=time,
        on_invalid=on_invalid,  # type: ignore[arg-type] # one of the choices
        progress=progress,
    )
    if forgotten:
        warn_user(
            "--sample-weight is missing, and earlier leaves have weights: every row of IN counts "
            "as one. If IN has weights, delete the leaf and append it with --sample-weight."
        )
    show("leaf", {key: asdict(leaf)[key] for key in ("name", "rows", "time", "weight")})


@trees.command()
def delete(
    tree: Tree,
    leaves: Annotated[list[str], typer.Argument(metavar="LEAF...", help="Names of leaves.")],
    *,
    storage_options: StorageOptions = None,
) -> None:
    """Remove leaves in one step."""
    kept = _open(tree, storage_options)
    kept.delete(leaves)
    show("tree", {"deleted": leaves, "leaves": len(kept)})


@trees.command()
def window(
    tree: Tree,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Zarr store to create.")],
    *,
    first: Annotated[str | None, typer.Option("--from", help="First leaf of the window.")] = None,
    last: Annotated[
        str | None, typer.Option("--to", help="Last leaf of the window, included.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day or time of the window.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Last day or time, included.")
    ] = None,
    leaf: Annotated[
        list[str] | None, typer.Option(help="A leaf of the window. Repeat it for several.")
    ] = None,
    overwrite: Overwrite = False,
    storage_options: StorageOptions = None,
) -> None:
    """Save a coreset of all or some leaves as OUT."""
    by_name, by_date = first is not None or last is not None, since is not None or until is not None
    if by_name + by_date + bool(leaf) > 1:
        raise typer.BadParameter(
            "--leaf, --from with --to, and --since with --until exclude each other; pass one."
        )
    check_target(out, overwrite=overwrite)
    dates = slice(_date("--since", since), _date("--until", until))
    coreset = _open(tree, storage_options).coreset(
        leaf or (dates if by_date else slice(first, last))
    )
    told = read_pairs("--storage-options", storage_options) if "://" in out else None
    coreset.to_zarr(out, overwrite=overwrite, storage_options=told)
    names = [one["name"] for one in coreset.provenance["leaves"]]
    facts = {"store": clean_url(out), "rows": len(coreset), "weight": coreset.total_weight}
    show("coreset", {**facts, "leaves": names})


@trees.command()
def verify(tree: Tree, *, storage_options: StorageOptions = None) -> None:
    """Read the whole tree and check its digests."""
    kept = _open(tree, storage_options)
    kept.verify()
    show("tree", {"tree": clean_url(tree), "leaves": len(kept), "damage": None})


@trees.command("list")
def leaves(tree: Tree, *, storage_options: StorageOptions = None, as_json: Json = False) -> None:
    """Print a table of the leaves."""
    table = _open(tree, storage_options).leaves
    if not as_json:
        typer.echo(repr(table))
        return
    shown = ("rows", "time", "weight")
    facts = {leaf.name: {key: asdict(leaf)[key] for key in shown} for leaf in table}
    show("leaves", facts, as_json=True)


def _is_weighted(tree: CoresetTree) -> bool:
    """Whether the weight of every leaf with rows differs from its number of kept rows."""
    counts = [(leaf.rows - leaf.n_dropped, leaf.weight) for leaf in tree.leaves if leaf.rows]
    return bool(counts) and all(rows != weight for rows, weight in counts)


def _date(flag: str, text: str | None) -> dt.date | None:
    """Return the day or time that a flag names."""
    try:
        return None if text is None else read_date(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{flag} is {text!r}, which is not a date; pass one, such as 2026-03-02."
        ) from error


def _open(tree: str, storage_options: list[str] | None) -> CoresetTree:
    told = read_pairs("--storage-options", storage_options) if "://" in tree else None
    return CoresetTree.open(tree, storage_options=told)
