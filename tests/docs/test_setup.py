"""The first minute on a new machine: what `make setup` says when something is missing, and that it goes on."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, environment

NO_VENV = '#!/bin/sh\ncase "$*" in *"import venv, ensurepip"*) exit 1;; esac\nexec {python} "$@"\n'
TOO_OLD = "#!/bin/sh\nexit 1\n"
PLAIN = ("sh", "cat", "dirname", "env", "id")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the setup reads, in which it can do no harm."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt", "constraints-crewai.txt", "constraints-servers.txt"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def run(script: str, place: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=place,
        env=environment() | {"SYSTEM_PACKAGES": "no"} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def program(file: Path, text: str) -> str:
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def bare(place: Path, *names: str) -> str:
    """A PATH with nothing on it but plain commands and `names`."""
    directory = place / "bin"
    directory.mkdir()
    for name in (*PLAIN, *names):
        path = shutil.which(name)
        assert path is not None, name
        (directory / name).symlink_to(path)
    return str(directory)


def test_without_a_python_that_is_new_enough_it_says_which_is_needed(copy: Path) -> None:
    done = run("sh scripts/setup", copy, PYTHON=program(copy / "old", TOO_OLD))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Python 3.11 or newer is needed" in done.stderr


def test_without_the_venv_module_it_says_which_package_has_it(copy: Path) -> None:
    python = program(copy / "python", NO_VENV.format(python=sys.executable))
    done = run("sh scripts/setup", copy, PYTHON=python)
    assert done.returncode == 1
    assert "python3-venv" in done.stderr
    assert not (copy / ".venv").exists()


def test_missing_programs_are_named_with_their_purpose_and_do_not_fail_the_setup(copy: Path) -> None:
    done = run("set -eu; . scripts/common; system_packages", copy, PATH=bare(copy))
    assert done.returncode == 0
    assert "bubblewrap is missing: it is for" in done.stderr
    assert "curl is missing: the documentation's" in done.stderr
    assert "strace is missing: the tests observe" in done.stderr
    assert "MariaDB is missing: the tests run SQL on it" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(
        "with your package manager: bubblewrap curl strace mariadb-server-core"
    )


def test_a_package_manager_that_fails_does_not_fail_the_setup(copy: Path) -> None:
    path = bare(copy, "timeout")
    program(Path(path) / "apt-get", "#!/bin/sh\nexit 100\n")
    program(Path(path) / "sudo", '#!/bin/sh\nshift\nexec "$@"\n')
    done = run("set -eu; . scripts/common; system_packages", copy, PATH=path, SYSTEM_PACKAGES="yes")
    assert done.returncode == 0
    assert (
        done.stderr.splitlines()[-1]
        == "qwed: that did not work; going on without: bubblewrap curl strace mariadb-server-core"
    )


def test_nothing_is_said_where_nothing_is_missing(copy: Path) -> None:
    path = bare(copy)
    for name in ("bwrap", "curl", "strace", "mariadb-install-db"):
        program(Path(path) / name, TOO_OLD)
    done = run("set -eu; . scripts/common; system_packages", copy, PATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt", "scripts/setup", "scripts/common"])
def test_the_environment_is_made_anew_when_what_it_is_made_from_changes(copy: Path, name: str) -> None:
    ask = f". scripts/common; fingerprint '{sys.executable}'"
    before, again = run(ask, copy).stdout, run(ask, copy).stdout
    with (copy / name).open("a") as file:
        file.write("# changed\n")
    assert before == again != run(ask, copy).stdout


@pytest.mark.parametrize("beside", ["crewai", "servers"])
@pytest.mark.parametrize("name", ["pyproject.toml", "constraints-{}.txt", "scripts/setup-{}", "scripts/common"])
def test_so_are_the_environments_beside_it(copy: Path, name: str, beside: str) -> None:
    name = name.format(beside)
    ask = f". scripts/common; fingerprint '{sys.executable}' constraints-{beside}.txt scripts/setup-{beside}"
    before, again = run(ask, copy).stdout, run(ask, copy).stdout
    with (copy / name).open("a") as file:
        file.write("# changed\n")
    assert before == again != run(ask, copy).stdout


@pytest.mark.parametrize("beside", ["crewai", "servers"])
def test_an_environment_that_is_up_to_date_is_left_alone(copy: Path, beside: str) -> None:
    ask = f". scripts/common; fingerprint '{sys.executable}' constraints-{beside}.txt scripts/setup-{beside}"
    venv = copy / f".venv-{beside}"
    (venv / "bin").mkdir(parents=True)
    (venv / "qwed-setup").write_text(run(ask, copy).stdout)
    program(venv / "bin" / "python", "#!/bin/sh\nexit 0\n")
    done = run(f"sh scripts/setup-{beside}", copy, PYTHON=sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_python_that_is_too_new_for_crewai_is_not_taken(copy: Path) -> None:
    too_new = program(copy / "new", '#!/bin/sh\ncase "$*" in *"< (3, 14)"*) exit 1;; esac\nexit 0\n')
    done = run("sh scripts/setup-crewai", copy, PYTHON=too_new)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Python 3.11 or newer, older than 3.14, is needed" in done.stderr


def interpreter(file: Path, minor: int) -> None:
    """Create a stand-in for a Python 3.`minor`, as far as the scripts ask one."""
    program(
        file,
        f"""#!/bin/sh
