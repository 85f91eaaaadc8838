"""Startup hook guard (specification 9.7, environment integrity)."""

import hashlib
import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

import qwed
from qwed.guards.startup_hooks import StartupHookGuard, require_clean_environment, verify_environment

SOURCES = str(Path(qwed.__file__).parents[1])
SHIM = "import os; {} == 'local'; enabled and __import__('_distutils_hack').add_shim(); "
HACK = """
import sys, os
class Finder:
    def find_spec(self, fullname, path, target=None):
        if fullname == 'distutils':
            import importlib
            return importlib.import_module('setuptools._distutils').__spec__
def add_shim():
    sys.meta_path.insert(0, Finder())
"""
FINDER = """
import sys
from importlib.util import spec_from_file_location
from pathlib import Path
MAPPING = {'pkg': '/src/pkg'}
class Finder:
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        if fullname in MAPPING:
            return spec_from_file_location(fullname, Path(MAPPING[fullname]) / '__init__.py')
def install():
    sys.meta_path.append(Finder)
"""
COVERAGE = (
    'import sys; exec(\'import os\\n\\nif os.getenv("COVERAGE_PROCESS_START") or os.getenv("COVERAGE_PROCESS_CONFIG"):'
    '\\n try:\\n  import coverage\\n except:\\n  pass\\n else:\\n  coverage.process_startup(slug="pth")\')'
)
NAMESPACE = (
    "import sys, types, os;has_mfs = sys.version_info > (3, 5);p = os.path.join(sys._getframe(1).f_locals['sitedir'], "
    "*('google', 'cloud'));importlib = has_mfs and __import__('importlib.util');has_mfs and "
    "__import__('importlib.machinery');m = has_mfs and sys.modules.setdefault('google.cloud', "
    "importlib.util.module_from_spec(importlib.machinery.PathFinder.find_spec('google.cloud', [os.path.dirname(p)])));"
    "m = m or sys.modules.setdefault('google.cloud', types.ModuleType('google.cloud'));mp = (m or []) and "
    "m.__dict__.setdefault('__path__',[]);(p not in mp) and mp.append(p);"
    "m and setattr(sys.modules['google'], 'cloud', m)"
)
APPORT = """
# install the apport exception handler if available
try:
    import apport_python_hook
except ImportError:
    pass
else:
    apport_python_hook.install()
"""


@pytest.fixture
def layout(tmp_path):
    """Return a site directory to write files to, with a check of this directory alone."""
    directory = tmp_path / "site-packages"
    directory.mkdir(mode=0o755)

    class Layout:
        path = directory

        def write(self, name, text):
            file = directory / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
            return file

        def verify(self, environ=None, **options):
            paths = {"site_directories": [str(directory)], "search_path": ["", str(directory)]}
            return verify_environment(**paths, environ=environ or {}, **options)

    return Layout()


def test_this_very_process_is_clean():
    assert StartupHookGuard().verify() == ()
    assert require_clean_environment(frozenset()) is None


def test_an_empty_or_missing_site_directory_is_clean(layout, tmp_path):
    assert layout.verify() == ()
    assert verify_environment(site_directories=[str(tmp_path / "no")], search_path=[], environ={}) == ()


@pytest.mark.parametrize(
    "line",
    [
        COVERAGE,
        "import coverage; coverage.process_startup()",
        NAMESPACE,
        "import sys; sys.__plen = len(sys.path)",
        "# import evil",
        "",
        "/no/such/directory",
        "./pkg.egg",
        "importlib_resources",
    ],
)
def test_a_line_that_standard_tools_write_passes_whatever_the_file_is_called(layout, line):
    layout.write("zzz.pth", line + "\n")
    assert layout.verify() == ()


