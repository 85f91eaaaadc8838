"""Rules for the names of JavaScript itself, Node.js, Deno, Bun and the browser.

The longest dotted prefix with a rule applies to a name. A name that is called is written `name()`.
"""

from qwed.guards._javascript.packages import PACKAGE_RULES
from qwed.guards._javascript.rules import Rule, read_rule_file, words
from qwed.model.data_files import read_mapping, read_table

_DENO: dict[str, Rule] = read_rule_file("deno_and_bun.txt")
_GLOBALS: dict[str, Rule] = read_rule_file("globals.txt")
_NODE: dict[str, Rule] = read_rule_file("node.txt")

RULES: dict[str, Rule] = {**PACKAGE_RULES, **_DENO, **_NODE, **_GLOBALS}

NODE_MODULES = words(read_table(__file__, "node_modules.txt"))
PACKAGES = NODE_MODULES | {name.partition(".")[0] for name in PACKAGE_RULES}
GLOBAL_NAMES = frozenset(name.partition(".")[0].removesuffix("()") for name in (*_GLOBALS, *_DENO)) | {"process"}
"""Names that need no import."""

GLOBAL_OBJECTS = words("globalThis window self global top frames parent")
MODULE_ALIASES = read_mapping(__file__, "module_aliases.txt")
OBJECTS = words("globalThis process console Math JSON Reflect Atomics Intl document navigator location module exports")
"""Names of plain objects: their constructor is `Object`; that of any other name is `Function`."""

METHODS: dict[str, Rule] = {
    **read_rule_file("methods.txt"),
    **{
        name.removeprefix("fs."): rule
        for name, rule in _NODE.items()
        if name.startswith("fs.") and name.endswith(("Sync", "readFile", "writeFile", "appendFile", "unlink", "Stream"))
        and rule.effect is not None
    },
}  # fmt: skip
"""Rules for methods of any object: names that nothing else uses."""

HTML_SINKS = words("innerHTML outerHTML srcdoc")
HTML_CALLS = words("insertAdjacentHTML write writeln setHTMLUnsafe parseFromString")
TAINTED = words("location document.URL document.documentURI document.referrer document.cookie document.baseURI")
"""Values that the sender of a link can choose."""
