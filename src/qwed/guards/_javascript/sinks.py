"""Places where text becomes code: timers, elements, addresses, templates, the prototype of everything."""

import re
from collections.abc import Callable

from qwed.guards._javascript.atoms import NOTHING, Const, Part, Value, keys, paths, texts
from qwed.guards._javascript.calls import arguments_of, callee_of
from qwed.guards._javascript.folding import FUNCTIONS
from qwed.guards._javascript.names import DEFINING, rule_of, shown
from qwed.guards._javascript.packages import TEMPLATES
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.tables import HTML_CALLS, HTML_SINKS, TAINTED
from qwed.guards._javascript.tree import Node
from qwed.guards._javascript.values import Values
from qwed.guards.code_words import Danger, Report
from qwed.words import EffectKind

MAX_LOOKED_AT = 300

_ACTIVE_HTML = re.compile(
    r"(?i)<\s*(?:script|iframe|object|embed|base|link|meta)\b|<[^>]*\son\w+\s*=|javascript:|data:text/html|<svg[^>]*\son"
)
_ACTIVE_ADDRESS = re.compile(r"(?i)[\s\x00-\x1f]*(?:javascript|vbscript|data)\s*:")
_ELSEWHERE = re.compile(r"(?i)[a-z][a-z0-9+.-]*:|//|\*")
_TEMPLATE_CODE = re.compile(r"process|require|global|constructor|__proto__|child_process|import|eval|Function")
_STRANGER = re.compile(r"(?i)user_?(?:input|content|html|comment|supplied)|untrusted|unsafe|payload|tainted")
_BARE = words("identifier member_expression subscript_expression await_expression")
_CLEANERS = ("dompurify", "xss", "sanitize-html", "escape", "encodeURIComponent", "he")
_SPOKEN = words("join toString concat replace replaceAll text decode")
_POLLUTED = words("Object.prototype ?.constructor.prototype")


def judge_call(values: Values, report: Report, node: Node) -> None:
    """Judge a call by what it is given."""
    callee = callee_of(node)
    known = paths(callee.value or NOTHING) if callee is not None else []
    for path in known:
        judge = _BY_PATH.get(path)
        if judge is not None:
            judge(report, node, path)
    if callee is None or callee.kind not in ("member_expression", "subscript_expression"):
        return
    target = callee.get("object")
    for name in values.property_names(callee):
        by_name = _BY_NAME.get(name)
        if by_name is not None:
            by_name(report, node, name)
        if name in ("assign", "replace") and target is not None and "location" in paths(target.value or NOTHING):
            _navigates(report, node, arguments_of(node)[:1])


def _timer(report: Report, node: Node, path: str) -> None:
    for argument in arguments_of(node)[:1]:
        if _is_text(argument):
            report.danger(Danger.DYNAMIC, f"{path} with text", node.line)


def _lent_timer(report: Report, node: Node, path: str) -> None:
    """`setTimeout.call(null, text)`; in a list of arguments nobody sees which is text."""
    for argument in arguments_of(node)[1:2]:
        if path.endswith(".apply") or _is_text(argument):
            report.danger(Danger.DYNAMIC, f"{path} with text", node.line)


def _plays(report: Report, node: Node, _path: str) -> None:
    _navigates(report, node, arguments_of(node)[:1])


def _is_text(node: Node) -> bool:
    """Whether a value is, or is put together as, a string."""
    value: Value = node.value or NOTHING
    if any(isinstance(atom, Part) or (isinstance(atom, Const) and isinstance(atom.value, str)) for atom in value):
        return True
    callee = callee_of(node) if node.kind == "call_expression" else None
    if callee is None:
        return node.kind == "template_string"
    last = callee.get("property")
    return any(path in FUNCTIONS for path in paths(callee.value or NOTHING)) or (
        last is not None and last.text in _SPOKEN
    )


def _worker(report: Report, node: Node, path: str) -> None:
    for argument in arguments_of(node)[:1]:
        inner = callee_of(argument) if argument.kind == "call_expression" else None
        last = inner.get("property") if inner is not None else None
        if any(_ACTIVE_ADDRESS.match(text) or "blob:" in text for text in texts(argument.value or NOTHING)) or (
            last is not None and last.text == "createObjectURL"
        ):
            report.danger(Danger.DYNAMIC, f"{path} with text", node.line)


