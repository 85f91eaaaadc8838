"""What a server states of its tool: a hint adds an effect, and never takes one away."""

from mcp_types import Tool, ToolAnnotations

from qwed.words import EffectKind

_STATED = {"destructive_hint": EffectKind.DELETE, "open_world_hint": EffectKind.NETWORK}
"""`read_only_hint` is not here: whoever wants to pass unseen would state it."""


def effects_of(tool: Tool) -> tuple[str, ...]:
    """The effects a tool's annotations state."""
    stated = tool.annotations or ToolAnnotations()
    return tuple(str(kind) for hint, kind in _STATED.items() if getattr(stated, hint) is True)
