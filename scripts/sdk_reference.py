"""Reference page of the Python SDK, written from signatures, docstrings and scripts/sdk_examples.md.

Docstrings of public functions have the sections `Args`, `Returns` and `Raises`. A parameter without a description, a
description without a parameter, an entry without an example and an example without an entry are errors.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Unpack, get_args, get_origin, get_type_hints

import qwed_sdk
from qwed_sdk import cache, event_stream, models
from qwed_sdk.sync_async import ClientMethod

EXAMPLES = Path(__file__).with_name("sdk_examples.md")
_SECTION = re.compile(r"^(Args|Returns|Raises):$", re.MULTILINE)
_ITEM = re.compile(r"^ {4}(\*{0,2}\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)
_EXAMPLE = re.compile(r"^## ([\w.]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_QUALIFIED = re.compile(r"\b(?:\w+\.)+(\w+)")
_WIDTH = 128
_CODE_WIDTH = 100
_SKIPPED = frozenset({"run", "aclose"})
"""`run` takes an operation, which is not public; `aclose` is another name of `close`."""
_GROUPS = {
    "engines": "Verify a claim",
    "agents": "Agents and their actions",
    "agent_lifecycle": "Changes of agents",
    "admin": "Approvals, keys, tools and the webhook",
    "policies": "Policies",
    "a2a": "Messages between agents",
    "audit": "The audit log, attestations and the server",
    "": "Events and connections",
}
"""Subjects of a client's methods, by the module of `qwed_sdk.operations` that defines them."""

_INTRODUCTION = """\
# SDK reference

This page has every public name of `qwed_sdk`: parameters, defaults, return values, errors, and an example of each
method. It is generated from the signatures and docstrings of the code. The examples are one program, from top to
bottom, which the tests run. The [guide](sdk.md) explains the same client by task.

The examples need a running server. Set `QWED_BASE_URL` to its address, and `QWED_API_KEY` to an owner's key.
"""
_ANSWERS = """\
## Answers

Methods return these mappings. Every member reads both ways, `answer.decision` and `answer["decision"]`, and
`to_dict()` returns a plain dict. A member that the server left out is `None`.
"""
_ERRORS = """\
## Errors

Every error of a client is a `QWEDError`, and none of them permits an action. Each method that sends a request may raise
`QWEDConnectionError`, `QWEDTimeoutError`, `QWEDAuthError`, `QWEDRequestError`, `QWEDRateLimitError`,
`QWEDServerError` and `QWEDProtocolError`. An entry names only the errors that have a particular meaning there.
"""


class ReferenceMismatchError(Exception):
    """A docstring or an example that does not fit the code."""


class Docstring(NamedTuple):
    """Parts of a docstring."""

    summary: str
    arguments: dict[str, str]
    returns: str
    raises: dict[str, str]


class Attribute(NamedTuple):
    """A field or a property of a class."""

    type: str
    meaning: str


def parse_docstring(documented: Any) -> Docstring:
    """Return the summary and the sections of an object's docstring."""
    summary, *rest = _SECTION.split(inspect.getdoc(documented) or "")
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    arguments, raises = (_items(sections.get(name, "")) for name in ("Args", "Raises"))
    return Docstring(summary.strip(), arguments, _one_line(sections.get("Returns", "")), raises)


def page() -> str:
    """Return the whole page; ReferenceMismatchError where a docstring or an example does not fit the code."""
    examples = dict(_EXAMPLE.findall(EXAMPLES.read_text()))
    reference = _Reference(examples)
    sections = "\n".join(reference.sections())
    unused = sorted(examples.keys() - reference.shown)
    if unused:
        raise ReferenceMismatchError(
            f"{EXAMPLES.name} has an example of `{unused[0]}`, which the reference does not have"
        )
    links = " · ".join(_link(name, name) for name in re.findall(r"^## (.*)$", sections, re.MULTILINE))
    return "\n".join([_INTRODUCTION, _filled(links), sections])


