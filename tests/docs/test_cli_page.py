"""docs/cli.md lists every command, and no page shows an unknown command or option."""

import re
from pathlib import Path

import pytest

from qwed.cli.app import iter_commands
from tests.docs.pages import PAGES, ROOT, blocks_of

PAGE = (ROOT / "docs" / "cli.md").read_text()
WRITTEN, _, TABLE = PAGE.partition("<!-- generated: commands -->")
OPTIONS = {
    path: {
        "--help",
        "-h",
        *(name for param in command.params for name in (*param.opts, *param.secondary_opts) if name.startswith("-")),
    }
    for path, command in iter_commands()
}
GROUPS = {" ".join(path.split()[:-1]) for path in OPTIONS if " " in path}
INLINE = re.compile(r"`(qwed [^`\n]+)`")
"""Command in the text of a page."""
ENDS = re.compile(r"[|;&<>()]|\\\n")


@pytest.mark.parametrize("path", OPTIONS)
def test_every_command_has_its_rows(path: str) -> None:
    _, _, rows = TABLE.partition(f"\n| `{path}` |")
    rows = re.split(r"\n\| `qwed", rows)[0]
    assert [name for name in OPTIONS[path] - {"--help", "-h"} if name not in re.findall(r"[-\w]+", rows)] == []


@pytest.mark.parametrize("path", [path for path in OPTIONS if " " in path])
def test_every_command_is_told_of_in_its_section(path: str) -> None:
    _, first, *_rest = path.split()
    # The commands `verify-...` share one section.
    heading = "verify" if first.startswith("verify-") else first
    _, _, rest = WRITTEN.partition(f"\n## qwed {heading}\n")
    section = rest.partition("\n## ")[0]
    assert re.search(rf"\b{path.split()[-1]}\b", section), f"docs/cli.md says nothing of `{path}` under its heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_no_command_that_is_not_there(page: Path) -> None:
    typed = [*INLINE.findall(page.read_text()), *_in_blocks(page)]
    assert [wrong for command in typed if (wrong := _wrong_in(command)) is not None] == []


def _in_blocks(page: Path) -> list[str]:
    """Return the commands in the bash blocks of a page."""
    bash = "\n".join(block.text for block in blocks_of(page) if block.language == "bash").replace("\\\n", " ")
    return [ENDS.split(command)[0] for command in re.findall(r"(?:^|[|;&(]\s*)(qwed .*)", bash, re.MULTILINE)]


def _wrong_in(typed: str) -> str | None:
    """Return what the command line would not accept, or None."""
    words = typed.split()
    path = "qwed"
    for word in words[1:]:
        if f"{path} {word}" not in OPTIONS and f"{path} {word}" not in GROUPS:
            break
        path = f"{path} {word}"
    named = len(path.split())
    first = words[named] if len(words) > named else "--help"
    if path in GROUPS and not first.startswith(("-", "<", "...")):
        return f"{typed}: there is no such command"
    unknown = [
        word for word in re.findall(r"(?<=\s)--?[a-z][a-z-]*", typed) if word not in OPTIONS.get(path, {"--help"})
    ]
    return f"{typed}: {path} has no {unknown}" if unknown else None
