"""The commands ``daskcoreset tree``: a tree that is kept on disk or on an object store."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from typing import Any

from daskcoreset.cli.files import check_target
from daskcoreset.cli.options import READING, add_command, rows_as, storage_of
from daskcoreset.cli.output import show
from daskcoreset.constructions.tree.store import CoresetTree
from daskcoreset.core.messages import warn_user
from daskcoreset.sensitivities import default_method
from daskcoreset.storage.locations import clean_url


def add_commands(commands: Any) -> None:
    """Add the command ``tree`` and those below it."""
    text = "Keep a tree of coresets: add and remove leaves, and get a coreset of any of them."
    tree = commands.add_parser("tree", help=text, description=text, allow_abbrev=False)
    below = tree.add_subparsers(dest="COMMAND", required=True)
    kept = "TREE --storage-options"
    made = "--size --method --n-clusters --random-state --on-invalid"
    add_command(below, "create", create, f"{kept} {made}")
    labelled = "--y --sample-weight --on-invalid --progress"
    add_command(below, "append", append, f"TREE IN --name --time {labelled} {READING}")
    add_command(below, "delete", delete, f"{kept} LEAF")
    chosen = "--from --to --leaf --since --until --overwrite"
    add_command(below, "window", window, f"{kept} OUT {chosen}")
    add_command(below, "verify", verify, kept)
    add_command(below, "list", list_leaves, f"{kept} --json")


def create(given: Namespace) -> None:
    """Create an empty tree. Its coresets have 1,000 rows by default."""
    size = given.size or 1_000
    CoresetTree.create(
        given.TREE,
        method=given.method,
        size=size,
        n_clusters=given.n_clusters,
        random_state=given.random_state,
        on_invalid=given.on_invalid or "raise",
        storage_options=storage_of(given, given.TREE),
    )
    method = default_method(given.method, given.n_clusters)
    show({"tree": clean_url(given.TREE), "method": method, "size": size})


def append(given: Namespace) -> None:
    """Add the rows of IN as the last leaf.

    By default, columns, labels and weights have the names of the earlier leaves.
    """
    tree = _open(given)
    full = [leaf.name for leaf in tree.leaves if leaf.rows]
    known = tree.coreset(full[-1]).provenance if full else {}
    rows, keys = rows_as(known, given, given.IN, "y", "sample_weight")
    leaf = tree.append(
        rows,
        **keys,
        name=given.name,
        time=given.time,
        on_invalid=given.on_invalid,
        progress=given.progress,
    )
    if "sample_weight" in known and keys["sample_weight"] is None:
        warn_user(
            "--sample-weight is missing, and earlier leaves have weights: every row of IN counts "
            "as one. If IN has weights, delete the leaf and append it with --sample-weight."
        )
    show({key: asdict(leaf)[key] for key in ("name", "rows", "time", "weight")})


def delete(given: Namespace) -> None:
    """Remove leaves in one step."""
    tree = _open(given)
    tree.delete(given.LEAF)
    show({"deleted": given.LEAF, "leaves": len(tree)})


def window(given: Namespace) -> None:
    """Save a coreset of all or some leaves as OUT."""
    by_name = given.first is not None or given.last is not None
    by_date = given.since is not None or given.until is not None
    if by_name + by_date + bool(given.leaf) > 1:
        given.error(
            "--leaf, --from with --to, and --since with --until exclude each other; pass one"
        )
    check_target(given.OUT, overwrite=given.overwrite)
    ends = (given.since, given.until) if by_date else (given.first, given.last)
    coreset = _open(given).coreset(given.leaf or slice(*ends))
    coreset.to_zarr(
        given.OUT, overwrite=given.overwrite, storage_options=storage_of(given, given.OUT)
    )
    names = [one["name"] for one in coreset.provenance["leaves"]]
    facts = {"store": clean_url(given.OUT), "rows": len(coreset), "weight": coreset.total_weight}
    show({**facts, "leaves": names})


def verify(given: Namespace) -> None:
    """Read the whole tree and check its digests."""
    tree = _open(given)
    tree.verify()
    show({"tree": clean_url(given.TREE), "leaves": len(tree), "damage": None})


def list_leaves(given: Namespace) -> None:
    """Print a table of the leaves."""
    table = _open(given).leaves
    if not given.json:
        print(repr(table))
        return
    shown = ("rows", "time", "weight")
    show({leaf.name: {key: asdict(leaf)[key] for key in shown} for leaf in table}, as_json=True)


def _open(given: Namespace) -> CoresetTree:
    return CoresetTree.open(given.TREE, storage_options=storage_of(given, given.TREE))
