"""Scenes: for each framework a scripted model that calls tools, and a record of the tools that ran."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from qwed_sdk import QWEDAgentClient

SCENES = Path(__file__).parent / "scenes"

ToolCalls = list[tuple[str, dict[str, Any]]]


class SceneOutcome(NamedTuple):
    """Tools that ran, and all text that the model or the caller received."""

    ran: ToolCalls
    text: str


class Scene(NamedTuple):
    """One framework with one hook."""

    module: str
    name: str
    package: str | None
    hook: str
    run: Callable[[QWEDAgentClient, ToolCalls], SceneOutcome]

    @property
    def version(self) -> str:
        """Version of the installed framework."""
        return "" if self.package is None else version(self.package)


def scenes_here() -> Iterator[Scene]:
    """Yield the scenes whose framework is installed, by name."""
    for file in sorted(SCENES.glob("*.py")):
        package = _package(file)
        if package is None or _installed(package):
            module = importlib.import_module(f"tests.frameworks.scenes.{file.stem}")
            yield Scene(file.stem, module.NAME, module.PACKAGE, module.HOOK, module.run)


def _package(file: Path) -> str | None:
    """Return the `PACKAGE` of a scene without importing it: importing needs the framework."""
    for line in file.read_text().splitlines():
        if line.startswith("PACKAGE = "):
            value = line.removeprefix("PACKAGE = ").strip()
            return None if value == "None" else value.strip('"')
    raise ValueError(f"{file.name} names no PACKAGE")


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
