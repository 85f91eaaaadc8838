"""Sinks where text becomes code: timers, elements, URLs, templates, the global prototype."""

import re
from collections.abc import Callable

from qwed.guards._javascript.abstract_values import NO_VALUE, Const, PartialText, Value, keys, paths, texts
from qwed.guards._javascript.calls import arguments_of, callee_of
from qwed.guards._javascript.constant_folding import FUNCTIONS
from qwed.guards._javascript.fixpoint import ValueResolver
from qwed.guards._javascript.module_paths import DEFINING, display_path, rule_of
from qwed.guards._javascript.packages import TEMPLATES
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.syntax_tree import SyntaxNode
from qwed.guards._javascript.tables import HTML_CALLS, HTML_SINKS, TAINTED
from qwed.guards.code_findings import CodeReport, ViolationKind
from qwed.model import EffectKind

MAX_TAINT_NODES = 300

_ACTIVE_HTML = re.compile(
    r"(?i)<\s*(?:script|iframe|object|embed|base|link|meta)\b|<[^>]*\son\w+\s*=|javascript:|data:text/html|<svg[^>]*\son"
)
_ACTIVE_ADDRESS = re.compile(r"(?i)[\s\x00-\x1f]*(?:javascript|vbscript|data)\s*:")
_EXTERNAL_ADDRESS = re.compile(r"(?i)[a-z][a-z0-9+.-]*:|//|\*")
_TEMPLATE_CODE = re.compile(r"process|require|global|constructor|__proto__|child_process|import|eval|Function")
_UNTRUSTED_NAME = re.compile(r"(?i)user_?(?:input|content|html|comment|supplied)|untrusted|unsafe|payload|tainted")
_BARE = words("identifier member_expression subscript_expression await_expression")
_SANITIZERS = ("dompurify", "xss", "sanitize-html", "escape", "encodeURIComponent", "he")
_TEXT_METHODS = words("join toString concat replace replaceAll text decode")
_POLLUTED = words("Object.prototype ?.constructor.prototype")


def check_call(values: ValueResolver, report: CodeReport, node: SyntaxNode) -> None:
    """Check the arguments of a call."""
    callee = callee_of(node)
    callee_paths = paths(callee.value or NO_VALUE) if callee is not None else []
    for path in callee_paths:
        check = _BY_PATH.get(path)
        if check is not None:
            check(report, node, path)
    if callee is None or callee.kind not in ("member_expression", "subscript_expression"):
        return
    target = callee.get("object")
    for name in values.property_names(callee):
        by_name = _BY_NAME.get(name)
        if by_name is not None:
            by_name(report, node, name)
        if name in ("assign", "replace") and target is not None and "location" in paths(target.value or NO_VALUE):
            _check_navigation(report, node, arguments_of(node)[:1])


def _timer(report: CodeReport, node: SyntaxNode, path: str) -> None:
    for argument in arguments_of(node)[:1]:
        if _is_text(argument):
            report.add_violation(ViolationKind.DYNAMIC, f"{path} with text", node.line)


def _bound_timer(report: CodeReport, node: SyntaxNode, path: str) -> None:
    """Report `setTimeout.call(null, text)`; with `apply` it is not visible which argument is text."""
    for argument in arguments_of(node)[1:2]:
        if path.endswith(".apply") or _is_text(argument):
            report.add_violation(ViolationKind.DYNAMIC, f"{path} with text", node.line)


def _audio(report: CodeReport, node: SyntaxNode, _path: str) -> None:
    _check_navigation(report, node, arguments_of(node)[:1])


def _is_text(node: SyntaxNode) -> bool:
    """Return True if a value is a string, or is composed as one."""
    value: Value = node.value or NO_VALUE
    if any(
        isinstance(atom, PartialText) or (isinstance(atom, Const) and isinstance(atom.value, str)) for atom in value
    ):
        return True
    callee = callee_of(node) if node.kind == "call_expression" else None
    if callee is None:
        return node.kind == "template_string"
    last = callee.get("property")
    return any(path in FUNCTIONS for path in paths(callee.value or NO_VALUE)) or (
        last is not None and last.text in _TEXT_METHODS
    )


def _worker(report: CodeReport, node: SyntaxNode, path: str) -> None:
    for argument in arguments_of(node)[:1]:
        inner = callee_of(argument) if argument.kind == "call_expression" else None
        last = inner.get("property") if inner is not None else None
        if any(_ACTIVE_ADDRESS.match(text) or "blob:" in text for text in texts(argument.value or NO_VALUE)) or (
            last is not None and last.text == "createObjectURL"
        ):
            report.add_violation(ViolationKind.DYNAMIC, f"{path} with text", node.line)