case "$*" in
    *"!= (3, {minor})"*) exit 0;;
    *"sys.exit("*) exit 1;;
    *"print('3.%d'"*) echo 3.{minor};;
    --version) echo Python 3.{minor}.0;;
    *) echo "made from {minor}";;
esac
""",
    )


def prepared(place: Path, minor: int, result: int) -> None:
    """Create the environment of that Python, with a test runner that ends with `result`."""
    programs = place / f".venv-3.{minor}" / "bin"
    programs.mkdir(parents=True)
    (programs.parent / "qwed-setup").write_text(f"made from {minor}\n")
    program(programs / "python", "#!/bin/sh\nexit 0\n")
    program(programs / "pytest", f'#!/bin/sh\necho "$*"\nexit {result}\n')


def test_test_pythons_says_which_it_found_which_are_missing_and_where_the_tests_failed(copy: Path) -> None:
    path = bare(copy, "sed")
    for minor, result in ((12, 0), (13, 1)):
        interpreter(Path(path) / f"python3.{minor}", minor)
        prepared(copy, minor, result)
    done = run("sh scripts/test-pythons -k words", copy, PATH=path, PYENV_ROOT=str(copy / "none"), PYTHONS="")
    assert [line.removeprefix("qwed: ") for line in done.stderr.splitlines()] == [
        "Python 3.11: missing, will not be tested",
        f"Python 3.12: {path}/python3.12",
        f"Python 3.13: {path}/python3.13",
        "to test on a missing one: install it (pyenv install 3.x), "
        "or name all with PYTHONS='/path/to/python3.x ...' make test-pythons",
        "testing with Python 3.12.0",
        "testing with Python 3.13.0",
        "the tests passed on: 3.12; failed on: 3.13; not tested, missing here: 3.11",
    ]
    assert done.returncode == 1
    assert [line.split()[-2:] for line in done.stdout.splitlines()] == [["-k", "words"]] * 2


def test_test_pythons_finds_those_of_pyenv(copy: Path) -> None:
    programs = copy / "pyenv" / "versions" / "3.12.7" / "bin"
    programs.mkdir(parents=True)
    interpreter(programs / "python", 12)
    prepared(copy, 12, 0)
    path = bare(copy, "sed")
    done = run("sh scripts/test-pythons", copy, PATH=path, PYENV_ROOT=str(copy / "pyenv"), PYTHONS="")
    assert done.returncode == 0
    assert f"Python 3.12: {programs}/python" in done.stderr
    assert done.stderr.endswith("passed on: 3.12; not tested, missing here: 3.11 3.13\n")


def test_test_pythons_without_any_fails(copy: Path) -> None:
    done = run("sh scripts/test-pythons", copy, PATH=bare(copy, "sed"), PYENV_ROOT=str(copy / "none"), PYTHONS="")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("missing, will not be tested") == 3


def test_test_pythons_refuses_what_is_not_a_python_that_is_new_enough(copy: Path) -> None:
    done = run("sh scripts/test-pythons", copy, PYTHONS=program(copy / "old", TOO_OLD))
    assert done.returncode == 1
    assert done.stderr == f"qwed: `{copy}/old` in PYTHONS is not a Python 3.11 or newer that runs\n"


def test_every_text_names_the_same_versions_of_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    versions = [f"3.{name.removeprefix(prefix)}" for name in project["classifiers"] if name.startswith(prefix)]
    assert project["requires-python"] == f">={versions[0]}"
    listed = f"{', '.join(versions[:-1])} and {versions[-1]}"
    assert f"Python {versions[0]} or newer (tested on {listed})" in (ROOT / "README.md").read_text()
    for name in ("Makefile", "CONTRIBUTING.md"):
        assert f"on each of Python {listed}" in (ROOT / name).read_text(), name


def test_make_alone_lists_the_verbs() -> None:
    done = subprocess.run(["make"], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60)
    assert [line.split()[:2] for line in done.stdout.splitlines()][:3] == [
        ["make", "help"],
        ["make", "setup"],
        ["make", "run"],
    ]


def test_ci_runs_the_commands_contributing_names() -> None:
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text().splitlines() if line.startswith("make ")]
    assert lines == ["make test", "make test-postgres", "make test-crewai", "make test-servers", "make check"]
    assert os.access(script, os.X_OK)


def test_what_cannot_be_installed_fails_the_setup_with_all_that_was_said(copy: Path) -> None:
    venv = copy / "venv" / "bin"
    venv.mkdir(parents=True)
    program(venv / "python", "#!/bin/sh\necho Collecting one\necho 'no room left' >&2\nexit 2\n")
    done = run("set -eu; . scripts/common; pip_install venv one; echo never", copy)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no room left" in done.stderr


def test_a_long_installation_says_how_far_it_is(copy: Path) -> None:
    venv = copy / "venv" / "bin"
    venv.mkdir(parents=True)
    fetched = "i=0; while [ $i -lt 60 ]; do echo Collecting $i; i=$((i + 1)); done"
    program(venv / "python", f"#!/bin/sh\n{fetched}\necho Installing collected packages: all\n")
    done = run("set -eu; . scripts/common; pip_install venv all", copy)
    assert done.returncode == 0
    assert [line.strip() for line in done.stderr.splitlines()] == [
        "qwed:   25 packages fetched",
        "qwed:   50 packages fetched",
        "qwed:   unpacking 60 packages",
    ]
