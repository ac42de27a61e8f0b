"""A run of active learning in and out of Zarr: labels cost money, so none may be lost."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from daskcoreset.constructions.margin.labelled import Labelled, Phase, Rule, Separator
from daskcoreset.constructions.margin.run_state import Queries, Step
from daskcoreset.core.storage import read_group, write_group

if TYPE_CHECKING:
    from daskcoreset.core.storage import JSON, Location
    from daskcoreset.core.typing import AnyArray

__all__ = ["read_queries", "write_queries"]

KIND = "active-max-margin"
VERSION = 1

_COUNTERS = ("draws", "verifications", "right", "idle", "needed", "cursor", "reads", "stopped")
_STEP = ("n_labels", "n_core", "margin", "closest", "phase")


def write_queries(
    store: Location, state: Queries, facts: dict[str, Any], *, overwrite: bool = True
) -> None:
    """Write a run, whole or not at all, in place of an earlier state of it.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath
    state : Queries
    facts : dict
        Plain values about the pool, returned by `read_queries`.
    overwrite : bool, default=True
        Whether to replace what is there.
    """
    labelled, separator = state.labelled, state.separator
    # Few arrays: each is a file that is flushed to the disk for every answer.
    arrays: dict[str, AnyArray] = {
        "labelled": np.stack([labelled.indices, labelled.codes, labelled.phases], axis=1),
        "row": labelled.rows,
        "queue": state.queue,
        "queue_row": state.queue_rows,
        "trace": np.array(
            [[float(getattr(step, name)) for name in _STEP] for step in state.trace]
        ).reshape(-1, len(_STEP)),
    }
    dims: dict[str, tuple[str, ...]] = {
        "labelled": ("labelled", "index_class_phase"),
        "row": ("labelled", "feature"),
        "queue": ("queue",),
        "queue_row": ("queue", "feature"),
        "trace": ("step", "column"),
    }
    attributes: dict[str, JSON] = {
        "rule": _plain_rule(state.rule),
        "classes": list(labelled.classes),
        "counters": {name: getattr(state, name) for name in _COUNTERS},
        "phase": int(state.phase),
        "wanted": state.wanted.tolist(),
        "trace_columns": list(_STEP),
        "pool": facts,
        "level": None if separator is None else [separator.b, separator.margin],
    }
    if separator is not None:
        members = [separator.core.astype(np.float64), separator.dual, separator.slack]
        arrays |= {"w": separator.w, "core": np.stack(members, axis=1)}
        dims |= {"w": ("feature",), "core": ("member", "position_dual_slack")}
    write_group(
        store, arrays, dims, attributes, kind=KIND, schema_version=VERSION, overwrite=overwrite
    )


def read_queries(store: Location) -> tuple[Queries, dict[str, Any]]:
    """Read a run back, bit for bit.

    Parameters
    ----------
    store : str, path-like, zarr Store or StorePath

    Returns
    -------
    state : Queries
    facts : dict
        As given to `write_queries`.

    Raises
    ------
    StoreError
        If there is no complete, undamaged run.
    """
    arrays, attributes = read_group(store, kind=KIND, schema_version=VERSION)
    separator = None
    if attributes["level"] is not None:
        b, margin = attributes["level"]
        position, dual, slack = np.ascontiguousarray(arrays["core"].T)
        separator = Separator(arrays["w"], b, margin, position.astype(np.int64), dual, slack)
    indices, codes, phases = np.ascontiguousarray(arrays["labelled"].T)
    state = Queries(
        rule=_rule(attributes["rule"]),
        labelled=Labelled(indices, arrays["row"], codes, phases, tuple(attributes["classes"])),
        separator=separator,
        phase=Phase(attributes["phase"]),
        queue=arrays["queue"],
        queue_rows=arrays["queue_row"],
        wanted=np.array(attributes["wanted"], dtype=np.int64),
        trace=tuple(_step(row) for row in arrays["trace"].tolist()),
        **attributes["counters"],
    )
    return state, attributes["pool"]


def _plain_rule(rule: Rule) -> dict[str, JSON]:
    # JSON has neither infinity nor integers above 2**53 that every reader keeps.
    plain = dataclasses.asdict(rule)
    return {**plain, "C": None if math.isinf(rule.C) else rule.C, "seed": str(rule.seed)}


def _rule(plain: dict[str, Any]) -> Rule:
    C = math.inf if plain["C"] is None else plain["C"]
    return Rule(**{**plain, "C": C, "seed": int(plain["seed"])})


def _step(row: list[float]) -> Step:
    n_labels, n_core, margin, closest, phase = row
    return Step(int(n_labels), int(n_core), margin, closest, Phase(int(phase)))