@pytest.mark.parametrize(
    "enabled",
    [
        "var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'local')",
        "var = 'SETUPTOOLS_USE_DISTUTILS'; enabled = os.environ.get(var, 'stdlib')",
        "enabled = os.environ.get('SETUPTOOLS_USE_DISTUTILS')",
    ],
)
def test_the_setuptools_shim_passes_beside_its_module_and_fails_without_it(layout, enabled):
    layout.write("distutils-precedence.pth", SHIM.format(enabled))
    assert len(layout.verify()) == 1
    layout.write("_distutils_hack/__init__.py", HACK)
    assert layout.verify() == ()
    layout.write("_distutils_hack/__init__.py", HACK + "os.system('id')\n")
    assert len(layout.verify()) == 1


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import __editable___pkg_1_0_finder; __editable___pkg_1_0_finder.install()", "__editable___pkg_1_0_finder"),
        ("import _virtualenv", "_virtualenv"),
        ("import _editable_impl_pkg", "_editable_impl_pkg"),
    ],
)
def test_a_finder_passes_for_what_it_says_and_not_for_its_name(layout, line, module):
    layout.write("x.pth", line)
    layout.write(f"{module}.py", FINDER)
    assert layout.verify() == ()
    for evil in (
        "import subprocess",
        "import socket as sys",
        "import os\nos.system('id')",
        "import os as o\no.system('id')",
        "from os import system\nsystem('id')",
        "import os\nf = os\nf.system('id')",
        "import os\ngetattr(os, 'sys' + 'tem')('id')",
        "import sys\nsys.modules['os'].system('id')",
        "exec('1')",
        "__import__('os').system('id')",
        "open('/tmp/x', 'w')",
        "import importlib\nimportlib.import_module('evil')",
        "from importlib import import_module as sys",
        "from . import evil",
        "from pathlib import Path\nPath('x').write_text('y')",
        "not python at all:",
        "x = 1" + " + 1" * 2_000,
    ):
        layout.write(f"{module}.py", FINDER + evil + "\n")
        assert len(layout.verify()) == 1, evil


@pytest.mark.parametrize(
    "line",
    [
        "import evil",
        "import\tevil",
        "import os; os.system('id')",
        "import sys; exec('import evil')",
        "import sys; exec(open('x').read())",
        COVERAGE.replace("import coverage", "import evil"),
        COVERAGE + "; import evil",
        NAMESPACE + "; import evil",
        NAMESPACE.replace("types.ModuleType", "evil.ModuleType"),
        SHIM.format("enabled = 'local'"),
        "import coverage; coverage.process_startup(); import evil",
        "import _virtualenv; import evil",
        "import " + "(" * 5000,
        "import x" + ";x" * 20_000,
        "import x; x" + ".x" * 2_000,
        "import x; " + "-" * 5_000 + "x",
        "import x; exec('x" + ".x" * 2_000 + "')",
    ],
)
def test_an_unknown_line_fails_with_the_file_and_the_hash_that_allows_it(layout, line):
    file = layout.write("distutils-precedence.pth", f"# comment\n{line}\n")
    (finding,) = layout.verify()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert (finding.path, finding.sha256) == (str(file), digest)
    assert layout.verify(allow=frozenset({digest.upper()})) == ()
    assert layout.verify(allow=frozenset({"0" * 64, ""})) == (finding,)


@pytest.mark.parametrize(
    "content",
    [
        b"/path\rimport evil",
        b"/path\r\nimport evil\r\n",
        b"\xef\xbb\xbfimport evil",
        b"\xff\xfeimport evil",
        b"import evil\x00",
        b"#" * (1 << 20) + b"\nimport evil",
    ],
)
def test_no_encoding_hides_a_line(layout, content):
    layout.write(".hidden.pth", content)
    assert len(layout.verify()) == 1


def test_what_only_looks_like_an_import_line_is_a_path_as_python_reads_it(layout):
    layout.write("x.pth", " import evil\n/path\x0bimport evil\n/path\u2028import evil\n")
    assert layout.verify() == ()


