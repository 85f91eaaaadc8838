"""Policy files of a command: reading and compiling them, and printing their problems."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.backend import STDIN, read_bytes
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json

if TYPE_CHECKING:
    from qwed.policy import CompiledPolicies, PolicyProblem, PolicySource

SUFFIXES = (".yaml", ".yml", ".json")
_LARGEST_FILE = 1 << 20

PolicyFiles = Annotated[
    list[str], typer.Argument(metavar="FILE...", help="policy files, or directories of them; - reads standard input")
]


def read_policy_files(names: Sequence[str]) -> "list[PolicySource]":
    """Return the documents of these files, those of a directory by name; exit if one cannot be read."""
    return [_read(name) for given in names for name in _expand(given)]


def _expand(name: str) -> Iterator[str]:
    if name == STDIN or not Path(name).is_dir():
        yield name
        return
    files = sorted(str(path) for path in Path(name).iterdir() if path.suffix in SUFFIXES and path.is_file())
    if not files:
        fail(f"`{name}` has no policy: a policy file ends with {', '.join(SUFFIXES)}")
    yield from files


def _read(name: str) -> "PolicySource":
    from qwed.policy import PolicySource

    content = read_bytes(name, _LARGEST_FILE)
    try:
        return PolicySource("stdin" if name == STDIN else name, content.decode())
    except UnicodeDecodeError:
        fail(f"`{name}` is not valid UTF-8: save it as UTF-8")


@contextmanager
def required_packages() -> Iterator[None]:
    """Exit with the name of the extra if a package that policies need is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        fail(f"policies need `{error.name}`: pip install 'qwed[policy]'")


def compile_or_report(names: Sequence[str], *, as_json: bool) -> "CompiledPolicies | None":
    """Return the compiled files, or None after their problems are printed."""
    from qwed.policy import CompiledPolicies, compile_policies

    with required_packages():
        compiled = compile_policies(read_policy_files(names))
    if isinstance(compiled, CompiledPolicies):
        return compiled
    report_problems(compiled, as_json=as_json)
    return None


def report_problems(problems: "Iterable[PolicyProblem]", *, as_json: bool, **more: Any) -> int:
    """Print problems with their lines, or as JSON, and return EXIT_FAILED if there are any."""
    problems = tuple(problems)
    if as_json:
        print_json({"ok": not problems, "problems": [asdict(problem) for problem in problems], **more})
    else:
        for problem in problems:
            for line in problem.render().splitlines():
                echo(line)
    return EXIT_FAILED if problems else 0