def _opens(report: Report, node: Node, _path: str) -> None:
    for argument in arguments_of(node)[:1]:
        if any(_ACTIVE_ADDRESS.match(text) for text in texts(argument.value or NOTHING)):
            report.danger(Danger.DYNAMIC, "javascript: address", node.line)


def _defines(report: Report, node: Node, path: str) -> None:
    arguments = arguments_of(node)
    for polluted in paths(arguments[0].value or NOTHING) if arguments else ():
        if polluted in _POLLUTED:
            report.danger(Danger.REFLECT, f"{path} on Object.prototype", node.line)


def _describes(report: Report, node: Node, path: str) -> None:
    for argument in arguments_of(node)[1:2]:
        for name in sorted({"constructor", "__proto__"}.intersection(keys(argument.value or NOTHING))):
            report.danger(Danger.REFLECT, f"{path} of {name}", node.line)


def _template(report: Report, node: Node, path: str) -> None:
    for argument in arguments_of(node)[:1]:
        value: Value = argument.value or NOTHING
        if any(_TEMPLATE_CODE.search(text) for text in texts(value)):
            report.danger(Danger.DYNAMIC, path, node.line)
        elif not all(isinstance(atom, Const) for atom in value):
            report.effect(EffectKind.UNRESOLVED, path, node.line)


def _element(report: Report, node: Node, _name: str) -> None:
    for argument in arguments_of(node)[:1]:
        if any(text.lower() in ("script", "object", "embed") for text in texts(argument.value or NOTHING)):
            report.danger(Danger.DYNAMIC, "script element", node.line)


def _attribute(report: Report, node: Node, _name: str) -> None:
    arguments = arguments_of(node)
    if len(arguments) != 2:
        return
    for name in keys(arguments[0].value or NOTHING):
        if name.lower().startswith("on"):
            report.danger(Danger.DYNAMIC, f"{name[:20]} attribute", node.line)
        elif name.lower() == "srcdoc":
            judge_html(report, arguments[1], name)
        elif any(_ACTIVE_ADDRESS.match(text) for text in texts(arguments[1].value or NOTHING)) and name in (
            "href",
            "src",
        ):
            report.danger(Danger.DYNAMIC, "javascript: address", node.line)


def _html(report: Report, node: Node, name: str) -> None:
    callee = callee_of(node)
    target = callee.get("object") if callee is not None else None
    if name in ("write", "writeln") and "document" not in paths(
        target.value or NOTHING if target is not None else NOTHING
    ):
        return
    for argument in arguments_of(node)[-1:] if name == "insertAdjacentHTML" else arguments_of(node)[:1]:
        judge_html(report, argument, name)


def _fragment(report: Report, node: Node, name: str) -> None:
    """`$(element).html(text)`; the same names do other things elsewhere, so only active text counts."""
    for argument in arguments_of(node)[:1]:
        if any(_ACTIVE_HTML.search(text) for text in texts(argument.value or NOTHING)):
            report.danger(Danger.DYNAMIC, f"{name} with code", node.line)


def _submits(report: Report, node: Node, _name: str) -> None:
    """`document.forms[0].submit()`; other things are submitted too, so only a form of the page counts."""
    root = callee_of(node)
    while root is not None and "document" not in paths(root.value or NOTHING):
        root = callee_of(root) if root.kind == "call_expression" else root.get("object")
    if root is not None:
        report.effect(EffectKind.NETWORK, "submit", node.line)


def judge_html(report: Report, node: Node, name: str) -> None:
    """Judge text that becomes elements of a page."""
    value: Value = node.value or NOTHING
    if any(_ACTIVE_HTML.search(text) for text in texts(value)) or _comes_from_outside(node):
        report.danger(Danger.DYNAMIC, f"{name} with code", node.line)
    elif node.kind in _BARE and not all(isinstance(atom, Const) for atom in value):
        report.effect(EffectKind.UNRESOLVED, name, node.line)