def test_a_path_where_anyone_may_put_a_module_fails(layout, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    layout.write("x.pth", f"{shared}\n{shared}/later/src\n")
    assert layout.verify() == ()
    shared.chmod(0o1777)
    assert len(layout.verify()) == 1
    layout.write("x.pth", f"{shared}/later/src\n")
    assert len(layout.verify()) == 1


def test_a_directory_and_a_dangling_link_named_pth_are_passed_over_as_python_does(layout):
    (layout.path / "d.pth").mkdir()
    (layout.path / "l.pth").symlink_to("/no/such/file")
    assert layout.verify() == ()


def test_the_sitecustomize_of_the_distribution_passes_and_any_other_fails(layout):
    layout.write("sitecustomize.py", APPORT)
    layout.write("usercustomize.py", '"""Nothing here."""\n')
    assert layout.verify() == ()
    file = layout.write("sitecustomize.py", APPORT + "import evil\n")
    (finding,) = layout.verify()
    assert finding.path == str(file)
    assert layout.verify(allow=frozenset({finding.sha256})) == ()


@pytest.mark.parametrize("name", ["usercustomize.py", "usercustomize/__init__.py", "sitecustomize.pyc"])
def test_a_customizer_of_any_kind_is_found(layout, name):
    layout.write(name, "import evil")
    assert [finding.path for finding in layout.verify()] == [str(layout.path / name)]


LOADING = ("PYTHONSTARTUP", "PYTHONHOME", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "LD_PRELOAD", "LD_AUDIT")


@pytest.mark.parametrize("name", [*LOADING, "DYLD_INSERT_LIBRARIES"])
def test_a_variable_that_loads_code_fails_and_an_empty_one_passes(layout, name):
    assert layout.verify(environ={name: "", "PYTHONPATH": "/x", "PATH": "/bin"}) == ()
    (finding,) = layout.verify(environ={name: "/opt/evil.so"})
    assert (finding.path, name in finding.reason) == ("/opt/evil.so", True)
    assert layout.verify(environ={name: "/opt/evil.so"}, allow=frozenset({finding.sha256})) == ()


def test_every_preloaded_library_is_named_and_hashed_by_its_content(layout, tmp_path):
    library = tmp_path / "a.so"
    library.write_bytes(b"code")
    findings = layout.verify(environ={"LD_PRELOAD": f"{library}:/b.so /c.so"})
    assert [finding.path for finding in findings] == [str(library), "/b.so", "/c.so"]
    assert findings[0].sha256 == hashlib.sha256(b"code").hexdigest()


@pytest.fixture
def environment(tmp_path):
    """Return the site directory of a real virtual environment, and a function that runs code in it."""
    root = tmp_path / "env"
    venv.create(root, with_pip=False, symlinks=True)
    (site,) = root.glob("lib/python*/site-packages")

    def run(code, **variables):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_"))}
        command = [str(root / "bin" / "python"), "-c", code]
        return subprocess.run(
            command, env={**inherited, "PYTHONPATH": SOURCES, **variables}, capture_output=True, text=True, cwd=tmp_path
        )

    return site, run


FIND = (
    "import json; from qwed.guards.startup_hooks import StartupHookGuard; "
    "print(json.dumps([finding.path for finding in StartupHookGuard().verify()]))"
)
REQUIRE = "from qwed.guards.startup_hooks import require_clean_environment; require_clean_environment(frozenset({}))"


def test_a_plain_virtual_environment_starts(environment):
    _, run = environment
    assert json.loads(run(FIND).stdout) == []


def test_an_editable_install_starts(environment):
    site, run = environment
    (site / "_editable_impl_qwed.pth").write_text(SOURCES)
    (site / "__editable__.pkg-1.0.pth").write_text(
        "import __editable___pkg_1_0_finder; __editable___pkg_1_0_finder.install()"
    )
    (site / "__editable___pkg_1_0_finder.py").write_text(FINDER)
    assert json.loads(run(FIND).stdout) == []


def test_a_hook_that_really_runs_aborts_the_start_naming_the_file(environment):
    site, run = environment
    hook = site / "helpful.pth"
    hook.write_text("import sys; sys.stderr.write('hook ran')\n")
    result = run(REQUIRE.format("()"))
    assert result.returncode == 1
    assert "hook ran" in result.stderr
    assert f"RuntimeError: the environment is compromised: `{hook}`" in result.stderr
    digest = hashlib.sha256(hook.read_bytes()).hexdigest()
    assert f"QWED_STARTUP_HOOKS_ALLOW={digest}" in result.stderr
    assert run(REQUIRE.format([digest])).returncode == 0


def test_a_sitecustomize_that_takes_itself_out_of_sight_is_found(environment):
    site, run = environment
    file = site / "sitecustomize.py"
    file.write_text("import sys; del sys.modules['sitecustomize']\nsys.modules['sitecustomize'] = sys\n")
    assert str(file) in json.loads(run(FIND).stdout)


def test_a_customizer_of_a_directory_that_left_the_path_is_found(environment, tmp_path):
    _, run = environment
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "sitecustomize.py").write_text(f"import sys; sys.path.remove({str(extra)!r})\n")
    result = run(FIND, PYTHONPATH=f"{extra}:{SOURCES}")
    assert json.loads(result.stdout) == [str(extra / "sitecustomize.py")]


def test_a_preload_variable_is_found_in_a_real_process(environment):
    _, run = environment
    assert json.loads(run(FIND, LD_PRELOAD="/no/such/library.so").stdout) == ["/no/such/library.so"]


