"""What the commands print: facts, on a terminal, in a pipe or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from daskcoreset.core.coreset import Coreset, thaw
from daskcoreset.core.tables import kind_of_values, short_seed, text_table


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


def show(facts: Mapping[str, Any], *, as_json: bool = False) -> None:
    """Print a table on a terminal, lines of key, tab and value in a pipe, or one JSON object."""
    if as_json:
        print(_as_json(facts, indent=2))
    elif sys.stdout.isatty():
        table = [(key.replace("_", " "), _readable(value)) for key, value in facts.items()]
        print("\n".join(map(str.rstrip, text_table(table, left_columns=(0, 1)))))
    else:
        for key, value in facts.items():
            print(f"{key}\t{value if isinstance(value, str) else _as_json(value)}")


def _readable(value: Any) -> str:
    if value is None or isinstance(value, bool | str):
        return "none" if value is None else str(value)
    if isinstance(value, int):
        # A seed may have 39 digits: a pipe and --json have them all.
        return f"{value:,}" if value < 10**15 else short_seed(value)
    return f"{value:,.10g}" if isinstance(value, float) else _as_json(value)


def _as_json(value: Any, **options: Any) -> str:
    """Return JSON. Letters are escaped if the output may not encode them."""
    escapes = "utf" not in (sys.stdout.encoding or "utf-8").lower()
    return json.dumps(value, ensure_ascii=escapes, **options)
