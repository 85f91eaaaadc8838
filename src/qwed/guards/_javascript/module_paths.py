"""Library names: the package of an import, the path of a property, and the rule for a path."""

from qwed.guards._javascript.constant_folding import FUNCTIONS
from qwed.guards._javascript.packages import TEMPLATES, UNDECLARED
from qwed.guards._javascript.rules import HARMLESS, UNKNOWN, Rule, words
from qwed.guards._javascript.tables import (
    GLOBAL_NAMES,
    GLOBAL_OBJECTS,
    MODULE_ALIASES,
    NODE_MODULES,
    OBJECTS,
    PACKAGES,
    RULES,
)

UNKNOWN_PROPERTY = "?[]"
"""Path of a property of a plain value by an unknown name, which may be its constructor."""
UNKNOWN_MEMBER = "?()[]"
"""Path of a property of an unknown value by an unknown name: it may be `Function`, and its result code."""
UNKNOWN_FUNCTION = "?[][]"
"""Path of a property of a function, or of an unknown property, by an unknown name: it may be `Function`."""
UNKNOWN_PROPERTIES = (UNKNOWN_PROPERTY, UNKNOWN_MEMBER, UNKNOWN_FUNCTION)
UNKNOWN_PACKAGE = "package "
"""Prefix of the path of an unknown package."""

_PARENTS = frozenset(name.rpartition(".")[0] for name in RULES if "." in name)
_SCHEMES = ("node:", "npm:", "jsr:", "bun:")
_ASSETS = (
    ".css .scss .sass .less .styl .svg .png .jpg .jpeg .gif .webp .avif .ico .woff .woff2 .ttf .eot .mp3 .mp4 .md "
    ".txt .html .glsl .graphql .gql"
)
_DATA = tuple(_ASSETS.split())
_REMOTE = ("http:", "https:", "data:", "blob:", "file:", "javascript:", "//")
PASS_THROUGH = words("""
util.promisify util.callbackify Promise.resolve Promise.all Object.freeze Object.seal Object.create structuredClone
Object.assign Object.fromEntries Array.from Object Proxy Promise.race Promise.any Object.setPrototypeOf lodash.clone URL
""")
"""Functions that return their arguments."""
PROPERTY_LISTERS = words("Object.values Object.entries Object.getOwnPropertyDescriptors")
"""Functions that return the properties of their argument."""
PROTOTYPES = words("Object.getPrototypeOf Reflect.getPrototypeOf")
DEFINING = words("""
Object.defineProperty Object.defineProperties Object.assign Reflect.set Reflect.defineProperty Object.setPrototypeOf
lodash.set lodash.merge lodash.defaultsDeep
""")
"""Functions that add properties to their first argument."""
_SPECIAL = words("""
setTimeout setInterval setImmediate document.createElement document location location.href Reflect.get
Function.prototype Object.prototype String Number Boolean Array Object this ?.constructor dompurify xss sanitize-html
escape he encodeURIComponent url.fileURLToPath Reflect.construct Reflect.apply document.URL document.documentURI
document.referrer document.baseURI Image Image() Object.getOwnPropertyDescriptor Reflect.getOwnPropertyDescriptor
Audio setTimeout.call setTimeout.apply setTimeout.bind setInterval.call setInterval.apply setInterval.bind
setImmediate.call setImmediate.apply setImmediate.bind Object.getOwnPropertyNames Object.getOwnPropertySymbols
Reflect.ownKeys
""")
_FOLLOWED = PASS_THROUGH | PROPERTY_LISTERS | PROTOTYPES | DEFINING | _SPECIAL | FUNCTIONS.keys() | TEMPLATES
_ABOVE = frozenset(name.rpartition(".")[0] for name in _FOLLOWED)
_SAME = words("default promises posix win32 strict webcrypto")
_LOADERS = ("module", "require.main", "process.mainModule")


def is_remote(module: str) -> bool:
    """Return True if the code would come from a URL and not from a package."""
    return module.strip().lower().startswith(_REMOTE)


def is_asset(module: str) -> bool:
    """Return True if it is an image, a style sheet or similar, which a bundler includes as data."""
    return module.lower().partition("?")[0].endswith(_DATA)


