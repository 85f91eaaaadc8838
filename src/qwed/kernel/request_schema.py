"""Request Structs: one type parses a request and describes it in OpenAPI, and its rules word the refusals."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta

from qwed.guards.secrets import find_secrets, mask
from qwed.guards.text_scan import has_invisible, is_readable
from qwed.kernel.answer import Problem, problem
from qwed.model import ErrorCode

MAX_TEXT_LENGTH = 4_096
MAX_NAME_LENGTH = 256
_MAX_SCANNED = 4096
"""Characters of a name that are scanned for a message, which shows far fewer."""


class FieldRule(NamedTuple):
    """What a field must be: the end of the message ``field` ...` if it is not, and checks beyond its type."""

    must: str = ""
    """Empty for the meaning of the error code; with a leading `=`, the whole message."""
    code: ErrorCode = ErrorCode.MALFORMED
    refuse: Callable[[Any], str | None] | None = None
    """Returns the end of the message if the value cannot be used; "" for `must`."""
    wrong_type: str | None = None
    """Used in place of `must` for a value of another type; empty for msgspec's message."""
    secret: str = ""
    """Used if the value carries a secret."""
    masked: bool = False
    """True if secrets are masked in the value."""
    required: str = "is required"
    """Used if the field is absent."""
    missing: ErrorCode = ErrorCode.MISSING_FIELD
    """Code if the field is absent."""
    null_is_absent: bool = True
    """False if null is a wrong value of a required field."""


