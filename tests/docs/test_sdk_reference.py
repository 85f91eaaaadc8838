"""The SDK reference has every public name, and each method with its parameters and an example."""

import inspect
import re

import pytest

import qwed_sdk
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "sdk-reference.md").read_text()
HEADINGS = frozenset(re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE))
CLIENTS = ("QWEDClient", "QWEDAgentClient")
INTERNAL = frozenset({"run"})
"""Takes an operation, which is not public."""


def entry(name: str) -> str:
    """Return the text under a heading, up to the next one."""
    return re.split(r"^##", PAGE.partition(f"### {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def methods(client: str) -> list[str]:
    kind = getattr(qwed_sdk, client)
    return [name for name, _ in inspect.getmembers(kind, callable) if not name.startswith("_") and name not in INTERNAL]


@pytest.mark.parametrize("name", qwed_sdk.__all__)
def test_every_public_name_has_a_heading(name: str) -> None:
    assert name in HEADINGS


@pytest.mark.parametrize("client", CLIENTS)
def test_every_method_of_a_client_has_an_entry_with_its_parameters_and_an_example(client: str) -> None:
    for name in methods(client):
        text = entry(f"{client}.{name}")
        parameters = list(inspect.signature(getattr(getattr(qwed_sdk, client), name)).parameters)
        missing = [
            parameter
            for parameter in parameters
            if parameter not in ("self", "cls") and f"- `{parameter}` (" not in text
        ]
        assert not missing, f"{client}.{name}"
        assert "**Example**" in text, f"{client}.{name}"
        assert "```python" in text, f"{client}.{name}"


def test_every_link_of_the_page_leads_to_a_heading() -> None:
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADINGS}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors
