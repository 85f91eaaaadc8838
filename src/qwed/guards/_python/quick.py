"""A quick look at a program: whether nothing in it can mean anything, so that the full check would find nothing.

It judges names wherever they stand, by the same tables; whatever it cannot tell so it leaves to the full check.
"""

import ast

from qwed.guards._python.annotations import may_hold_code
from qwed.guards._python.attributes import INNER
from qwed.guards._python.calls import RISKY_WORDS
from qwed.guards._python.check import reaching_format
from qwed.guards._python.formula_texts import Names, calls_what_it_is_given, formulas_are_plain
from qwed.guards._python.harmless import LOUD_ATTRIBUTES, LOUD_BESIDE, LOUD_NAMES, PLAIN_BUILTINS, Imported, imported
from qwed.guards._python.look import OBFUSCATORS, names_module
from qwed.guards._python.option_texts import options_are_plain
from qwed.guards._python.places import Place, Survey, Unplain
from qwed.guards._python.pure import CONSTANTS, FUNCTIONS
from qwed.guards._python.survey import OWN, survey
from qwed.guards._python.tables import BUILTINS, KNOWN, RULES
from qwed.guards._python.text_calls import OPTION_CALLS
from qwed.guards._python.values import MAX_PATHS, REROOTED

MAX_CHARACTERS = 20_000
MAX_BINDINGS = 400
MAX_LOOPS = 50
LOUD_WORDS = RISKY_WORDS.keys() | {"printer"}
_TEXT_LIBRARIES = {path.partition(".")[0] for path in CONSTANTS}

Imports = dict[str, list[Imported]]
"""What imports bind each name to."""


def is_plain(tree: ast.Module, length: int) -> bool:
    """Whether the program only computes, as far as a quick look can tell; no means that the full check decides."""
    if length > MAX_CHARACTERS:
        return False
    try:
        found = survey(tree)
        _annotations(found)
        imports = _imports(found)
    except Unplain:
        return False
    roots = _roots(found, imports)
    return (
        _few(found, imports) and _names(found) and _attributes(found, imports, roots) and _texts(found, imports, roots)
    )


def _imports(found: Survey) -> Imports:
    bound: Imports = {}
    stars = [module for module, name, _ in found.imports if name == "*"]
    for module, name, given in found.imports:
        if name != "*":
            bound.setdefault(given or module.partition(".")[0], []).append(_row(module, name, given))
    if stars:
        _row(stars[0], "", stars[0])
        _from_star(found, stars, bound)
    return bound


def _row(module: str, name: str, given: str) -> Imported:
    row = imported(module, name, given)
    if row is None:
        raise Unplain
    return row


def _from_star(found: Survey, stars: list[str], bound: Imports) -> None:
    """Take every name that nothing else binds for one of the library that gives all of its own."""
    asked = set().union(*(_open_names(place) for place in found.places))
    # A name of the language stays one.
    if len(stars) > 1 or not asked.isdisjoint(BUILTINS):
        raise Unplain
    told = {name for place in found.places for name in place.loaded | place.called if f"{stars[0]}.{name}" in RULES}
    for name in asked | told:
        bound.setdefault(name, []).append(_row(stars[0], name, name))
    found.places[0].defined |= asked


def _annotations(found: Survey) -> None:
    """Take the names and texts of annotations into the survey, which have to be written plainly."""
    if not found.annotations:
        return
    values = set().union(*(place.values for place in found.places))
    values.update(name for name, _ in found.results)
    held = found.fields | values
    for annotation, place in found.annotations:
        pending: list[ast.expr] = [annotation]
        for node in pending:
            if type(node) is ast.Name:
                _asked(node.id, values, place.loaded)
            elif type(node) is ast.Constant:
                _annotation_text(found, node.value)
            elif type(node) is ast.Attribute:
                _asked(node.attr, held, found.attributes)
                pending.append(node.value)
            else:
                pending += _inside(node)


def _asked(name: str, values: set[str], asked: set[str]) -> None:
    if name in values or name[0] == "_":
        raise Unplain
    asked.add(name)


