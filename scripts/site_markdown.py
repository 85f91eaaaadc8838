"""Markdown extensions of the documentation site: Mermaid diagrams as SVG, and labelled blocks as tabs.

Both keep docs/ readable as plain Markdown. Diagrams are drawn when the site is built, because the theme would otherwise
load Mermaid from another host in the reader's browser.
"""

import hashlib
import re
from typing import Any

import mmdr
from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from pymdownx.superfences import SuperFencesException

_TABS_START, _TABS_END = "<!-- tabs -->", "<!-- /tabs -->"
_LABEL = re.compile(r"\*\*([^*]+)\*\*")
_BEFORE_FENCES = 28
"""Priority between the removal of odd line ends (30) and the reading of fenced blocks (25)."""


def render_mermaid(source: str, _language: str, css_class: str, *_args: Any, **_options: Any) -> str:
    """Return the diagram as an SVG figure; an invalid diagram fails the build."""
    try:
        svg = mmdr.render(source).svg()
    except ValueError as error:
        raise SuperFencesException(f"the mermaid diagram is not valid: {error}") from error
    # Ids are unique on a page: no diagram may use the arrowheads of another one, or take the anchor of a heading.
    unique = f"diagram-{hashlib.sha256(source.encode()).hexdigest()[:8]}"
    svg = re.sub(r' id="(?!merman)[^"]*"', "", svg)
    svg = re.sub(r'(\bid="|#)merman', rf"\g<1>{unique}", svg)
    return f'<figure class="{css_class}">{svg}</figure>'


class TabsPreprocessor(Preprocessor):
    """Rewrites the bold labels between two tab comments as content tabs."""

    def run(self, lines: list[str]) -> list[str]:
        """Return the lines of the page with each labelled part indented under its tab."""
        written: list[str] = []
        indent = None
        for line in lines:
            label = _LABEL.fullmatch(line)
            if line in (_TABS_START, _TABS_END):
                indent = "" if line == _TABS_START else None
                written.append("")
            elif indent is not None and label:
                indent = "    "
                written += [f'=== "{label[1]}"', ""]
            else:
                written.append(f"{indent}{line}" if indent and line else line)
        return written


class SiteExtension(Extension):
    """Python-Markdown extension that adds the tabs."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (the name is Python-Markdown's)
        """Register the preprocessor."""
        md.preprocessors.register(TabsPreprocessor(md), "qwed_tabs", _BEFORE_FENCES)


def makeExtension(**options: Any) -> SiteExtension:  # noqa: N802 (the name is Python-Markdown's)
    """Return the extension; Python-Markdown calls this by name."""
    return SiteExtension(**options)
