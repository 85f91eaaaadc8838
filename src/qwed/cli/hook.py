"""`qwed hook`: decides on a tool call of a coding agent and answers with its exit code.

0 lets the tool run and 2 blocks it; agents treat every other end of a hook as permission. Everything here therefore
ends with one of the two, and with 2 unless a server has permitted the call. Nothing is imported at the top that could
fail or is slow, and nothing is written through Python's streams: a closed pipe must not change the exit code.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from qwed_sdk.hook.decide import HookDecision
    from qwed_sdk.hook.tool_call import ToolCall
    from qwed_sdk.hook.tool_mapping import ToolMappings

ALLOW, BLOCK = 0, 2
TIMEOUT = 25.0
"""Default time limit, below the shortest limit that an agent sets for its hooks (30 seconds)."""
_MAX_SECONDS = 3600.0
_GRACE = 5.0
_SERVER_SHARE = 0.9
"""Share of the time limit that the server has; the rest is for reporting its timeout."""
_AGENTS = ("claude-code", "codex", "copilot-cli", "cursor", "gemini-cli", "windsurf")


class HookOptions(NamedTuple):
    """Options of the command line."""

    timeout: float = TIMEOUT
    wait: float = 0.0
    ask: bool = False
    actions: str | None = None
    json: bool = False
    check: bool = False
    print_settings: str | None = None


@dataclass(slots=True)
class _ExitState:
    """Exit code if the process is stopped now: BLOCK, until the tool is known to have run already."""

    code: int = BLOCK
    reporting: bool = False
    """True while the reason is being printed: a timeout then prints no second one."""


def main(arguments: Sequence[str]) -> int:
    """Decide on the tool call on standard input; return 0 if it may run and 2 otherwise."""
    exit_state = _ExitState()
    try:
        return _run(list(arguments), exit_state)
    except BaseException as error:  # noqa: BLE001 - an agent treats an exception, even a KeyboardInterrupt, as permission
        # Only the type is printed: the text of an unexpected error may contain anything.
        name = type(error).__name__
        return _print_and_exit(f"qwed: internal error ({name}), so the tool call is denied", exit_state.code)


def _print_and_exit(text: str, code: int) -> int:
    _write(2, text)
    return code


def _write(descriptor: int, text: str) -> bool:
    """Write the text and return True if it was written; if not, the exit code is the only answer."""
    plain = "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)
    data = f"{plain}\n".encode(errors="backslashreplace")
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return False
    return True


def _run(arguments: list[str], exit_state: _ExitState) -> int:
    from qwed_sdk.errors import QWEDError, UsageError

    try:
        return _dispatch(arguments, exit_state)
    except (UsageError, QWEDError) as error:
        return _print_and_exit(f"qwed: {error}", exit_state.code)


def _dispatch(arguments: list[str], exit_state: _ExitState) -> int:
    if "--help" in arguments:
        from qwed.cli import app

        return app.run(["hook", "--help"])
    options = _parse_arguments(arguments)
    if options.print_settings is not None:
        return _print_settings(options)
    _catch_signals(exit_state)
    stop = _start_watchdog(options.timeout + options.wait, exit_state)
    try:
        return _check(options) if options.check else _decide(options, exit_state)
    finally:
        stop()


# Command line: argparse, because importing typer takes as long as everything else together


def _parse_arguments(arguments: list[str]) -> HookOptions:
    if not arguments:
        return HookOptions()
    import argparse

    from qwed_sdk.errors import UsageError

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise UsageError(f"{message.replace(chr(39), '`')}; see `qwed hook --help`")

    parser = Parser(prog="qwed hook", add_help=False, allow_abbrev=False)
    parser.add_argument("--timeout", type=_seconds, default=TIMEOUT)
    parser.add_argument("--wait", type=_seconds, default=0.0)
    parser.add_argument("--actions")
    parser.add_argument("--print-settings", choices=_AGENTS)
    for name in ("--ask", "--json", "--check"):
        parser.add_argument(name, action="store_true")
    return HookOptions(**vars(parser.parse_args(arguments)))


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= _MAX_SECONDS:
        raise ArgumentTypeError(f"`{text}` is not a number of seconds from 0 to {_MAX_SECONDS:g}")
    return number


def _print_settings(options: HookOptions) -> int:
    import shlex

    from qwed_sdk.hook.setup_snippets import HookCommand, settings_snippet

    words = ["qwed", "hook", *_to_arguments(options._replace(print_settings=None))]
    request = HookCommand(shlex.join(words), options.timeout + options.wait)
    _write(1, settings_snippet(options.print_settings or "", request))
    return 0


# Signals and timeouts, which would end the process with another exit code


def _die(text: str, exit_state: _ExitState) -> NoReturn:
    _write(2, f"qwed: {text}")
    os._exit(exit_state.code)


def _catch_signals(exit_state: _ExitState) -> None:
    import signal
    import threading

    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGXCPU"):
        number = getattr(signal, name)
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda got, _frame: _die(f"stopped by {signal.Signals(got).name}", exit_state))


def _start_watchdog(seconds: float, exit_state: _ExitState) -> Callable[[], None]:
    """Exit after `seconds`, whatever the process waits for; the returned function cancels the watchdog."""
    import signal
    import threading

    cancelled = threading.Event()

    def wait_and_exit() -> None:
        if not cancelled.wait(seconds):
            if exit_state.reporting:
                os._exit(exit_state.code)
            _die(f"no decision within {seconds:g} seconds, so the tool call is denied", exit_state)

    def cancel() -> None:
        cancelled.set()
        signal.setitimer(signal.ITIMER_REAL, 0)

    # The thread needs the GIL. If something keeps it, the alarm of the kernel ends the process.
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)
    threading.Thread(target=wait_and_exit, daemon=True).start()
    return cancel


# The decision


def _decide(options: HookOptions, exit_state: _ExitState) -> int:
    from qwed_sdk.hook.input_formats import read_call

    call = read_call(_read_stdin())
    if call.is_over:
        exit_state.code = ALLOW  # the tool has already run
        return _report(call, options)
    from qwed_sdk.hook.actions import action_of
    from qwed_sdk.hook.decide import HookTimeouts, agent_from, decide

    action = action_of(call, _load_rows(options.actions))
    verdict = decide(call, action, agent_from(os.environ), HookTimeouts(options.timeout * _SERVER_SHARE, options.wait))
    exit_state.reporting = True
    return _answer(call, verdict, options)


def _read_stdin() -> bytes:
    """Return standard input, up to one byte more than the limit."""
    from qwed_sdk.errors import UsageError
    from qwed_sdk.hook.input import MAX_INPUT_BYTES

    data = bytearray()
    try:
        if os.isatty(0):
            raise UsageError('pipe one tool call to standard input, such as {"tool": "search_web", "parameters": {}}')
        while len(data) <= MAX_INPUT_BYTES:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                break
            data += chunk
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from None
    return bytes(data)


def _load_rows(file: str | None) -> "ToolMappings":
    from qwed_sdk.errors import UsageError
    from qwed_sdk.hook.input import MAX_INPUT_BYTES
    from qwed_sdk.hook.tool_mapping import parse_mappings

    if file is None:
        return {}
    try:
        with open(file, "rb") as source:
            return parse_mappings(source.read(MAX_INPUT_BYTES + 1), f"the table in {file}")
    except OSError as error:
        raise UsageError(f"the table in {file} cannot be read: {error.strerror}") from None


def _answer(call: "ToolCall", verdict: "HookDecision", options: HookOptions) -> int:
    from qwed_sdk.hook.output import ask_person_output, json_output, output_for

    refusal = verdict.refusal
    if options.json:
        _write(1, json_output(verdict))
    elif options.ask and refusal is not None and refusal.decision == "PENDING" and call.can_ask:
        # If the question cannot be written, 0 would permit the call without asking.
        return ALLOW if _write(1, ask_person_output(refusal)) else _print_and_exit(str(refusal), BLOCK)
    elif output := output_for(call.agent, refusal):
        _write(1, output)
    return ALLOW if refusal is None else _print_and_exit(str(refusal), BLOCK)


def _report(call: "ToolCall", options: HookOptions) -> int:
    from qwed_sdk.hook.decide import agent_from, report_outcome

    report_outcome(call, agent_from(os.environ), options.timeout * _SERVER_SHARE)
    return ALLOW


def _check(options: HookOptions) -> int:
    from qwed_sdk.hook.decide import agent_from, check_setup

    _load_rows(options.actions)
    _write(1, check_setup(agent_from(os.environ), options.timeout * _SERVER_SHARE))
    return 0


# The command for typer's `--help`; calls go directly to `main`, before typer is imported


def add_to(app: Any) -> None:
    """Add the command, so that it is listed in `--help`."""
    from typing import Annotated

    import typer

    def hook(
        timeout: Annotated[
            float, typer.Option(metavar="SECONDS", help="time limit, after which the call is denied; excludes --wait")
        ] = TIMEOUT,
        wait: Annotated[float, typer.Option(metavar="SECONDS", help="time to wait for an approval")] = 0.0,
        ask: Annotated[
            bool, typer.Option("--ask", help="let the user of Claude Code decide instead of an approver")
        ] = False,
        actions: Annotated[
            str | None, typer.Option(metavar="FILE", help="file with additional rows for the table of tools")
        ] = None,
        json: Annotated[bool, typer.Option("--json", help="print the complete response")] = False,
        check: Annotated[bool, typer.Option("--check", help="only check the configuration")] = False,
        print_settings: Annotated[
            str | None, typer.Option(metavar="AGENT", help=f"print the settings to paste for {', '.join(_AGENTS)}")
        ] = None,
    ) -> int:
        options = HookOptions(timeout, wait, ask, actions, json, check, print_settings)
        return main(_to_arguments(options))

    app.command("hook", help=_HELP)(hook)


_HELP = """Decide on a tool call, as the hook of a coding agent.

Reads one tool call as JSON from standard input and verifies it with the server in QWED_BASE_URL, for the agent in
QWED_AGENT_ID with the token in QWED_AGENT_TOKEN.

Exit code: 0 the tool may run, 2 it may not or the decision failed; no other code is used.
"""


def _to_arguments(options: HookOptions) -> list[str]:
    """Return the command-line arguments for these options."""
    words: list[str] = []
    for name, value in options._asdict().items():
        if value != getattr(HookOptions(), name):
            option = f"--{name.replace('_', '-')}"
            words += [option] if value is True else [option, f"{value:g}" if isinstance(value, float) else str(value)]
    return words
