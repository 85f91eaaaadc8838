"""Calls whose arguments decide what they do."""

import ast
import re

from qwed.guards._python import file_calls as files
from qwed.guards._python import text_calls
from qwed.guards._python.attributes import INNER, WALKS
from qwed.guards._python.choices import UNKNOWN
from qwed.guards._python.file_calls import Handler, spread, word_of
from qwed.guards._python.look import ENVIRONS, Look, lists_names
from qwed.guards._python.report import rule_of
from qwed.guards._python.scopes import Scope
from qwed.guards._python.tables import words
from qwed.guards._python.values import canonical
from qwed.guards.code_words import Danger
from qwed.words import EffectKind

_NAMESPACES = frozenset({"globals", "locals", "vars"})
_OWN_MODULE = words("__name__ __package__ __module__")
_PLAIN_CODECS = re.compile(
    r"(?i)(?:utf|ascii|us-ascii|latin|iso|cp|windows|big5|gb|euc|shift|koi|mac|punycode|idna)[\w-]*"
)


def only_looked_at(look: Look, node: ast.expr) -> None:
    """`name in globals()` and `name in sys.modules` answer yes or no."""
    here = node.func if isinstance(node, ast.Call) and not node.args else node
    if ast.unparse(here) in ("globals", "locals", "vars", "sys.modules"):
        look.done.update({id(here), id(node)})
        _close(look, here)


def _close(look: Look, node: ast.expr) -> None:
    while isinstance(node, ast.Attribute):
        look.done.add(id(node))
        node = node.value
    look.done.add(id(node))


def looks_up(look: Look, node: ast.Subscript, scope: Scope) -> None:
    """`globals()["name"]` is that name, and `sys.modules[__name__]` the program itself."""
    held = node.value
    if isinstance(held, ast.Attribute) and "sys.modules" in look.values.paths(held, scope):
        if ast.unparse(node.slice).rpartition(".")[2] in _OWN_MODULE:
            _close(look, held)
        return
    call = isinstance(held, ast.Call) and not held.args and isinstance(node.ctx, ast.Load)
    if not call or not isinstance(held, ast.Call) or not isinstance(held.func, ast.Name):
        return
    found = look.folder.possible(node.slice, scope)
    if look.values.named(held.func.id, scope) & _NAMESPACES and all(_plain(text) for text in found):
        look.done.update({id(held), id(held.func)})
        for text in found:
            for path in look.values.named(text, look.program.module):
                look.renamed.discard(id(node))
                look.use(path, node, scope)


def names_variable(look: Look, node: ast.Subscript, scope: Scope) -> None:
    """`os.environ["NAME"]` is that variable, not all of them."""
    held = node.value
    if not isinstance(held, ast.Name | ast.Attribute):
        return
    if isinstance(held, ast.Name) and look.values.assumed(held.id, scope):
        return
    paths = look.values.paths(held, scope)
    if paths and paths <= ENVIRONS:
        _close(look, held)
        look.report.effect(EffectKind.SECRET, look.target(node.slice, scope) or min(paths), node.lineno)


def _plain(text: object) -> bool:
    return isinstance(text, str) and not (text.startswith("__") and text.endswith("__"))