def _comes_from_outside(node: Node) -> bool:
    pending = [node]
    for here in pending:
        callee = callee_of(here) if here.kind == "call_expression" else None
        names = paths(callee.value or NOTHING) if callee is not None else []
        if any(name.startswith(_CLEANERS) for name in names) or len(pending) > MAX_LOOKED_AT:
            continue
        if any(path.startswith(tuple(TAINTED)) for path in paths(here.value or NOTHING)):
            return True
        if here.kind in ("identifier", "property_identifier") and _STRANGER.search(here.text):
            return True
        pending.extend(here.children)
    return False


def _navigates(report: Report, node: Node, addresses: list[Node]) -> None:
    """Another page: harmless where it is written out and on this site."""
    for address in addresses:
        value: Value = address.value or NOTHING
        known = texts(value)
        if any(_ACTIVE_ADDRESS.match(text) for text in known):
            report.danger(Danger.DYNAMIC, "javascript: address", node.line)
        elif not known or any(_ELSEWHERE.match(text) for text in known):
            report.effect(EffectKind.NETWORK, " | ".join(known[:2]) or "location", node.line)


def judge_assignment(values: Values, report: Report, node: Node) -> None:
    """Judge what is written to a property that acts on it."""
    left, right = node.get("left"), node.get("right")
    if left is None or right is None:
        return
    target = left.get("object")
    owners = paths(target.value or NOTHING) if target is not None else []
    if any(owner in _POLLUTED for owner in owners):
        report.danger(Danger.REFLECT, "Object.prototype", node.line)
    for owner in owners:
        if rule_of(owner).danger is Danger.REFLECT:
            report.danger(Danger.REFLECT, shown(owner), node.line)
    names = values.property_names(left) if target is not None else []
    if "location" in paths(left.value or NOTHING) or ("location" in owners and "href" in names):
        _navigates(report, node, [right])
    for name in names:
        _judge_property(report, name, right)


def _judge_property(report: Report, name: str, right: Node) -> None:
    if name in HTML_SINKS:
        judge_html(report, right, name)
    elif name in ("src", "href", "action") and any(
        _ACTIVE_ADDRESS.match(text) for text in texts(right.value or NOTHING)
    ):
        if not any(text.lower().startswith("data:image") for text in texts(right.value or NOTHING)):
            report.danger(Danger.DYNAMIC, "javascript: address", right.line)
    elif name == "action" and any(_ELSEWHERE.match(text) for text in texts(right.value or NOTHING)):
        report.effect(EffectKind.NETWORK, texts(right.value or NOTHING)[0], right.line)
    elif re.fullmatch("on[a-z]+", name) and _is_text(right):
        report.danger(Danger.DYNAMIC, f"{name} with text", right.line)


def judge_attribute(report: Report, node: Node) -> None:
    """Judge an attribute of a JSX element."""
    value = node.children[-1] if len(node.children) > 1 else None
    name = node.children[0].text if node.children else ""
    known = texts(value.value or NOTHING) if value is not None else []
    if name in ("href", "src", "action", "formAction", "xlinkHref") and any(map(_ACTIVE_ADDRESS.match, known)):
        if not any(text.lower().startswith("data:image") for text in known):
            report.danger(Danger.DYNAMIC, "javascript: address", node.line)
    elif name == "srcDoc" and value is not None:
        judge_html(report, value, name)


_TIMERS = ("setTimeout", "setInterval", "setImmediate")
_Judge = Callable[[Report, Node, str], None]
_BY_PATH: dict[str, _Judge] = {
    **dict.fromkeys(_TIMERS, _timer),
    **dict.fromkeys((f"{name}.{way}" for name in _TIMERS for way in ("call", "apply", "bind")), _lent_timer),
    "Audio": _plays,
    **dict.fromkeys(("Worker", "SharedWorker"), _worker),
    **dict.fromkeys(("open",), _opens),
    **dict.fromkeys(DEFINING, _defines),
    **dict.fromkeys(("Object.getOwnPropertyDescriptor", "Reflect.getOwnPropertyDescriptor"), _describes),
    **dict.fromkeys(TEMPLATES, _template),
}
_BY_NAME: dict[str, _Judge] = {
    "createElement": _element,
    "setAttribute": _attribute,
    "submit": _submits,
    **dict.fromkeys(("html", "append", "prepend", "after", "before", "replaceWith"), _fragment),
    **dict.fromkeys(HTML_CALLS - {"parseFromString"}, _html),
}