def module_path(module: str) -> str:
    """Return the library name of the package `module`."""
    name = module
    for scheme in _SCHEMES:
        name = name.removeprefix(scheme)
    if module.startswith("bun:") or name == "bun":
        return {"ffi": "Bun.FFI", "sqlite": "sqlite", "test": "test"}.get(name, "Bun")
    parts = name.split("/")
    size = 2 if name.startswith("@") else 1
    root = "/".join(parts[:size])
    for candidate in (name, root):
        aliased = MODULE_ALIASES.get(candidate, candidate).replace(".", "_")
        if aliased in PACKAGES and not candidate.startswith("."):
            rest = [part for part in parts[size:] if candidate == root and part.isidentifier()]
            return ".".join([aliased, *(part for part in rest if f"{aliased}.{part}" in RULES)])
    return parts[0] if parts[0] in PACKAGES and name.startswith("@") else UNKNOWN_PACKAGE + module


def is_global(name: str) -> bool:
    """Return True if an undeclared name is a known global."""
    # The grammar parses `await (f)(x)` as a call of `await`.
    return (
        name == "await" or name in GLOBAL_OBJECTS or name in GLOBAL_NAMES or name in NODE_MODULES or name in UNDECLARED
    )


def is_followed(path: str) -> bool:
    """Return True if uses of `path` have to be followed."""
    return path in _FOLLOWED or path in _ABOVE or path in _PARENTS or rule_of(path) != HARMLESS


def global_path(name: str) -> str | None:
    """Return the library name that an undeclared identifier stands for, or None."""
    if name in GLOBAL_OBJECTS:
        return "globalThis"
    path = name if name in GLOBAL_NAMES or name in NODE_MODULES else UNDECLARED.get(name, "")
    return path if path and is_followed(path) else None


def property_path(path: str, key: str) -> str | None:
    """Return the path of property `key` of `path`; None if it is an ordinary value."""
    if path in UNKNOWN_PROPERTIES:
        return _property_of_unknown(path, key)
    if path == "globalThis":
        return _global_property(key)
    if key == "require" and path.startswith(_LOADERS):
        return "require"
    if key == "constructor":
        return _constructor(path)
    if path == "document" and key in ("defaultView", "location"):
        return "globalThis" if key == "defaultView" else "location"
    if key in _SAME and (path in PACKAGES or path.startswith(UNKNOWN_PACKAGE)):
        return path
    if key in ("then", "catch", "finally", "__esModule") and path in PACKAGES:
        return None
    return _extend_path(path, key)


def _global_property(key: str) -> str | None:
    if key.isdigit():
        return "globalThis"
    if key in GLOBAL_OBJECTS or key in GLOBAL_NAMES:
        return global_path(key)
    return "globalThis.*" if key == "*" else None


def _property_of_unknown(path: str, key: str) -> str | None:
    if key == "constructor":
        return "Function" if path == UNKNOWN_FUNCTION else "?.constructor"
    # A list of such properties counts as each of them.
    return path if path == UNKNOWN_FUNCTION and (key in _CALLING or key.isdigit() or key == "*") else None


def _extend_path(path: str, key: str) -> str | None:
    longer = f"{path}.{key}"
    if longer in RULES or longer in _PARENTS:
        return longer
    if key in _CALLING and (path == "require" or rule_of(path) != HARMLESS):
        return longer
    if path == "Function":
        return None
    if rule_of(longer) != HARMLESS:
        # Only a name with rules of its own has properties; a property of any other counts as the name itself.
        return longer if path in PACKAGES or path in _PARENTS else path
    return longer if is_followed(longer) else None


_CALLING = words("call apply bind")


def _constructor(path: str) -> str:
    if f"{path}.constructor" in RULES:
        return f"{path}.constructor"
    if path == "?.constructor":
        return "Function"
    if path in _LOADERS:
        return "module.constructor"
    if path in ("this", "globalThis.*"):
        return "?.constructor"
    if path.endswith(".prototype"):
        return path.removesuffix(".prototype")
    return "Object" if path in OBJECTS else "Function"


def rule_of(path: str) -> Rule:
    """Return the rule of the longest prefix of `path` that has one, otherwise unknown."""
    prefix = path
    while prefix:
        if prefix in RULES:
            return RULES[prefix]
        prefix = prefix.rpartition(".")[0]
    return UNKNOWN


def is_namespace(path: str) -> bool:
    """Return True if an alias of `path` has no effect by itself: only its properties count."""
    return path in _PARENTS or path in PACKAGES or path.startswith(UNKNOWN_PACKAGE) or path in ("Function", "require")


def display_path(path: str) -> str:
    """Return the path in the form that readers know."""
    return path.removeprefix(UNKNOWN_PACKAGE).replace("?.constructor()", "constructor").replace("_js", ".js")