def _open_window(report: CodeReport, node: SyntaxNode, _path: str) -> None:
    for argument in arguments_of(node)[:1]:
        if any(_ACTIVE_ADDRESS.match(text) for text in texts(argument.value or NO_VALUE)):
            report.add_violation(ViolationKind.DYNAMIC, "javascript: address", node.line)


def _define_property(report: CodeReport, node: SyntaxNode, path: str) -> None:
    arguments = arguments_of(node)
    for polluted in paths(arguments[0].value or NO_VALUE) if arguments else ():
        if polluted in _POLLUTED:
            report.add_violation(ViolationKind.REFLECT, f"{path} on Object.prototype", node.line)


def _descriptor(report: CodeReport, node: SyntaxNode, path: str) -> None:
    for argument in arguments_of(node)[1:2]:
        for name in sorted({"constructor", "__proto__"}.intersection(keys(argument.value or NO_VALUE))):
            report.add_violation(ViolationKind.REFLECT, f"{path} of {name}", node.line)


def _template(report: CodeReport, node: SyntaxNode, path: str) -> None:
    for argument in arguments_of(node)[:1]:
        value: Value = argument.value or NO_VALUE
        if any(_TEMPLATE_CODE.search(text) for text in texts(value)):
            report.add_violation(ViolationKind.DYNAMIC, path, node.line)
        elif not all(isinstance(atom, Const) for atom in value):
            report.add_effect(EffectKind.UNRESOLVED, path, node.line)


def _element(report: CodeReport, node: SyntaxNode, _name: str) -> None:
    for argument in arguments_of(node)[:1]:
        if any(text.lower() in ("script", "object", "embed") for text in texts(argument.value or NO_VALUE)):
            report.add_violation(ViolationKind.DYNAMIC, "script element", node.line)


def _attribute(report: CodeReport, node: SyntaxNode, _name: str) -> None:
    arguments = arguments_of(node)
    if len(arguments) != 2:
        return
    for name in keys(arguments[0].value or NO_VALUE):
        if name.lower().startswith("on"):
            report.add_violation(ViolationKind.DYNAMIC, f"{name[:20]} attribute", node.line)
        elif name.lower() == "srcdoc":
            check_html(report, arguments[1], name)
        elif any(_ACTIVE_ADDRESS.match(text) for text in texts(arguments[1].value or NO_VALUE)) and name in (
            "href",
            "src",
        ):
            report.add_violation(ViolationKind.DYNAMIC, "javascript: address", node.line)


def _html(report: CodeReport, node: SyntaxNode, name: str) -> None:
    callee = callee_of(node)
    target = callee.get("object") if callee is not None else None
    if name in ("write", "writeln") and "document" not in paths(
        target.value or NO_VALUE if target is not None else NO_VALUE
    ):
        return
    for argument in arguments_of(node)[-1:] if name == "insertAdjacentHTML" else arguments_of(node)[:1]:
        check_html(report, argument, name)


def _fragment(report: CodeReport, node: SyntaxNode, name: str) -> None:
    """Report `$(element).html(text)` with active content only, because other libraries use the same names."""
    for argument in arguments_of(node)[:1]:
        if any(_ACTIVE_HTML.search(text) for text in texts(argument.value or NO_VALUE)):
            report.add_violation(ViolationKind.DYNAMIC, f"{name} with code", node.line)


def _submit_form(report: CodeReport, node: SyntaxNode, _name: str) -> None:
    """Report `document.forms[0].submit()`, only for forms of the page, because other objects have `submit` too."""
    root = callee_of(node)
    while root is not None and "document" not in paths(root.value or NO_VALUE):
        root = callee_of(root) if root.kind == "call_expression" else root.get("object")
    if root is not None:
        report.add_effect(EffectKind.NETWORK, "submit", node.line)


def check_html(report: CodeReport, node: SyntaxNode, name: str) -> None:
    """Check text that becomes elements of a page."""
    value: Value = node.value or NO_VALUE
    if any(_ACTIVE_HTML.search(text) for text in texts(value)) or _is_tainted(node):
        report.add_violation(ViolationKind.DYNAMIC, f"{name} with code", node.line)
    elif node.kind in _BARE and not all(isinstance(atom, Const) for atom in value):
        report.add_effect(EffectKind.UNRESOLVED, name, node.line)


def _is_tainted(node: SyntaxNode) -> bool:
    pending = [node]
    for current in pending:
        callee = callee_of(current) if current.kind == "call_expression" else None
        names = paths(callee.value or NO_VALUE) if callee is not None else []
        if any(name.startswith(_SANITIZERS) for name in names) or len(pending) > MAX_TAINT_NODES:
            continue
        if any(path.startswith(tuple(TAINTED)) for path in paths(current.value or NO_VALUE)):
            return True
        if current.kind in ("identifier", "property_identifier") and _UNTRUSTED_NAME.search(current.text):
            return True
        pending.extend(current.children)
    return False