class RequestStruct(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the request types."""

    prefix: ClassVar[str] = ""
    """Precedes the names of the fields in messages."""
    unknown: ClassVar[str] = "unknown field {name}: known are {fields}"
    unknown_code: ClassVar[ErrorCode] = ErrorCode.MALFORMED


R = TypeVar("R", bound=RequestStruct)


class _Field(NamedTuple):
    attribute: str
    required: bool
    kind: Any
    """Type with its constraints."""
    plain: Any
    """Type without them."""
    rule: FieldRule
    struct: type[RequestStruct] | None
    is_list: bool
    """True for a list of `struct`."""


def parse(raw: Any, kind: type[R]) -> R | Problem:
    """Parse a request, or return the problem with it."""
    try:
        request = msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return explain(raw, kind)
    return _refuse_values(request) or request


def parse_query(texts: Mapping[str, Any], kind: type[R]) -> R | Problem:
    """Parse the parameters of a query string, in which whole numbers are digits."""
    fields = _fields_of(kind)
    return parse({name: _number_in(value, fields.get(name)) for name, value in texts.items()}, kind)


def _number_in(value: Any, field: _Field | None) -> Any:
    is_number = field is not None and int in (field.plain, *get_args(field.plain))
    digits = is_number and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18
    return int(value) if digits else value


def explain(raw: Any, kind: type[RequestStruct]) -> Problem:
    """Return the first problem with a request that msgspec refuses: unknown field, missing field, wrong value."""
    fields = _fields_of(kind)
    unknown = unknown_field(raw, tuple(fields), kind)
    if unknown is not None:
        return unknown
    for name, field in fields.items():
        if field.required and raw.get(name) is None and (name not in raw or field.rule.null_is_absent):
            return _problem(kind, name, field.rule.required, field.rule.missing)
    refusals = (_explain_value(raw, kind, name, field) for name, field in fields.items() if name in raw)
    whole = problem(kind.unknown_code, "the body cannot be read")
    return next((refusal for refusal in refusals if refusal is not None), whole)


def unknown_field(raw: Any, fields: tuple[str, ...], kind: type[RequestStruct] = RequestStruct) -> Problem | None:
    """Return the problem with a body that is not an object or has an unknown field, or None."""
    if not isinstance(raw, Mapping):
        return problem(ErrorCode.MALFORMED, "the body must be an object")
    unknown = next((name for name in raw if name not in fields), None)
    if unknown is None:
        return None
    names = {"fields": ", ".join(fields), "sorted_fields": ", ".join(sorted(fields))}
    return problem(kind.unknown_code, kind.unknown.format(name=quoted(unknown), **names))


def _explain_value(raw: Mapping[str, Any], kind: type[RequestStruct], name: str, field: _Field) -> Problem | None:
    value, rule = raw[name], field.rule
    if _fits(value, field.kind):
        return None
    if field.struct is not None and field.is_list and isinstance(value, list):
        bad = next(((n, item) for n, item in enumerate(value) if not _fits(item, field.struct)), None)
        if bad is not None:
            refusal = explain(bad[1], field.struct)
            return msgspec.structs.replace(refusal, message=f"item {bad[0]}: {refusal.message}")
    elif field.struct is not None and not field.is_list and isinstance(value, Mapping):
        return explain(value, field.struct)
    text = rule.must
    if rule.wrong_type is not None and not _fits(value, field.plain):
        text = rule.wrong_type or _msgspec_message(raw, kind)
    return _problem(kind, name, text, rule.code)


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _msgspec_message(raw: Any, kind: type[RequestStruct]) -> str:
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        where = f"`{kind.prefix[:-1]}`: " if kind.prefix else ""
        return f"={where}{str(error).lower()}"
    return ""


def _problem(kind: type[RequestStruct], name: str, text: str, code: ErrorCode) -> Problem:
    if text.startswith("="):
        return problem(code, text[1:])
    return problem(code, text and f"`{kind.prefix}{name}`{'' if text.startswith(':') else ' '}{text}")


def _refuse_values(request: RequestStruct) -> Problem | None:
    """Return the problem with a value that has the right type; mask the values whose rule asks for it."""
    kind = type(request)
    for attribute, name, refuse, rule in _checks_of(kind):
        value = getattr(request, attribute)
        if value is None or value is UNSET:
            continue
        if rule is None:
            refusal = _refuse_values(value)
            if refusal is not None:
                return refusal
            continue
        text = None if refuse is None else refuse(value)
        if text is None and rule.secret and _has_secret(value):
            text = rule.secret
        if text is not None:
            return _problem(kind, name, text or rule.must, rule.code)
        if rule.masked:
            setattr(request, attribute, mask(value))
    return None


def _has_secret(value: str | list[str]) -> bool:
    return any(find_secrets(text) for text in ([value] if isinstance(value, str) else value))


@cache
def _fields_of(kind: type[RequestStruct]) -> dict[str, _Field]:
    annotated, plain = get_type_hints(kind, include_extras=True), get_type_hints(kind)
    fields = {}
    for field in msgspec.structs.fields(kind):
        name, hint = field.name, annotated[field.name]
        rule = next(_rules_in(hint), None)
        struct, is_list = _struct_in(plain[name])
        default = FieldRule("must be an object") if struct is not None else FieldRule(wrong_type="")
        fields[field.encode_name] = _Field(name, field.required, hint, plain[name], rule or default, struct, is_list)
    return fields


class _Check(NamedTuple):
    attribute: str
    name: str
    refuse: Callable[[Any], str | None] | None
    rule: FieldRule | None
    """None for a nested request."""


@cache
def _checks_of(kind: type[RequestStruct]) -> tuple[_Check, ...]:
    """Return the checks beyond the types of the fields."""
    return tuple(
        _Check(field.attribute, name, field.rule.refuse, None if field.struct is not None else field.rule)
        for name, field in _fields_of(kind).items()
        if (field.struct is not None and not field.is_list)
        or field.rule.refuse is not None
        or field.rule.secret
        or field.rule.masked
    )


def _rules_in(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        yield from (item for item in hint.__metadata__ if isinstance(item, FieldRule))
    for part in get_args(hint):
        yield from _rules_in(part)


def _struct_in(hint: Any) -> tuple[type[RequestStruct] | None, bool]:
    for part in (hint, *get_args(hint)):
        if isinstance(part, type) and issubclass(part, RequestStruct):
            return part, get_origin(hint) is list
    return None, False


def quoted(name: object) -> str:
    """Return user input for a message: in backticks, one line, short, without secrets."""
    # Masked before it is cut: half a secret would not be recognised.
    text = "".join(char if char.isprintable() else "?" for char in mask(str(name)[:_MAX_SCANNED])[:64])
    return f"`{text}`"


def matching(pattern: str) -> Callable[[str], str | None]:
    """Return a check for a whole text that matches a pattern."""
    match = re.compile(pattern).fullmatch
    return lambda text: None if match(text) else ""


_INVISIBLE = (
    r"\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_BLANK = r"\u115f\u1160\u2800\u3164\uffa0"
READABLE = rf"^[^{_INVISIBLE}]*[^\s{_BLANK}{_INVISIBLE}][^{_INVISIBLE}]*$"
"""`is_readable` as a pattern, for the OpenAPI document."""
VISIBLE = rf"^[^{_INVISIBLE}]*$"
"""The opposite of `has_invisible` as a pattern, for the OpenAPI document."""


def readable(longest: int) -> Callable[[str], str | None]:
    """Return a check for a text with something visible and nothing misleading."""
    return lambda text: None if len(text) <= longest and is_readable(text) else ""


def not_misleading(longest: int) -> Callable[[str], str | None]:
    """Return a check for a text without invisible characters, which may be empty."""
    return lambda text: None if len(text) <= longest and not has_invisible(text) else ""


def text_rule(longest: int) -> FieldRule:
    """Return the rule of a readable text of which secrets are masked."""
    return FieldRule(f"must be a readable text of 1 to {longest} characters", refuse=readable(longest), masked=True)


def _text_schema(longest: int) -> Meta:
    return Meta(extra_json_schema={"minLength": 1, "maxLength": longest, "pattern": READABLE})


Reason = Annotated[str, _text_schema(MAX_TEXT_LENGTH), text_rule(MAX_TEXT_LENGTH)]
"""Readable text of which secrets are masked."""
Name = Annotated[str, _text_schema(MAX_NAME_LENGTH), text_rule(MAX_NAME_LENGTH)]
