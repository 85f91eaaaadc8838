"""Whether what z3 is told as options is written out and names no file."""

import ast

from qwed.guards._python.places import Survey
from qwed.guards._python.text_calls import OPTION_CALLS, names_file

_LAST = frozenset(path.rpartition(".")[2] for path in OPTION_CALLS)


def options_are_plain(found: Survey, names: frozenset[str]) -> bool:
    """`names` are those that imports give to the functions of z3 that take options."""
    if not _LAST.isdisjoint(found.attributes) or any(not names.isdisjoint(place.loaded) for place in found.places):
        return False
    return all(_is_plain(call) for call in found.calls if _takes_options(call.func, names))


def _takes_options(func: ast.expr, names: frozenset[str]) -> bool:
    if isinstance(func, ast.Name):
        return func.id in names
    return isinstance(func, ast.Attribute) and func.attr in _LAST


def _is_plain(call: ast.Call) -> bool:
    told = [word.arg or "" for word in call.keywords]
    for part in call.args:
        if not isinstance(part, ast.Constant):
            return False
        told += [part.value] if isinstance(part.value, str) else []
    return not any(map(names_file, told))
