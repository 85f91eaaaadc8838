"""Worker inside the sandbox of the Python oracle: runs each program in a child process and reports its audit events.

It reads programs as JSON lines and writes a JSON line for each. With `inventory` it lists the functions of modules.
"""

import contextlib
import ctypes
import importlib
import inspect
import io
import json
import os
import resource
import sys
import time
import types
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

sys.path.insert(0, "/oracle")
import shell_worker

FILE_NAME = "program.py"
_SECONDS = 3.0
_MAX_EVENTS = 400
_CODE_EVENTS = frozenset({"exec", "code.__new__", "ctypes.cdata", "ctypes.string_at"})
"""Events of library code too, such as dataclasses; they count if the program itself causes them."""
_OF_IMPORTS = ("marshal.", "ctypes.", "open", "os.listdir", "os.scandir", "pickle.")
"""Events of an import, which only reads modules."""
_EVENTS = frozenset(
    """
    open os.remove os.rename os.mkdir os.rmdir os.chmod os.chown os.link os.symlink os.truncate os.utime
    os.setxattr os.removexattr os.system os.exec os.posix_spawn os.spawn os.fork os.forkpty os.startfile os.kill
    os.killpg os.listdir os.scandir subprocess.Popen pty.spawn socket.connect socket.bind socket.sendto
    socket.sendmsg socket.getaddrinfo socket.gethostbyname socket.gethostbyaddr ctypes.dlopen ctypes.dlsym
    ctypes.string_at ctypes.cdata exec ctypes.call_function shutil.rmtree shutil.copyfile shutil.move
    signal.pthread_kill pickle.find_class marshal.loads marshal.load sqlite3.connect webbrowser.open
    urllib.Request code.__new__ syslog.openlog syslog.syslog resource.setrlimit os.chdir tempfile.mkstemp
    tempfile.mkdtemp
    """.split()
)


def main() -> None:
    """Run the programs of the input."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    resident = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    for name, value in shell_worker.LIMITS:
        resource.setrlimit(name, (value, value))
    setup = json.loads(sys.stdin.readline())
    os.environ.clear()
    os.environ.update(setup["environment"])
    os.makedirs(shell_worker.PROJECT, exist_ok=True)
    for name, text in setup["files"].items():
        path = os.path.join(shell_worker.HOME, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    os.chdir(shell_worker.PROJECT)
    sys.path[:] = [path for path in sys.path if path != "/oracle"] + setup["packages"]
    for name in setup["preloaded"]:
        with suppress(Exception):
            importlib.import_module(name)
    if setup.get("inventory"):
        print(json.dumps(inventory(setup["inventory"])))
        return
    clean = shell_worker.Areas(("/home", "/tmp"))
    for line in sys.stdin:
        job = json.loads(line)
        report = run(job["code"], setup["canaries"], resident)
        report |= {"index": job["index"], "changes": clean.changes()}
        if report["changes"]:
            clean.restore(report["changes"])
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()


def run(code: str, canaries: dict[str, str], resident: set[int]) -> dict[str, Any]:
    """Run one program in a child process."""
    output, events = os.memfd_create("output"), os.memfd_create("events")
    child = os.fork()
    if child == 0:
        _be_program(code, output, events)
    status = _wait(child)
    shell_worker.end_processes(resident)
    text = os.pread(output, shell_worker.MAX_OUTPUT, 0)
    rows = [json.loads(line) for line in os.pread(events, 1 << 20, 0).splitlines() if line.endswith(b"]")]
    os.close(output)
    os.close(events)
    shown = [name for name, value in canaries.items() if value.encode() in text]
    return {
        "status": status,
        "events": rows,
        "canaries": shown,
        "error": text[-200:].decode("utf-8", "replace") if status else "",
    }


def _wait(child: int) -> int | None:
    if not shell_worker.wait(child, _SECONDS):
        return None
    with suppress(OSError):
        return os.waitpid(child, 0)[1]
    return None


def _be_program(code: str, output: int, events: int) -> None:
    """Become the program, and end."""
    status = 1
    try:
        nothing = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        for name, value in (
            (resource.RLIMIT_CPU, 3),
            (resource.RLIMIT_FSIZE, 8 << 20),
            (resource.RLIMIT_DATA, 1 << 30),
        ):
            resource.setrlimit(name, (value, value))
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", closefd=False), open(2, "w", closefd=False)
        sys.argv[:] = [FILE_NAME]
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        program = compile(code, FILE_NAME, "exec", dont_inherit=True)
        sys.addaudithook(_recorder(events))
        try:
            exec(program, module.__dict__)
            status = 0
        except SystemExit as end:
            status = 0 if end.code in (None, 0) else 1
    except BaseException as error:
        with suppress(BaseException):
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        with suppress(BaseException):
            _finish()
        with suppress(BaseException):
            sys.stdout.flush()
        os._exit(status)


def _finish() -> None:
    """Run what the program left for its end."""
    import atexit

    atexit._run_exitfuncs()


def _recorder(events: int) -> Any:
    """Return an audit hook that writes the events that matter."""
    count = 0
    write, dumps, frame_of = os.write, json.dumps, sys._getframe

    def record(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in _EVENTS or (event in _CODE_EVENTS and frame_of(1).f_code.co_filename != FILE_NAME):
            return
        if event.startswith(_OF_IMPORTS) and _is_importing(frame_of(1)):
            return
        count += 1
        if count <= _MAX_EVENTS:
            shown = [
                value if isinstance(value, int | str) or value is None else repr(value)[:100] for value in arguments[:3]
            ]
            with suppress(Exception):
                write(
                    events,
                    dumps([event, [value[:200] if isinstance(value, str) else value for value in shown]]).encode()
                    + b"\n",
                )

    return record


def _is_importing(frame: types.FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def inventory(names: list[str]) -> dict[str, dict[str, list[str]]]:
    """Return the callables of each module and of its classes, each with the names of its parameters."""
    listed = {}
    for name in names:
        with (
            suppress(BaseException),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            module = importlib.import_module(name)
            listed[name] = dict(sorted(_callables(module)))
    return listed


def _callables(module: types.ModuleType) -> Iterator[tuple[str, list[str]]]:
    for key, value in vars(module).items():
        if callable(value) or isinstance(value, types.ModuleType):
            yield key, _parameters(value)
        if isinstance(value, type) and not key.startswith("_"):
            for name in [name for name in vars(value) if not name.startswith("_")]:
                with suppress(Exception):
                    member = getattr(value, name)
                    if callable(member):
                        yield f"{key}.{name}", _parameters(member)


def _parameters(value: Any) -> list[str]:
    try:
        return [name for name in inspect.signature(value).parameters if name not in ("self", "cls", "args", "kwargs")]
    except (TypeError, ValueError):
        return []


if __name__ == "__main__":
    started = time.monotonic()
    main()