class _Reference:
    """Entries of the page, each with its example."""

    def __init__(self, examples: dict[str, str]) -> None:
        self._examples = examples
        self.shown: set[str] = set()
        self._models = _models()
        self._public = {name: getattr(qwed_sdk, name) for name in qwed_sdk.__all__}
        self._public |= {name: getattr(cache, name) for name in ("CacheStats", "CacheError")}
        self._linked = {name for name, value in (self._public | self._models).items() if inspect.isclass(value)}

    def sections(self) -> Iterator[str]:
        """Yield each section of the page."""
        yield self._client("QWEDClient")
        yield self._async_client("QWEDAsyncClient", "QWEDClient")
        yield self._class("QWEDAgentClient")
        yield self._async_client("QWEDAsyncAgentClient", "QWEDAgentClient")
        yield "## Offline verification\n\nThese functions send no request.\n"
        for name, value in self._public.items():
            if inspect.isfunction(value):
                yield self._entry(name, value)
        yield self._class("Checkpoint")
        yield self._class("Permit", is_constructed=False)
        yield self._class("Refusal", is_constructed=False)
        yield self._class("ToolApprovalSystem")
        yield self._class("VerificationCache")
        yield self._class("CacheContext")
        yield self._class("CacheStats", is_constructed=False)
        yield _ANSWERS
        for name, kind in self._models.items():
            yield f"### {name}\n\n{_filled(parse_docstring(kind).summary)}\n{self._attributes(kind)}"
        yield _ERRORS
        for name, kind in self._public.items():
            if inspect.isclass(kind) and issubclass(kind, BaseException):
                yield self._error(name, kind)

    def _client(self, name: str) -> str:
        methods = dict(_methods(self._public[name]))
        groups = {title: [each for each in methods if _group(methods[each]) == key] for key, title in _GROUPS.items()}
        table = "| subject | methods |\n|---|---|\n"
        for title, found in groups.items():
            table += f"| {title} | {', '.join(_link(f'`{each}`', f'{name}.{each}') for each in found)} |\n"
        entries = [self._entry(f"{name}.{each}", methods[each]) for found in groups.values() for each in found]
        return "\n".join([self._head(name), table, *entries])

    def _async_client(self, name: str, other: str) -> str:
        methods, counterparts = (dict(_methods(self._public[each])) for each in (name, other))
        if methods.keys() != counterparts.keys():
            differing = sorted(methods.keys() ^ counterparts.keys())
            raise ReferenceMismatchError(f"{name} and {other} have different methods: {differing}")
        plain = ", ".join(f"`{each}`" for each, method in methods.items() if not inspect.iscoroutinefunction(method))
        text = (
            f"Its parameters and methods are those of {_link(f'`{other}`', other)}, with the same results and errors. "
            f"Await each method, except for {plain}."
        )
        summary = parse_docstring(self._public[name]).summary
        return f"## {name}\n\n{_filled(summary)}\n{_filled(text)}\n{self._example(name)}"

    def _class(self, name: str, *, is_constructed: bool = True) -> str:
        entries = [self._entry(f"{name}.{each}", method) for each, method in _methods(self._public[name])]
        return "\n".join([self._head(name, is_constructed=is_constructed), *entries])

    def _head(self, name: str, *, is_constructed: bool = True) -> str:
        kind = self._public[name]
        parts = [f"## {name}\n", _filled(parse_docstring(kind).summary)]
        if is_constructed:
            constructor = parse_docstring(kind.__init__) if "Args:" in (kind.__init__.__doc__ or "") else None
            fields = {field: each.meaning for field, each in _attributes(kind).items()}
            documented = constructor or Docstring("", _constructed_from(kind, fields), "", {})
            parts.append(self._call(name, name, _signature(kind), documented))
        return "\n".join(filter(None, [*parts, self._attributes(kind), self._example(name)]))

    def _entry(self, name: str, function: Callable[..., Any]) -> str:
        documented = parse_docstring(function)
        call = self._call(name, name.rpartition(".")[2], _signature(function), documented)
        return "\n".join([f"### {name}\n", _filled(documented.summary), call, self._example(name)])

    def _error(self, name: str, kind: type[BaseException]) -> str:
        bases = ", ".join(f"`{base.__name__}`" for base in kind.__bases__)
        text = f"{parse_docstring(kind).summary} Base: {bases}."
        example = self._example(name) if name in self._examples else ""
        parts = [f"### {name}\n", _filled(text), self._attributes(kind, inherited=False), example]
        return "\n".join(filter(None, parts))

    def _call(self, name: str, short: str, signature: inspect.Signature, documented: Docstring) -> str:
        """Return the signature of a function, its parameters, its result and its errors."""
        parameters = signature.parameters
        differing = sorted(parameters.keys() ^ documented.arguments.keys())
        if differing:
            raise ReferenceMismatchError(f"`{name}`: `{differing[0]}` is a parameter or a description, but not both")
        parts = [f"```\n{_source(short, signature)}\n```\n"]
        if parameters:
            rows = ((f"`{each}`", _kind(parameters[each]), documented.arguments[each]) for each in parameters)
            parts.append(f"**Parameters**\n\n{''.join(_bullet(*row) for row in rows)}")
        if documented.returns:
            parts.append(_filled(f"**Returns** {self._type(signature.return_annotation)}: {documented.returns}"))
        if documented.raises:
            rows = ((self._type(error), "", meaning) for error, meaning in documented.raises.items())
            parts.append(f"**Raises**\n\n{''.join(_bullet(*row) for row in rows)}")
        return "\n".join(parts)

    def _attributes(self, kind: type, *, inherited: bool = True) -> str:
        found = _attributes(kind, inherited=inherited)
        rows = (_bullet(f"`{name}`", _code(each.type), each.meaning) for name, each in found.items())
        return f"**Attributes**\n\n{''.join(rows)}" if found else ""

    def _example(self, name: str) -> str:
        if name not in self._examples:
            raise ReferenceMismatchError(f"`{name}` has no example: write one in {EXAMPLES.name}")
        self.shown.add(name)
        return f"**Example**\n\n{self._examples[name].strip()}\n"

    def _type(self, annotation: Any) -> str:
        """Return a type as code, with a link where this page describes it."""
        written = annotation if isinstance(annotation, str) else _type(annotation)
        inner = re.sub(r"^list\[(\w+)\]$", r"\1", written)
        return _link(f"`{written}`", inner) if inner in self._linked else f"`{written}`"