def _annotation_text(found: Survey, value: object) -> None:
    if isinstance(value, str):
        if may_hold_code(value):
            raise Unplain
        found.texts.append(value)


def _inside(node: ast.expr) -> list[ast.expr]:
    if type(node) is ast.Subscript:
        return [node.value, node.slice]
    if type(node) is ast.Tuple or type(node) is ast.List:
        return node.elts
    if type(node) is ast.BinOp and type(node.op) is ast.BitOr:
        return [node.left, node.right]
    raise Unplain


def _few(found: Survey, imports: Imports) -> bool:
    """Whether the full check would follow its names to the end."""
    asked = len(found.attributes) + len(found.methods)
    growing = sum(row.path in KNOWN for rows in imports.values() for row in rows)
    growing += sum(len(PLAIN_BUILTINS & place.loaded) for place in found.places)
    bound = len(found.bindings) + found.parameters
    meanings = len(found.imports) + growing * asked
    return bound <= MAX_BINDINGS and found.loops <= MAX_LOOPS and meanings < MAX_PATHS


def _names(found: Survey) -> bool:
    """Whether every name is bound where it is asked for, and none tells anything by itself."""
    return not any(_open_names(place) for place in found.places)


def _open_names(place: Place) -> set[str]:
    """The names that nothing binds, and those that mean what they mean in any case."""
    loud = (place.loaded & LOUD_NAMES) | (place.called & LOUD_NAMES)
    return (place.unbound() - PLAIN_BUILTINS) | loud


def _attributes(found: Survey, imports: Imports, roots: set[str]) -> bool:
    asked = found.attributes | found.methods
    if not asked.isdisjoint(LOUD_ATTRIBUTES) or not found.words.isdisjoint(LOUD_WORDS):
        return False
    if any(not asked.isdisjoint(LOUD_BESIDE.get(root, ())) for root in roots):
        return False
    return not found.own or _own(found, imports, asked)


def _roots(found: Survey, imports: Imports) -> set[str]:
    """The libraries that are used, by every name they have."""
    named = {row.root for rows in imports.values() for row in rows}
    return named.union(module.partition(".")[0] for module, _, _ in found.imports)


def _own(found: Survey, imports: Imports, asked: set[str]) -> bool:
    """Whether `self` is never anything but the object itself, so that its private attributes are the program's."""
    if any(name.lstrip("_") in REROOTED for name in asked):
        return False
    bound = found.words.union(imports, *(place.values for place in found.places))
    return bound.isdisjoint(OWN)


def _texts(found: Survey, imports: Imports, roots: set[str]) -> bool:
    if any(text in INNER or names_module(text) or reaching_format(text) for text in found.texts):
        return False
    if "z3" in roots and not _options(found, imports):
        return False
    return "sympy" not in roots or _formulas(found, imports, roots)


def _options(found: Survey, imports: Imports) -> bool:
    taking = [name for name, rows in imports.items() if any(row.path in OPTION_CALLS for row in rows)]
    return options_are_plain(found, frozenset(taking))


def _formulas(found: Survey, imports: Imports, roots: set[str]) -> bool:
    called = found.methods.union(*(place.called for place in found.places))
    paths = {name: {row.path for row in rows} for name, rows in imports.items()}
    last = {path.rpartition(".")[2] for of in paths.values() for path in of}
    if "lambdify" in called | found.attributes | last:
        return False
    if (
        not called.isdisjoint(OBFUSCATORS)
        or not roots.isdisjoint(_TEXT_LIBRARIES)
        or calls_what_it_is_given(found, paths)
    ):
        return False
    own = set().union(*(place.values for place in found.places))
    folded = {name for name, of in paths.items() if not of.isdisjoint(FUNCTIONS)}
    sympy = frozenset(name for name, rows in imports.items() if any(row.root == "sympy" for row in rows))
    return formulas_are_plain(found, Names(frozenset(imports.keys() - own - folded), sympy, frozenset(own)))
