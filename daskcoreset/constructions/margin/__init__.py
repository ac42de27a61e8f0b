"""Maximum-margin separators with a certificate, from rows larger than memory."""

from __future__ import annotations

from daskcoreset.constructions.margin.active import ActiveMaxMargin
from daskcoreset.constructions.margin.batch import MaxMarginCoreset
from daskcoreset.constructions.margin.build import build_margin
from daskcoreset.solvers.hard import HardMargin, hard_margin, hard_margin_bias, hard_margin_gram
from daskcoreset.constructions.margin.outlier import OutlierMaxMargin
from daskcoreset.constructions.margin.outlier_result import OutlierMargin
from daskcoreset.constructions.margin.plot import plot_gap, plot_margins
from daskcoreset.constructions.margin.result import MarginCoreset
from daskcoreset.constructions.margin.separability import InseparableError, NotSeparableError

__all__ = [
    "ActiveMaxMargin",
    "HardMargin",
    "InseparableError",
    "MarginCoreset",
    "MaxMarginCoreset",
    "NotSeparableError",
    "OutlierMargin",
    "OutlierMaxMargin",
    "build_margin",
    "hard_margin",
    "hard_margin_bias",
    "hard_margin_gram",
    "plot_gap",
    "plot_margins",
]
