"""Reader of the conformance cases of the Common Expression Language."""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

DIRECTORY = Path(__file__).parents[1] / "data" / "cel-spec"
_NEEDS = ("type_env", "bindings", "container", "disable_macros", "disable_check", "check_only")
"""Fields of a case that need another environment than ours."""
_MESSAGES: dict[str, list[tuple[str, int | str]]] = {
    "Empty": [],
    "Entry": [("key", "Value"), ("value", "Value")],
    "MapValue": [("entries*", "Entry")],
    "ListValue": [("values*", "Value")],
    "Value": [
        ("null_value", Field.TYPE_STRING),
        ("bool_value", Field.TYPE_BOOL),
        ("int64_value", Field.TYPE_INT64),
        ("uint64_value", Field.TYPE_UINT64),
        ("double_value", Field.TYPE_DOUBLE),
        ("string_value", Field.TYPE_STRING),
        ("bytes_value", Field.TYPE_BYTES),
        ("list_value", "ListValue"),
        ("map_value", "MapValue"),
        ("type_value", Field.TYPE_STRING),
        ("enum_value", "Empty"),
    ],
    "Test": [
        ("name", Field.TYPE_STRING),
        ("expr", Field.TYPE_STRING),
        ("value", "Value"),
        ("eval_error", "Empty"),
        ("any_eval_errors", "Empty"),
        ("typed_result", "Empty"),
        ("type_env*", "Empty"),
        ("bindings*", "Empty"),
        ("container", Field.TYPE_STRING),
        ("disable_macros", Field.TYPE_BOOL),
        ("disable_check", Field.TYPE_BOOL),
        ("check_only", Field.TYPE_BOOL),
    ],
    "Section": [("name", Field.TYPE_STRING), ("test*", "Test")],
    "File": [("name", Field.TYPE_STRING), ("section*", "Section")],
}


class ConformanceCase(NamedTuple):
    """One expression with its value; `is_error` if its evaluation must fail."""

    name: str
    expression: str
    value: Any
    is_error: bool
    needs: str
    """Feature of the case that a condition does not have; empty for a case that can run."""


def file_names() -> list[str]:
    """Return the names of the files of cases."""
    return sorted(path.stem for path in DIRECTORY.glob("*.textproto"))


def read_cases(name: str) -> list[ConformanceCase]:
    """Return the cases of a file."""
    text = (DIRECTORY / f"{name}.textproto").read_text(encoding="utf-8")
    # The parser knows neither the constant nor this escape.
    text = re.sub(r"null_value: ?(NULL_VALUE|0)", 'null_value: ""', text)
    text = re.sub(r"(?<!\\)((?:\\\\)*)\\\?", r"\1?", text)
    parsed = text_format.Parse(text, _file_class()(), allow_unknown_field=True)
    return [_case(section.name, test) for section in parsed.section for test in section.test]


def _case(section: str, test: Any) -> ConformanceCase:
    is_error = test.HasField("eval_error") or test.HasField("any_eval_errors")
    needs = next((need for need in _NEEDS if getattr(test, need)), "")
    if test.HasField("typed_result"):
        needs = "typed_result"
    value = True
    if test.HasField("value"):
        value = _value(test.value)
        if value is Ellipsis:
            needs = needs or "message value"
    return ConformanceCase(f"{section}/{test.name}", test.expr, value, is_error, needs)


def _value(value: Any) -> Any:
    for field, content in value.ListFields():
        if field.name == "list_value":
            return [_value(item) for item in content.values]
        if field.name == "map_value":
            return _entries((_value(entry.key), _value(entry.value)) for entry in content.entries)
        if field.name in ("type_value", "enum_value"):
            return Ellipsis
        return None if field.name == "null_value" else content
    return Ellipsis


def plain(value: Any) -> Any:
    """Return a value of the runtime as the cases write it; a map is the list of its entries."""
    if isinstance(value, dict):
        return _entries((plain(key), plain(item)) for key, item in value.items())
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.plain_value() if hasattr(value, "plain_value") else value


def _entries(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return sorted(pairs, key=repr)


@cache
def _file_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="cases.proto", package="cases", syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            added = message.field.add(name=field.rstrip("*"), number=number)
            added.label = Field.LABEL_REPEATED if field.endswith("*") else Field.LABEL_OPTIONAL
            if isinstance(kind, str):
                added.type, added.type_name = Field.TYPE_MESSAGE, f".cases.{kind}"
            else:
                added.type = kind  # type: ignore[assignment] # a constant of the enumeration
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("cases.File"))
