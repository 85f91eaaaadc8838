"""The documentation site builds strictly, has every page in its navigation, and loads nothing from another host."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from markdown import Markdown
from pymdownx.superfences import SuperFencesException

from scripts.site_markdown import SiteExtension, render_mermaid
from tests.docs.pages import NOT_LISTED, ROOT, environment

CONFIGURATION = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
LOADING = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "link": ("href",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
"""Attributes that make a browser load something by itself; a link that the reader follows is not one of them."""
STYLE_ADDRESS = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""")
POLICY = "default-src 'self' 'unsafe-inline' blob: data:"
"""Content-Security-Policy of every page: it stops scripts of the theme that would load something from another host."""


class Elements(HTMLParser):
    """Start tags of one page of the site, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def values(self, attributes: dict[str, tuple[str, ...]]) -> Iterator[str]:
        """Yield the values of these attributes of these elements."""
        for tag, present in self.found:
            yield from (present[name] for name in attributes.get(tag, ()) if name in present)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site that was built strictly, from a copy of the pages."""
    project = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "zensical.toml", project)
    for name in ("docs", "scripts"):
        shutil.copytree(ROOT / name, project / name, ignore=shutil.ignore_patterns("__pycache__"))
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    printed = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    assert done.returncode == 0, printed
    assert "No issues found" in printed, printed
    assert "warning" not in printed.lower(), printed
    return project / CONFIGURATION["site_dir"]


@pytest.fixture(scope="module")
def elements(site: Path) -> dict[Path, Elements]:
    """The elements of every page of the built site."""
    return {page: Elements(page.read_text()) for page in site.rglob("*.html")}


def pages_in(entries: list[Any], tab: str = "") -> Iterator[tuple[str, str]]:
    """Yield each page of the navigation with the tab it is under."""
    for entry in entries:
        for title, value in entry.items():
            if isinstance(value, str):
                yield value, tab
            else:
                yield from pages_in(value, tab or title)


def test_every_page_is_once_in_the_navigation() -> None:
    listed = [page for page, _ in pages_in(CONFIGURATION["nav"])]
    assert sorted(listed) == sorted({page.name for page in (ROOT / "docs").glob("*.md")} - NOT_LISTED)


def test_the_front_page_has_each_page_in_the_section_of_its_tab() -> None:
    sections = re.split(r"^## (.+)$", (ROOT / "docs" / "index.md").read_text(), flags=re.MULTILINE)[1:]
    shown = {
        (page, heading)
        for heading, text in zip(sections[::2], sections[1::2], strict=True)
        for page in re.findall(r"\]\(([\w-]+\.md)\)", text)
    }
    assert shown == {(page, tab) for page, tab in pages_in(CONFIGURATION["nav"]) if page != "index.md"}


def test_every_page_is_built_and_can_be_found(site: Path) -> None:
    pages = {page.removesuffix(".md") for page, _ in pages_in(CONFIGURATION["nav"])} - {"index"}
    assert {page.parent.name for page in site.glob("*/index.html")} == pages
    indexed = {item["location"].partition("/")[0] for item in json.loads((site / "search.json").read_text())["items"]}
    assert pages <= indexed


def test_every_link_inside_the_site_leads_to_a_file(site: Path, elements: dict[Path, Elements]) -> None:
    missing = []
    for page, parsed in elements.items():
        if page.name == "404.html":
            continue  # its links begin at the root of whatever host serves the site
        for address in {*parsed.values({**LOADING, "a": ("href",)})}:
            parts = urlsplit(address)
            target = page.parent / unquote(parts.path)
            target = target / "index.html" if target.is_dir() else target
            if not parts.scheme and not parts.netloc and parts.path and not target.exists():
                missing.append(f"{page.relative_to(site)}: {address}")
    assert missing == []


def test_a_page_loads_nothing_from_another_host(site: Path, elements: dict[Path, Elements]) -> None:
    loaded = {page: {*parsed.values(LOADING)} for page, parsed in elements.items()}
    loaded |= {style: {*STYLE_ADDRESS.findall(style.read_text())} for style in site.rglob("*.css")}
    elsewhere = {
        page: {address for address in addresses if is_elsewhere(address)} for page, addresses in loaded.items()
    }
    assert {page.name: addresses for page, addresses in elsewhere.items() if addresses} == {}


def is_elsewhere(address: str) -> bool:
    """Return True if a browser would ask another host for this address."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def test_the_browser_is_told_to_load_nothing_from_another_host(elements: dict[Path, Elements]) -> None:
    for page, parsed in elements.items():
        policies = [
            attributes["content"]
            for tag, attributes in parsed.found
            if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
        ]
        assert policies == [POLICY], page.name


def test_no_page_uses_what_the_theme_would_load_from_another_host(elements: dict[Path, Elements]) -> None:
    remote = {"mermaid", "glightbox", "pyodide", "twemoji"}
    for page, parsed in elements.items():
        used = {name for _, attributes in parsed.found for name in attributes.get("class", "").split()}
        assert not used & remote, page.name


def test_no_paragraph_is_a_list_or_a_table_that_was_not_read_as_one(site: Path) -> None:
    for page in site.rglob("index.html"):
        paragraphs = re.findall(r"<p>(.*?)</p>", page.read_text(), re.DOTALL)
        unread = [text for text in paragraphs if re.search(r"^\s*(?:[-*|] |=== )", text, re.MULTILINE)]
        assert unread == [], f"{page.parent.name}: put an empty line before it"


def test_labelled_blocks_become_tabs() -> None:
    page = "<!-- tabs -->\n**curl**\n\n```bash\nls\n```\n\n**Python**\n\ntext\n\n<!-- /tabs -->\n\n**not a tab**\n"
    extensions = [SiteExtension(), "pymdownx.superfences", "pymdownx.tabbed"]
    html = Markdown(extensions=extensions, extension_configs={"pymdownx.tabbed": {"alternate_style": True}}).convert(
        page
    )
    labels = re.findall(r'<label for="[^"]+">([^<]+)</label>', html)
    assert labels == ["curl", "Python"]
    assert "<strong>not a tab</strong>" in html


def test_a_diagram_is_drawn_when_the_site_is_built() -> None:
    sources = ("sequenceDiagram\n A->>B: ask", "flowchart LR\n A --> B", "flowchart LR\n B --> A")
    drawn = [render_mermaid(source, "mermaid", "diagram") for source in sources]
    ids = [name for figure in drawn for name in re.findall(r' id="([^"]+)"', figure)]
    assert len(ids) == len({*ids})
    assert all(name.startswith("diagram-") for name in ids)
    for figure in drawn:
        arrowheads = re.findall(r'marker-end="url\(#([^)]+)\)"', figure)
        assert figure.startswith('<figure class="diagram"><svg')
        assert arrowheads
        assert {*arrowheads} <= {*ids}


def test_a_diagram_that_is_not_valid_fails_the_build() -> None:
    with pytest.raises(SuperFencesException, match="not valid"):
        render_mermaid("sequenceDiagram\n A->>", "mermaid", "diagram")
