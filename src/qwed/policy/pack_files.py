"""Policies that come with qwed: readable files to copy and edit."""

from functools import cache
from pathlib import Path

from qwed.policy.document import PolicySource

_DIRECTORY = Path(__file__).parent / "packs"


@cache
def pack_names() -> tuple[str, ...]:
    """Return the names of the packs."""
    return tuple(sorted(file.stem for file in _DIRECTORY.glob("*.yaml")))


def read_pack(name: str) -> PolicySource:
    """Return a pack; raise KeyError if there is none of this name."""
    if name not in pack_names():
        raise KeyError(name)
    return PolicySource(f"{name}.yaml", (_DIRECTORY / f"{name}.yaml").read_text(encoding="utf-8"))