def test_this_interpreter_needs_nothing_but_the_standard_library_to_check_itself(environment):
    _, run = environment
    code = FIND + "; import sys; print(sorted(set(sys.modules) & {'msgspec', 'httpx', 'cryptography'}))"
    assert run(code).stdout.splitlines()[1] == "[]"


def test_an_allowed_hook_that_changes_is_allowed_no_more(layout):
    file = layout.write("agent.pth", "import agent\n")
    allowed = frozenset({hashlib.sha256(file.read_bytes()).hexdigest()})
    assert layout.verify(allow=allowed) == ()
    file.write_text("import agent; import evil\n")
    assert [finding.path for finding in layout.verify(allow=allowed)] == [str(file)]


def test_every_file_is_named_and_the_known_ones_are_not(layout):
    layout.write("a.pth", "import coverage; coverage.process_startup()\n")
    layout.write("b.pth", "import evil\n")
    layout.write("c.pth", "import worse\nimport evil\n")
    layout.write("usercustomize.py", "import evil\n")
    names = [finding.path.rpartition("/")[2] for finding in layout.verify({"PYTHONHOME": "/opt/other"})]
    assert names == ["b.pth", "c.pth", "usercustomize.py", "other"]


def test_a_link_is_judged_by_what_it_leads_to(layout, tmp_path):
    target = tmp_path / "elsewhere"
    target.write_text("import evil\n")
    (layout.path / "fine.pth").symlink_to(target)
    (finding,) = layout.verify()
    assert finding.path == str(layout.path / "fine.pth")
    assert finding.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()


def test_a_file_too_large_to_read_fails_and_cannot_be_allowed(layout):
    layout.write("large.pth", b"#" * ((1 << 20) + 1))
    (finding,) = layout.verify()
    assert (finding.sha256, layout.verify(allow=frozenset({""}))) == ("", (finding,))


def test_a_line_after_a_harmless_one_is_read(layout):
    layout.write("mixed.pth", "# comment\n\nplain/path\nimport coverage; coverage.process_startup()\nimport evil\n")
    (finding,) = layout.verify()
    assert "`import evil`" in finding.reason


def test_the_guard_takes_hashes_from_any_iterable(layout):
    assert StartupHookGuard(allow=["0" * 64, " AB "]).verify() == ()


@pytest.mark.parametrize("name", ["json.py", "encodings/__init__.py", "ssl.so", "hashlib.pyc"])
def test_what_replaces_a_module_of_the_standard_library_is_found_where_it_would_be_searched_first(tmp_path, name):
    first, library = tmp_path / "first", os.path.dirname(os.__file__)
    file = first / name
    file.parent.mkdir(parents=True)
    file.write_text("import evil")
    for harmless in ("qwed_skill.py", "json.txt", "json/data.csv" if name != "json.py" else "xml/data.csv"):
        (first / harmless).parent.mkdir(exist_ok=True)
        (first / harmless).touch()

    def verify(path, **options):
        return verify_environment(site_directories=[], search_path=path, environ={}, **options)

    (finding,) = verify([str(first), library])
    assert (finding.path, "of the standard library" in finding.reason) == (str(file), True)
    assert finding.sha256 == hashlib.sha256(b"import evil").hexdigest()
    assert verify([str(first), library], allow=frozenset({finding.sha256})) == ()
    assert verify([library, str(first)]) == ()


def test_a_place_where_anyone_may_put_a_module_is_not_searched_before_the_standard_library(tmp_path, monkeypatch):
    directory = tmp_path / "open"
    directory.mkdir()
    library = os.path.dirname(os.__file__)
    monkeypatch.chdir(directory)
    for first in (str(directory), ""):
        assert verify_environment(site_directories=[], search_path=[first, library], environ={}) == ()
        directory.chmod(0o1777)
        (finding,) = verify_environment(site_directories=[], search_path=[first, library], environ={})
        assert (finding.path, "anyone may put a module there" in finding.reason) == (str(directory), True)
        directory.chmod(0o755)


def test_a_module_that_a_filter_of_warnings_imports_is_found(layout):
    filters = "error,ignore::DeprecationWarning,ignore:evil.text:UserWarning,always::evil.sub.Warned,ignore::x.Y:m:3"
    findings = layout.verify(environ={"PYTHONWARNINGS": filters})
    assert [finding.path for finding in findings] == ["evil.sub", "x"]
    assert all("PYTHONWARNINGS" in finding.reason for finding in findings)
    assert layout.verify(environ={"PYTHONWARNINGS": "error::ResourceWarning,,:"}) == ()
