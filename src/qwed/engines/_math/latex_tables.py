"""Tables of LaTeX commands and of signs that translate to one symbol each."""

import tomllib
from collections.abc import Mapping

from qwed.model.data_files import read_table

MATRICES = frozenset({"pmatrix", "bmatrix", "matrix", "vmatrix", "Bmatrix", "smallmatrix"})

_LETTERS = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi "
    "varphi chi psi omega Delta Sigma Omega Phi Psi Lambda Theta Gamma"
)
GREEK = frozenset(_LETTERS.split())
_NOTATION: Mapping[str, Mapping[str, str]] = tomllib.loads(read_table(__file__, "notation.toml"))
SYMBOLS = _NOTATION["latex"]
SIGNS = str.maketrans(dict(_NOTATION["signs"]))
