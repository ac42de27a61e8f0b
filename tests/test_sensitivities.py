from __future__ import annotations
from daskcoreset.sensitivities import Lightweight, Uniform
from daskcoreset.testing import SensitivityContract
class TestLightweight(SensitivityContract):
    def construction(self): return Lightweight()
class TestUniform(SensitivityContract):
    def construction(self): return Uniform()
