"""Maximum-margin separators with a certificate, from rows larger than memory."""

from __future__ import annotations

from daskcoreset.margin.active import ActiveMaxMargin
from daskcoreset.margin.batch import MaxMarginCoreset
from daskcoreset.margin.build import build_margin
from daskcoreset.margin.hard import HardMargin, hard_margin, hard_margin_bias, hard_margin_gram
from daskcoreset.margin.outlier import OutlierMaxMargin
from daskcoreset.margin.outlier_result import OutlierMargin
from daskcoreset.margin.plot import plot_gap, plot_margins
from daskcoreset.margin.result import MarginCoreset
from daskcoreset.margin.separability import InseparableError, NotSeparableError

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