def _check_navigation(report: CodeReport, node: SyntaxNode, addresses: list[SyntaxNode]) -> None:
    """Report navigation to another page, unless it is a literal address on this site."""
    for address in addresses:
        value: Value = address.value or NO_VALUE
        address_texts = texts(value)
        if any(_ACTIVE_ADDRESS.match(text) for text in address_texts):
            report.add_violation(ViolationKind.DYNAMIC, "javascript: address", node.line)
        elif not address_texts or any(_EXTERNAL_ADDRESS.match(text) for text in address_texts):
            report.add_effect(EffectKind.NETWORK, " | ".join(address_texts[:2]) or "location", node.line)


def check_assignment(values: ValueResolver, report: CodeReport, node: SyntaxNode) -> None:
    """Check the value assigned to a property that acts on it."""
    left, right = node.get("left"), node.get("right")
    if left is None or right is None:
        return
    target = left.get("object")
    owners = paths(target.value or NO_VALUE) if target is not None else []
    if any(owner in _POLLUTED for owner in owners):
        report.add_violation(ViolationKind.REFLECT, "Object.prototype", node.line)
    for owner in owners:
        if rule_of(owner).violation is ViolationKind.REFLECT:
            report.add_violation(ViolationKind.REFLECT, display_path(owner), node.line)
    names = values.property_names(left) if target is not None else []
    if "location" in paths(left.value or NO_VALUE) or ("location" in owners and "href" in names):
        _check_navigation(report, node, [right])
    for name in names:
        _check_property(report, name, right)


def _check_property(report: CodeReport, name: str, right: SyntaxNode) -> None:
    if name in HTML_SINKS:
        check_html(report, right, name)
    elif name in ("src", "href", "action") and any(
        _ACTIVE_ADDRESS.match(text) for text in texts(right.value or NO_VALUE)
    ):
        if not any(text.lower().startswith("data:image") for text in texts(right.value or NO_VALUE)):
            report.add_violation(ViolationKind.DYNAMIC, "javascript: address", right.line)
    elif name == "action" and any(_EXTERNAL_ADDRESS.match(text) for text in texts(right.value or NO_VALUE)):
        report.add_effect(EffectKind.NETWORK, texts(right.value or NO_VALUE)[0], right.line)
    elif re.fullmatch("on[a-z]+", name) and _is_text(right):
        report.add_violation(ViolationKind.DYNAMIC, f"{name} with text", right.line)


def check_attribute(report: CodeReport, node: SyntaxNode) -> None:
    """Check an attribute of a JSX element."""
    value = node.children[-1] if len(node.children) > 1 else None
    name = node.children[0].text if node.children else ""
    value_texts = texts(value.value or NO_VALUE) if value is not None else []
    if name in ("href", "src", "action", "formAction", "xlinkHref") and any(map(_ACTIVE_ADDRESS.match, value_texts)):
        if not any(text.lower().startswith("data:image") for text in value_texts):
            report.add_violation(ViolationKind.DYNAMIC, "javascript: address", node.line)
    elif name == "srcDoc" and value is not None:
        check_html(report, value, name)


_TIMERS = ("setTimeout", "setInterval", "setImmediate")
_SinkCheck = Callable[[CodeReport, SyntaxNode, str], None]


def _list_members(report: CodeReport, node: SyntaxNode, path: str) -> None:
    """Report a list of the members of a built-in prototype: its constructor is among them."""
    for argument in arguments_of(node)[:1]:
        if any(owner.endswith(".prototype") for owner in paths(argument.value or NO_VALUE)):
            report.add_lookup(path, node.line)


_LISTERS = (
    *(f"Object.{name}" for name in ("getOwnPropertyDescriptors", "getOwnPropertyNames", "getOwnPropertySymbols")),
    "Reflect.ownKeys",
)
_BY_PATH: dict[str, _SinkCheck] = {
    **dict.fromkeys(_LISTERS, _list_members),
    **dict.fromkeys(_TIMERS, _timer),
    **dict.fromkeys((f"{name}.{way}" for name in _TIMERS for way in ("call", "apply", "bind")), _bound_timer),
    "Audio": _audio,
    **dict.fromkeys(("Worker", "SharedWorker"), _worker),
    **dict.fromkeys(("open",), _open_window),
    **dict.fromkeys(DEFINING, _define_property),
    **dict.fromkeys(("Object.getOwnPropertyDescriptor", "Reflect.getOwnPropertyDescriptor"), _descriptor),
    **dict.fromkeys(TEMPLATES, _template),
}
_BY_NAME: dict[str, _SinkCheck] = {
    "createElement": _element,
    "setAttribute": _attribute,
    "submit": _submit_form,
    **dict.fromkeys(("html", "append", "prepend", "after", "before", "replaceWith"), _fragment),
    **dict.fromkeys(HTML_CALLS - {"parseFromString"}, _html),
}