def _models() -> dict[str, type]:
    """Return the classes of answers, in the order of their definition."""
    return {
        name: kind
        for name, kind in (vars(models) | {"Event": event_stream.Event}).items()
        if inspect.isclass(kind) and issubclass(kind, models.ApiRecord) and _attributes(kind)
    }


def _methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods of a class and of its bases, in the order of their definition."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("qwed")]
    for name in dict.fromkeys(name for base in bases for name in vars(base)):
        value = inspect.getattr_static(kind, name)
        is_method = isinstance(value, classmethod | staticmethod | ClientMethod) or inspect.isfunction(value)
        if is_method and not name.startswith("_") and name not in _SKIPPED:
            yield name, getattr(kind, name)


def _group(method: Callable[..., Any]) -> str:
    package, _, module = method.__module__.rpartition(".")
    return module if package == "qwed_sdk.operations" else ""


def _signature(value: Any) -> inspect.Signature:
    """Return how it is called, without the object it is called on."""
    signature = inspect.signature(value)
    parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    return signature.replace(parameters=[named for each in parameters for named in _unpacked(each)])


def _unpacked(parameter: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the parameter, or for `**keywords: Unpack[...]` those that it stands for."""
    if get_origin(parameter.annotation) is not Unpack:
        return [parameter]
    hints = get_type_hints(get_args(parameter.annotation)[0])
    return [inspect.Parameter(name, parameter.KEYWORD_ONLY, default=..., annotation=hints[name]) for name in hints]


def _constructed_from(kind: type, fields: dict[str, str]) -> dict[str, str]:
    return {name: fields[name] for name in _signature(kind).parameters if name in fields}


def _attributes(kind: type, *, inherited: bool = True) -> dict[str, Attribute]:
    """Return the fields and properties that have a docstring, and every annotated field."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("qwed_sdk")] if inherited else [kind]
    found: dict[str, Attribute] = {}
    for base in reversed(bases):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        found |= dict(_fields(tree.body))  # type: ignore[attr-defined]
        for name, value in vars(base).items():
            if isinstance(value, property) and not name.startswith("_"):
                returned = inspect.signature(value.fget).return_annotation  # type: ignore[arg-type]
                found[name] = Attribute(_type(returned), parse_docstring(value).summary)
    return found


def _fields(body: list[ast.stmt]) -> Iterator[tuple[str, Attribute]]:
    """Yield annotated fields of a class, and those that its `__init__` assigns and describes."""
    for statement, following in zip(body, [*body[1:], None], strict=True):
        meaning = _text_of(following)
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            types = {
                each.arg: ast.unparse(each.annotation).strip("'") for each in _arguments(statement) if each.annotation
            }
            for name, attribute in _assigned(statement.body):
                yield name, attribute._replace(type=types.get(name, ""))
        elif isinstance(statement, ast.AnnAssign) and not ast.unparse(statement.target).startswith("_"):
            yield ast.unparse(statement.target), Attribute(ast.unparse(statement.annotation), meaning)


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, Attribute]]:
    for statement, following in pairwise(body):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Attribute) and not target.attr.startswith("_") and _text_of(following):
            yield target.attr, Attribute("", _text_of(following))


