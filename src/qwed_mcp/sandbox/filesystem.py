"""Host files that a job sees, read-only: the interpreter, its libraries and the packages."""

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import qwed
from qwed.model.defaults import HomeDirectoryError, expand_home
from qwed.settings import data_dir_from

_SITE_DIRECTORIES = frozenset({"site-packages", "dist-packages"})
_OWN_PACKAGES = "qwed*/__init__.py"
_PUBLIC_FILES = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_TOP_LINKS = ("/lib", "/lib64")
LAUNCHER = Path(__file__).with_name("launcher.py").resolve()


class VisibleFiles(NamedTuple):
    """Host paths that are visible to a job; they are free of links and the same inside and outside."""

    python: Path
    paths: tuple[Path, ...]
    links: tuple[tuple[str, str], ...]
    """Pairs of link target and link."""
    package_directories: tuple[Path, ...]
    """Directories that Python searches for packages."""

    @property
    def parents(self) -> tuple[Path, ...]:
        """Directories above the visible paths, outermost first."""
        return tuple(sorted({parent for path in self.paths for parent in path.parents if parent != Path("/")}))


def find_visible_files() -> VisibleFiles:
    """Return the files of this host that jobs need."""
    python = Path(os.path.realpath(sys._base_executable))  # type: ignore[attr-defined]
    return VisibleFiles(
        python=python,
        paths=_drop_nested(
            [
                python,
                *_standard_library(),
                *_shared_libraries(),
                *_site_directories(),
                *_own_packages(),
                *_existing_paths(_PUBLIC_FILES),
            ]
        ),
        links=tuple((os.readlink(link), link) for link in _TOP_LINKS if os.path.islink(link)),
        package_directories=tuple(dict.fromkeys([*_site_directories(), _source_root()])),
    )


def exposed_data_directory(visible: Iterable[Path]) -> tuple[Path, Path] | None:
    """Return a data directory that jobs would see and the visible path it is in, or None."""
    paths = [*visible]
    for data_directory in _data_directories():
        for path in paths:
            if data_directory.resolve().is_relative_to(path):
                return data_directory, path
    return None


def _data_directories() -> Iterator[Path]:
    for path in (data_dir_from(), Path("~/.qwed")):
        # A missing home directory contains no data directory.
        with suppress(HomeDirectoryError):
            yield expand_home(path)


def _source_root() -> Path:
    """Return the directory that contains our packages."""
    return Path(str(qwed.__file__)).resolve().parents[1]


def _own_packages() -> Iterator[Path]:
    """Yield our packages alone when they run from a source tree."""
    if _source_root().name not in _SITE_DIRECTORIES:
        yield from (init_file.parent.resolve() for init_file in _source_root().glob(_OWN_PACKAGES))


def _site_directories() -> Iterator[Path]:
    for entry in map(Path, sys.path):
        if entry.name in _SITE_DIRECTORIES and entry.is_dir():
            yield entry.resolve()


def _standard_library() -> Iterator[Path]:
    prefixes = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    yield from _existing_paths(sysconfig.get_path(name, vars=prefixes) for name in ("stdlib", "platstdlib"))
    # The interpreter itself may be a shared library.
    directory, name = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    if directory and name:
        yield from _existing_paths([f"{directory}/{name}"])


def _shared_libraries() -> Iterator[Path]:
    multiarch = sysconfig.get_config_var("MULTIARCH")
    directories = [*_existing_paths([f"/usr/lib/{multiarch}", f"/lib/{multiarch}"])] if multiarch else []
    yield from directories or _existing_paths(["/usr/lib", "/lib"])
    yield from _existing_paths(["/usr/lib64", "/lib64"])


def _existing_paths(paths: Iterable[str]) -> Iterator[Path]:
    yield from (Path(path).resolve() for path in paths if os.path.exists(path))


def _drop_nested(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return each path once, without those below another."""
    distinct = set(paths)
    return tuple(sorted(path for path in distinct if not any(above in distinct for above in path.parents)))
