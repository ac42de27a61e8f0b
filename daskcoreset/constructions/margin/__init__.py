"""Maximum-margin separators with a certificate, from rows larger than memory."""

from __future__ import annotations

from daskcoreset.constructions.margin.active import ActiveMaxMargin
from daskcoreset.constructions.margin.audit import MarginAudit
from daskcoreset.constructions.margin.core_set import MarginCoreset
from daskcoreset.constructions.margin.max_margin import MaxMarginCoreset, build_margin
from daskcoreset.constructions.margin.outlier import OutlierMargin, OutlierMaxMargin
from daskcoreset.constructions.margin.plot import plot_gap, plot_margins
from daskcoreset.constructions.margin.problems import StructuredProblem
from daskcoreset.constructions.margin.separators import InseparableError, NotSeparableError
from daskcoreset.solvers.hard_margin import (
    HardMargin,
    hard_margin,
    hard_margin_bias,
    hard_margin_gram,
)

__all__ = [
    "ActiveMaxMargin",
    "HardMargin",
    "InseparableError",
    "MarginAudit",
    "MarginCoreset",
    "MaxMarginCoreset",
    "NotSeparableError",
    "OutlierMargin",
    "OutlierMaxMargin",
    "StructuredProblem",
    "build_margin",
    "hard_margin",
    "hard_margin_bias",
    "hard_margin_gram",
    "plot_gap",
    "plot_margins",
]