def _text_of(statement: ast.stmt | None) -> str:
    """Return the docstring that a statement is, or nothing."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return _one_line(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _items(section: str) -> dict[str, str]:
    return {name.lstrip("*"): _one_line(meaning) for name, meaning in _ITEM.findall(section)}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _type(annotation: Any) -> str:
    return _QUALIFIED.sub(r"\1", inspect.formatannotation(annotation))


def _kind(parameter: inspect.Parameter) -> str:
    """Return the type and the default of a parameter."""
    if parameter.annotation is inspect.Parameter.empty:
        return ""
    many = {parameter.VAR_POSITIONAL: "any number of ", parameter.VAR_KEYWORD: "keywords of "}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f", default `{_default(parameter)}`"
    default = ", optional" if parameter.default is ... else default
    return f"{many}`{_type(parameter.annotation)}`{default}"


def _default(parameter: inspect.Parameter) -> str:
    value = parameter.default
    return "..." if value is ... else getattr(value, "__name__", None) or repr(value)


def _source(name: str, signature: inspect.Signature) -> str:
    """Return the signature as a reader would write it, on one line where it fits."""
    parameters, marked = [], False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not marked:
            parameters.append("*")
        marked = marked or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        default = "" if each.default is each.empty else f" = {_default(each)}"
        parameters.append(f"{_prefix(each)}{each.name}: {_type(each.annotation)}{default}")
    returned = "" if name[0].isupper() else f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(parameters)}){returned}"
    if len(line) <= _CODE_WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in parameters), f"){returned}"])


def _prefix(parameter: inspect.Parameter) -> str:
    return {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _bullet(name: str, kind: str, meaning: str) -> str:
    described = f"{name} ({kind})" if kind else name
    return _filled(f"- {described}: {meaning}" if meaning else f"- {described}", indent="  ")


def _filled(text: str, indent: str = "") -> str:
    """Return paragraphs within the width of a page."""
    return "\n".join(
        textwrap.fill(each, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) + "\n"
        for each in text.split("\n\n")
    )


def _link(shown: str, heading: str) -> str:
    anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
    return f"[{shown}](#{anchor})"
