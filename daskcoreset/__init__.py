from daskcoreset.build import build
from daskcoreset.coreset import Coreset
from daskcoreset.sensitivities import Lightweight, Uniform
