"""Tables of LaTeX commands that translate to one symbol each."""

MATRICES = frozenset({"pmatrix", "bmatrix", "matrix", "vmatrix", "Bmatrix", "smallmatrix"})

_LETTERS = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi "
    "varphi chi psi omega Delta Sigma Omega Phi Psi Lambda Theta Gamma"
)
GREEK = frozenset(_LETTERS.split())
SYMBOLS = {
    "cdot": "*",
    "times": "*",
    "ast": "*",
    "div": "/",
    "le": "<=",
    "leq": "<=",
    "leqslant": "<=",
    "ge": ">=",
    "geq": ">=",
    "geqslant": ">=",
    "ne": " != ",
    "neq": " != ",
    "lt": "<",
    "gt": ">",
    "pi": " pi ",
    "infty": " oo ",
    "to": "->",
    "rightarrow": "->",
    "circ": "\u00b0",
    "degree": "\u00b0",
    "%": "%",
    "bmod": " mod ",
    "equiv": "\u2261",
    **dict.fromkeys((",", ";", "!", ":", " ", "quad", "qquad", "big", "Big", "bigl", "bigr", "Bigl", "Bigr"), " "),
    "lvert": "|",
    "rvert": "|",
    "vert": "|",
    "mid": "|",
    "{": "{",
    "}": "}",
    "partial": "d",
    "lbrace": "{",
    "rbrace": "}",
    "lbrack": "[",
    "rbrack": "]",
    "top": "top",
    "imath": " i ",
    "dx": " dx ",
    "emptyset": "{}",
}
