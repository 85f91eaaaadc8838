"""Property tests of tool screening: each tool passes or is quarantined, with a bounded request."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import Tool

from qwed_mcp.tool_pinning import PinRegistry
from qwed_mcp.tool_pinning.quarantined import MAX_REQUEST_BYTES

TEXTS = st.text(st.characters(), max_size=40) | st.sampled_from(
    ["$ref", "properties", "description", "\u200b", "\ud800"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
TOOLS = st.fixed_dictionaries(
    {
        "name": TEXTS,
        "title": st.none() | TEXTS,
        "description": st.none() | TEXTS,
        "input_schema": st.dictionaries(TEXTS, VALUES, max_size=4),
        "output_schema": st.none() | st.dictionaries(TEXTS, VALUES, max_size=3),
    }
).map(lambda fields: Tool(**fields))


@settings(max_examples=60, deadline=None)
@given(st.lists(TOOLS, max_size=4), st.lists(TOOLS, max_size=4))
def test_every_tool_is_shown_or_held_and_what_is_shown_once_is_shown_again(
    first: list[Tool], second: list[Tool]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        registry = PinRegistry.open(Path(directory), "server")
        for listing in (first, second):
            screened = registry.screen(listing)
            assert len(screened.passed) + len(screened.quarantined) == len(listing)
            for quarantined in screened.quarantined:
                assert quarantined.reasons
                assert len(json.dumps(quarantined.request, ensure_ascii=False).encode()) <= MAX_REQUEST_BYTES
            assert registry.screen(screened.passed).quarantined == ()


@settings(max_examples=40, deadline=None)
@given(TOOLS)
def test_what_is_released_passes_as_long_as_it_stays_what_it_is(tool: Tool) -> None:
    with tempfile.TemporaryDirectory() as directory:
        registry = PinRegistry.open(Path(directory), "server")
        for quarantined in registry.screen([tool]).quarantined:
            if quarantined.releasable:
                registry.release(quarantined, "an approver")
                assert registry.screen([tool]).passed == (tool,)
