"""`qwed hook`: asked by a coding agent before each of its tools, it answers with its exit code.

0 lets the tool run and 2 stops it; agents take every other end of a hook for a yes. So everything here ends in one of
the two, and it is 2 unless a server has said yes. Nothing is imported at the top that could fail or take long, and
nothing is written through Python's streams: a reader who has left must not change how the process ends.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from qwed_sdk.hook.asking import Verdict
    from qwed_sdk.hook.call import Call
    from qwed_sdk.hook.rows import Rows

ALLOW, BLOCK = 0, 2
TIMEOUT = 25.0
"""Below the shortest limit an agent sets for its hooks, which is 30 seconds."""
_LONGEST = 3600.0
_GRACE = 5.0
_SHARE = 0.9
"""Of the time for the whole, what the server has: an answer too late is told better than none."""
_AGENTS = ("claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "windsurf")


class Options(NamedTuple):
    """What was asked on the command line."""

    timeout: float = TIMEOUT
    wait: float = 0.0
    ask: bool = False
    actions: str | None = None
    json: bool = False
    check: bool = False
    print_settings: str | None = None


@dataclass(slots=True)
class _End:
    """How the process ends if it is stopped now: with a no, until the tool is known to have run already."""

    code: int = BLOCK
    told: bool = False
    """Whether the reason is being told already: then time that runs out adds no second one."""


def main(arguments: Sequence[str]) -> int:
    """Decide on the tool call on standard input: 0 it may run, 2 it may not, and nothing else."""
    end = _End()
    try:
        return _run(list(arguments), end)
    except BaseException as error:  # noqa: BLE001 - an agent takes an exception, even a KeyboardInterrupt, for a yes
        # A surprise is named, its text is not: it may quote anything.
        name = type(error).__name__
        return _told(f"qwed: something failed that never should ({name}), so the answer is no", end.code)


def _told(text: str, code: int) -> int:
    _write(2, text)
    return code


def _write(descriptor: int, text: str) -> bool:
    """Whether it was written: where nobody listens, the exit code is the answer."""
    plain = "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)
    data = f"{plain}\n".encode(errors="backslashreplace")
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return False
    return True


def _run(arguments: list[str], end: _End) -> int:
    from qwed_sdk.errors import QWEDError
    from qwed_sdk.hook.call import Unusable

    try:
        return _done(arguments, end)
    except (Unusable, QWEDError) as error:
        return _told(f"qwed: {error}", end.code)


def _done(arguments: list[str], end: _End) -> int:
    if "--help" in arguments:
        from qwed.cli import app

        return app.run(["hook", "--help"])
    options = _read(arguments)
    if options.print_settings is not None:
        return _print_settings(options)
    _catch_signals(end)
    stop = _watch(options.timeout + options.wait, end)
    try:
        return _check(options) if options.check else _decide(options, end)
    finally:
        stop()


# The command line: argparse, because typer takes as long to import as everything else together


def _read(arguments: list[str]) -> Options:
    import argparse

    from qwed_sdk.hook.call import Unusable

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise Unusable(f"{message.replace(chr(39), '`')}; `qwed hook --help` tells more")

    parser = Parser(prog="qwed hook", add_help=False, allow_abbrev=False)
    parser.add_argument("--timeout", type=_seconds, default=TIMEOUT)
    parser.add_argument("--wait", type=_seconds, default=0.0)
    parser.add_argument("--actions")
    parser.add_argument("--print-settings", choices=_AGENTS)
    for name in ("--ask", "--json", "--check"):
        parser.add_argument(name, action="store_true")
    return Options(**vars(parser.parse_args(arguments)))


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _LONGEST:
        raise ArgumentTypeError(f"`{text}` is no number of seconds from 0 to {_LONGEST:g}")
    return number


def _print_settings(options: Options) -> int:
    import shlex

    from qwed_sdk.hook.snippets import Wanted, snippet

    words = ["qwed", "hook", *_words(options._replace(print_settings=None))]
    wanted = Wanted(shlex.join(words), options.timeout + options.wait)
    _write(1, snippet(options.print_settings or "", wanted))
    return 0


# Whatever would end the process otherwise


def _die(text: str, end: _End) -> NoReturn:
    _write(2, f"qwed: {text}")
    os._exit(end.code)


def _catch_signals(end: _End) -> None:
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU"):
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda got, _frame: _die(f"stopped by {signal.Signals(got).name}", end))


def _watch(seconds: float, end: _End) -> Callable[[], None]:
    """End the process after `seconds`, whatever it waits for; what is returned calls that off."""
    import signal
    import threading

    over = threading.Event()

    def watching() -> None:
        if not over.wait(seconds):
            if end.told:
                os._exit(end.code)
            _die(f"no decision within {seconds:g} seconds, so the answer is no", end)

    def call_off() -> None:
        over.set()
        signal.setitimer(signal.ITIMER_REAL, 0)

    # A thread needs the interpreter. Where something holds on to that, the kernel ends us by its own alarm.
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)
    threading.Thread(target=watching, daemon=True).start()
    return call_off


# The decision


def _decide(options: Options, end: _End) -> int:
    from qwed_sdk.hook.forms import read_call

    call = read_call(_input())
    if call.is_over:
        end.code = ALLOW  # it has run: there is nothing left to stop
        return _report(call, options)
    from qwed_sdk.hook.actions import action_of
    from qwed_sdk.hook.asking import Patience, agent_from, decide

    _without_pictures()
    action = action_of(call, _rows(options.actions))
    verdict = decide(call, action, agent_from(os.environ), Patience(options.timeout * _SHARE, options.wait))
    end.told = True
    return _answer(call, verdict, options)


def _without_pictures() -> None:
    """Spare the agent a quarter of its wait: httpx looks for rich and click, which only its own command needs."""
    import sys

    if "httpx" not in sys.modules:
        sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # how Python writes "not to be had"


def _input() -> bytes:
    """What is on standard input, and one byte more than may be."""
    from qwed_sdk.hook.call import Unusable
    from qwed_sdk.hook.reading import LARGEST

    data = bytearray()
    try:
        if os.isatty(0):
            raise Unusable('pipe one tool call to standard input, such as {"tool": "search_web", "parameters": {}}')
        while len(data) <= LARGEST:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                break
            data += chunk
    except OSError as error:
        raise Unusable(f"standard input cannot be read: {error.strerror}") from None
    return bytes(data)


def _rows(file: str | None) -> "Rows":
    from qwed_sdk.hook.call import Unusable
    from qwed_sdk.hook.reading import LARGEST
    from qwed_sdk.hook.rows import rows_from

    if file is None:
        return {}
    try:
        with open(file, "rb") as source:
            return rows_from(source.read(LARGEST + 1), f"the table in {file}")
    except OSError as error:
        raise Unusable(f"the table in {file} cannot be read: {error.strerror}") from None


def _answer(call: "Call", verdict: "Verdict", options: Options) -> int:
    from qwed_sdk.hook.answers import hand_over, said_of, whole

    refusal = verdict.refusal
    if options.json:
        _write(1, whole(verdict))
    elif options.ask and refusal is not None and refusal.decision == "PENDING" and call.can_ask:
        # The yes to a question nobody hears would be a yes.
        return ALLOW if _write(1, hand_over(refusal)) else _told(str(refusal), BLOCK)
    elif said := said_of(call.agent, refusal):
        _write(1, said)
    return ALLOW if refusal is None else _told(str(refusal), BLOCK)


def _report(call: "Call", options: Options) -> int:
    from qwed_sdk.hook.asking import agent_from, report

    report(call, agent_from(os.environ), options.timeout * _SHARE)
    return ALLOW


def _check(options: Options) -> int:
    from qwed_sdk.hook.asking import agent_from, working

    _rows(options.actions)
    _write(1, working(agent_from(os.environ), options.timeout * _SHARE))
    return 0


# The same command as typer shows it. The quick way is `main`: it comes before typer is imported


def add_to(app: Any) -> None:
    """Add the command to those that are listed."""
    from typing import Annotated

    import typer

    def hook(
        timeout: Annotated[
            float, typer.Option(metavar="SECONDS", help="after which the answer is no, a person's time not counted")
        ] = TIMEOUT,
        wait: Annotated[float, typer.Option(metavar="SECONDS", help="for a person, where one must approve")] = 0.0,
        ask: Annotated[
            bool, typer.Option("--ask", help="let the person before Claude Code decide instead of an approver")
        ] = False,
        actions: Annotated[str | None, typer.Option(metavar="FILE", help="more rows for the table of tools")] = None,
        json: Annotated[bool, typer.Option("--json", help="print the whole answer")] = False,
        check: Annotated[bool, typer.Option("--check", help="only see whether everything is in place")] = False,
        print_settings: Annotated[
            str | None, typer.Option(metavar="AGENT", help=f"print what to paste: {', '.join(_AGENTS)}")
        ] = None,
    ) -> int:
        given = Options(timeout, wait, ask, actions, json, check, print_settings)
        return main(_words(given))

    app.command("hook", help=_HELP)(hook)


_HELP = """Decide on a tool call, as the hook of a coding agent.

Reads one tool call as JSON from standard input and asks the server that QWED_BASE_URL names, for the agent
QWED_AGENT_ID with QWED_AGENT_TOKEN.

Exit code: 0 the tool may run, 2 it may not or that could not be decided; nothing else.
"""


def _words(options: Options) -> list[str]:
    """The arguments that mean these options."""
    words: list[str] = []
    for name, value in options._asdict().items():
        if value != getattr(Options(), name):
            option = f"--{name.replace('_', '-')}"
            words += [option] if value is True else [option, f"{value:g}" if isinstance(value, float) else str(value)]
    return words
