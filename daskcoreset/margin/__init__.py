"""Maximum-margin separators with a certificate, from rows larger than memory."""

from __future__ import annotations

from daskcoreset.margin.active import ActiveMaxMargin
from daskcoreset.margin.active_found import ActiveMargin, Certificate
from daskcoreset.margin.asking import Asking, Wanted
from daskcoreset.margin.labelled import InseparableError
from daskcoreset.margin.multiclass import MultiClassMargin, MultiClassProblem, multiclass_margin
from daskcoreset.margin.oracle import OracleError
from daskcoreset.margin.problem import BatchProblem, Rival, StructuredProblem
from daskcoreset.margin.sequence import SequenceProblem
from daskcoreset.margin.structured import StructuredMargin, structured_margin

__all__ = [
    "ActiveMargin",
    "ActiveMaxMargin",
    "Asking",
    "BatchProblem",
    "Certificate",
    "InseparableError",
    "MultiClassMargin",
    "MultiClassProblem",
    "OracleError",
    "Rival",
    "SequenceProblem",
    "StructuredMargin",
    "StructuredProblem",
    "Wanted",
    "multiclass_margin",
    "structured_margin",
]
