"""The arguments a model leaves out: the tool gets their defaults, so they are part of what is verified."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from qwed_sdk.plain import NotPlain, plain

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


def with_defaults(tool: "BaseTool | None", arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as the tool will see them; a default that is no JSON stays unsaid."""
    left_out = {name: value for name, value in _defaults(tool) if name not in arguments and _is_plain(value)}
    return {**left_out, **arguments}


def _defaults(tool: "BaseTool | None") -> Iterator[tuple[str, Any]]:
    """Each default of the schema that the model was shown: arguments that LangChain injects are not in it."""
    schema = None if tool is None else tool.tool_call_schema
    if isinstance(schema, dict):
        described = schema.get("properties", {}).items()
        yield from ((name, each["default"]) for name, each in described if "default" in each)
        return
    for name, field in getattr(schema, "model_fields", {}).items():
        # What a factory will make is not known before it is asked.
        if not field.is_required() and field.default_factory is None:
            yield name, field.default


def _is_plain(value: Any) -> bool:
    try:
        plain(value, "default")
    except NotPlain:
        return False
    return True
