"""What a job sees of the host's files: the interpreter, the libraries it needs and the packages, read-only."""

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import qwed
from qwed.settings import data_dir_from
from qwed.words.home import NoHome, from_home

_SITES = frozenset({"site-packages", "dist-packages"})
_OURS = "qwed*/__init__.py"
_PUBLIC = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_TOP_LINKS = ("/lib", "/lib64")
LAUNCHER = Path(__file__).with_name("inside.py").resolve()


class View(NamedTuple):
    """Paths are without links, and the same inside and outside."""

    python: Path
    shown: tuple[Path, ...]
    links: tuple[tuple[str, str], ...]
    """Where it points to, and the link."""
    path: tuple[Path, ...]
    """Where Python looks for packages."""

    @property
    def parents(self) -> tuple[Path, ...]:
        """The directories above what is shown, outermost first."""
        return tuple(sorted({above for place in self.shown for above in place.parents if above != Path("/")}))


def view() -> View:
    """What is shown here."""
    python = Path(os.path.realpath(sys._base_executable))  # type: ignore[attr-defined]
    return View(
        python=python,
        shown=_outermost([python, *_standard_library(), *_libraries(), *_sites(), *_own(), *_existing(_PUBLIC)]),
        links=tuple((os.readlink(link), link) for link in _TOP_LINKS if os.path.islink(link)),
        path=tuple(dict.fromkeys([*_sites(), _top()])),
    )


def secret_in(shown: Iterable[Path]) -> tuple[Path, Path] | None:
    """A data directory that would be seen, and the place it is in; there is none as long as it is kept elsewhere."""
    places = [*shown]
    for secret in _data_directories():
        for place in places:
            if secret.resolve().is_relative_to(place):
                return secret, place
    return None


def _data_directories() -> Iterator[Path]:
    for place in (data_dir_from(), Path("~/.qwed")):
        # Without a home there is nothing in it.
        with suppress(NoHome):
            yield from_home(place)


def _top() -> Path:
    """The directory our packages are in."""
    return Path(str(qwed.__file__)).resolve().parents[1]


def _own() -> Iterator[Path]:
    """Of sources beside a repository the packages alone."""
    if _top().name not in _SITES:
        yield from (found.parent.resolve() for found in _top().glob(_OURS))


def _sites() -> Iterator[Path]:
    for entry in map(Path, sys.path):
        if entry.name in _SITES and entry.is_dir():
            yield entry.resolve()


def _standard_library() -> Iterator[Path]:
    below = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    yield from _existing(sysconfig.get_path(name, vars=below) for name in ("stdlib", "platstdlib"))
    # Where Python is a library itself.
    directory, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    if directory and name:
        yield from _existing([f"{directory}/{name}"])


def _libraries() -> Iterator[Path]:
    several = sysconfig.get_config_var("MULTIARCH")
    found = [*_existing([f"/usr/lib/{several}", f"/lib/{several}"])] if several else []
    yield from found or _existing(["/usr/lib", "/lib"])
    yield from _existing(["/usr/lib64", "/lib64"])


def _existing(paths: Iterable[str]) -> Iterator[Path]:
    yield from (Path(path).resolve() for path in paths if os.path.exists(path))


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Each once, without those below another."""
    every = set(paths)
    return tuple(sorted(path for path in every if not any(above in every for above in path.parents)))