def _namespace(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """A namespace as a value: the module's own holds everything, a function's only what was judged already."""
    if id(node) in look.done or id(node.func) in look.done:
        return
    if node.args:
        if look.foreign(node.args[0], scope):
            look.report.danger(Danger.REFLECT, f"{path}()", node.lineno)
        return
    if path == "globals" or not _in_function(scope):
        look.report.danger(Danger.REFLECT, path if path != "vars" else "vars()", node.lineno)


def _in_function(scope: Scope) -> bool:
    here: Scope | None = scope
    while here is not None and here.kind != "function":
        here = here.parent
    return here is not None


def spelled(look: Look, node: ast.Call, scope: Scope) -> None:
    """`object.__setattr__(self, "x", 1)` and the like, where the attribute is no inner one."""
    func = node.func
    assert isinstance(func, ast.Attribute)  # noqa: S101 - the caller says so
    on_super = isinstance(func.value, ast.Call) and "super" in look.values.paths(func.value.func, scope)
    on_object = "object" in look.values.paths(func.value, scope) or func.value.__class__ is ast.Name
    unbound = not on_super and len(node.args) > 1 + (func.attr == "__setattr__")
    names = node.args[unbound : unbound + 1]
    owner = node.args[0] if unbound and node.args else func.value
    if not names or not (on_super or on_object) or (not on_super and look.foreign(owner, scope)):
        return
    found = look.folder.possible(names[0], scope)
    if not any(text in INNER or text in WALKS for text in found if isinstance(text, str)):
        look.spelled.add(id(func))
        if UNKNOWN in found:
            look.computed[node.lineno] = func.attr


def _reflect(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """getattr, setattr and delattr: fine with a name that is no inner one."""
    if len(node.args) < 2 or any(isinstance(argument, ast.Starred) for argument in node.args):
        look.report.danger(Danger.REFLECT, f"{path} with a computed name", node.lineno)
        return
    base, name = node.args[:2]
    look.rename(base)
    bases = look.values.paths(base, scope)
    found = look.folder.possible(name, scope)
    for text in sorted({text for text in found if isinstance(text, str)}):
        look.attribute_name(text, base, scope, node.lineno)
        if text in _STEPS and not isinstance(name, ast.Constant):
            look.report.danger(Danger.REFLECT, text, node.lineno)
        for each in bases:
            look.use(canonical(f"{each}.{text}"), node, scope)
    if UNKNOWN in found:
        _computed(look, node, name, scope, f"{path} with a computed name")


def _kind(look: Look, node: ast.Call, scope: Scope, _path: str) -> None:
    """`type(value)` is its `__class__`: a danger where that loads modules by their names, and else only shown."""
    for each in sorted(look.values.paths(node.args[0], scope)) if len(node.args) == 1 else ():
        found = rule_of(canonical(f"{each}.__class__"))
        if found.danger is not None:
            look.report.danger(found.danger, f"{each}.__class__", node.lineno)


_STEPS = WALKS - {"__dict__", "__func__"}
"""Attributes that nobody spells in a roundabout way without a reason."""


def _computed(look: Look, node: ast.Call, name: ast.expr, scope: Scope, what: str) -> None:
    """A name nobody can tell: a way in on a module, or where the text is hidden."""
    base = node.args[0]
    modules = any(look.is_module(each) for each in look.values.paths(base, scope))
    prefix = look.folder.begins_plainly(name, scope)
    blind = modules and not _constants_only(look, base, scope, name)
    if blind or (not prefix and look.hidden(name, scope)):
        look.report.danger(Danger.REFLECT, what, node.lineno)
    elif not prefix:
        look.computed[node.lineno] = what.partition(" ")[0]


def _constants_only(look: Look, base: ast.expr, scope: Scope, name: ast.expr) -> bool:
    """`getattr(logging, level.upper())` reaches constants, `getattr(hashlib, name)` functions on data."""
    shouted = isinstance(name, ast.Call) and isinstance(name.func, ast.Attribute) and name.func.attr == "upper"
    known = look.values.paths(base, scope) <= _DATA_MODULES
    return known and not look.hidden(name, scope) and (shouted or not look.says(lists_names))


_DATA_MODULES = words("logging hashlib math operator torch.nn torch.optim numpy numpy.random torch random")


def _look(look: Look, node: ast.Call, _scope: Scope, _path: str) -> None:
    """hasattr answers yes or no, dir gives names."""
    look.rename(node.args[0] if node.args else None)


def _fetch(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """operator.attrgetter and methodcaller, and a field of a format: attributes named by text."""
    for argument in node.args if path.endswith("attrgetter") else node.args[:1]:
        found = look.folder.possible(argument, scope)
        for text in sorted({text for text in found if isinstance(text, str)}):
            for part in text.split("."):
                if part in INNER or part in WALKS:
                    look.report.danger(Danger.REFLECT, part, node.lineno)
        if UNKNOWN in found and (look.hidden(argument, scope) or isinstance(argument, ast.Starred)):
            look.report.danger(Danger.REFLECT, "attribute with a computed name", node.lineno)
        elif UNKNOWN in found:
            look.computed[node.lineno] = path


def _reduce(look: Look, node: ast.Call, scope: Scope, _path: str) -> None:
    """`functools.reduce(getattr, names, value)` walks attributes."""
    if not node.args or "getattr" not in look.values.paths(node.args[0], scope) or len(node.args) < 3:
        return
    names, base = node.args[1:3]
    for items in look.folder.possible(names, scope):
        for text in items if isinstance(items, tuple) else (items,):
            if isinstance(text, str):
                look.attribute_name(text, base, scope, node.lineno)
            else:
                look.computed[node.lineno] = "getattr"
    if not look.foreign(base, scope) and not look.hidden(names, scope):
        look.done.add(id(node.args[0]))


def _yaml(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    loader = word_of(node, "Loader", 1)
    paths = look.values.paths(loader, scope) if loader is not None else frozenset()
    if not paths or not paths <= {"yaml.SafeLoader", "yaml.CSafeLoader", "yaml.BaseLoader"}:
        look.report.danger(Danger.DESERIALISE, path, node.lineno)


def _recodes(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """Character encodings are data; anything else turns one text into another."""
    encoding = word_of(node, "encoding", 1)
    found = look.folder.possible(encoding, scope) if encoding is not None else ("utf-8",)
    if not all(isinstance(text, str) and _PLAIN_CODECS.fullmatch(text) for text in found):
        look.report.danger(Danger.OBFUSCATE, path, node.lineno)


def _members(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    """The members of a module are everything it has imported."""
    if any(look.is_module(each) for argument in node.args[:1] for each in look.values.paths(argument, scope)):
        look.report.danger(Danger.REFLECT, path, node.lineno)


def _runs_tests(look: Look, node: ast.Call, _scope: Scope, path: str) -> None:
    """`unittest.main()` runs the program's own tests; a module or tests named by text may be anybody's."""
    if node.args or spread(node) or any(word.arg in ("module", "defaultTest", "argv") for word in node.keywords):
        look.report.danger(Danger.DYNAMIC, path, node.lineno)


def _with_arguments(danger: Danger) -> Handler:
    """A call that asks for nothing but facts unless it is given something."""

    def judge(look: Look, node: ast.Call, _scope: Scope, path: str) -> None:
        if node.args or node.keywords:
            look.report.danger(danger, path, node.lineno)

    return judge


def _unsafe_yaml(look: Look, node: ast.Call, scope: Scope, path: str) -> None:
    kind = word_of(node, "typ", 0)
    found = look.folder.possible(kind, scope) if kind is not None else ("rt",)
    if spread(node) or not all(text in ("rt", "safe", "pure", ("rt",), ("safe",)) for text in found):
        look.report.danger(Danger.DESERIALISE, path, node.lineno)


def risky_words(look: Look, node: ast.Call) -> None:
    """Options that mean a danger whatever function they are given to."""
    for word in node.keywords:
        danger = RISKY_WORDS.get(word.arg or "")
        if danger is not None and isinstance(word.value, ast.Constant) and word.value.value is True:
            look.report.danger(danger, f"{word.arg}=True", node.lineno)


RISKY_WORDS = {"shell": Danger.PROCESS, "trust_remote_code": Danger.DYNAMIC}

BY_NAME: dict[str, Handler] = {
    **files.BY_NAME,
    **text_calls.BY_NAME,
    **dict.fromkeys(("getattr", "setattr", "delattr", "inspect.getattr_static"), _reflect),
    **dict.fromkeys(("builtins.getattr", "builtins.setattr", "builtins.delattr"), _reflect),
    **dict.fromkeys(("hasattr", "dir"), _look),
    "type": _kind,
    **dict.fromkeys(_NAMESPACES, _namespace),
    **dict.fromkeys(("yaml.load", "yaml.load_all"), _yaml),
    **dict.fromkeys(("codecs.decode", "codecs.encode", "codecs.getdecoder", "codecs.getencoder"), _recodes),
    **dict.fromkeys(("inspect.getmembers", "inspect.getmembers_static"), _members),
    "unittest.main": _runs_tests,
    "xml.sax.make_parser": _with_arguments(Danger.DYNAMIC),
    "platform.architecture": _with_arguments(Danger.PROCESS),
    "ruamel.yaml.YAML": _unsafe_yaml,
    "operator.attrgetter": _fetch,
    "operator.methodcaller": _fetch,
    "string.Formatter().get_field": _fetch,
    "functools.reduce": _reduce,
}
