"""What a scene of a framework is: a scripted model that asks for tools, and a record of those that ran."""

import importlib
import importlib.util
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from qwed_sdk import QWEDAgentClient

SCENES = Path(__file__).parent / "scenes"

ToolCalls = list[tuple[str, dict[str, Any]]]


class Outcome(NamedTuple):
    """The tools that ran, and everything that the model or the caller was told."""

    ran: ToolCalls
    said: str


class Scene(NamedTuple):
    """One framework with one hook."""

    module: str
    name: str
    package: str | None
    hook: str
    run: Callable[[QWEDAgentClient, ToolCalls], Outcome]

    @property
    def version(self) -> str:
        """The version of the framework that the scene is played with."""
        return "" if self.package is None else version(self.package)


def scenes_here() -> Iterator[Scene]:
    """The scenes whose framework is installed in this environment, by name."""
    for file in sorted(SCENES.glob("*.py")):
        package = _package(file)
        if package is None or _installed(package):
            module = importlib.import_module(f"tests.frameworks.scenes.{file.stem}")
            yield Scene(file.stem, module.NAME, module.PACKAGE, module.HOOK, module.run)


def _package(file: Path) -> str | None:
    """The `PACKAGE` of a scene, read without importing it: importing needs the framework."""
    for line in file.read_text().splitlines():
        if line.startswith("PACKAGE = "):
            named = line.removeprefix("PACKAGE = ").strip()
            return None if named == "None" else named.strip('"')
    raise ValueError(f"{file.name} names no PACKAGE")


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
