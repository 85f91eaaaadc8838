"""Rules for tools with subcommands, and for administration tools with special rules: aws, cron, services, processes."""

import re

from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.command_model import NO_DATA, CommandCall, ShellAnalysis, Violation, Word, names_in
from qwed.guards._shell.options import Rule
from qwed.guards._shell.subcommand_tools import INSTALL, OPTIONS, SUBCOMMAND_TOOLS, Kinds, SubcommandTool
from qwed.model import EffectKind

_E = EffectKind
_OPTION_WITH_VALUE = names_in(
    """
    -n --namespace --context --profile --region --project -f --file -C --prefix --kubeconfig -H --host --cluster -p
    --workspace --filter --manifest-path
    """
)


def _subcommand_tool(analysis: ShellAnalysis, call: CommandCall) -> None:
    tool = SUBCOMMAND_TOOLS[call.name]
    verbs = _verbs(call.arguments)
    if not verbs:
        _report(analysis, tool.without_verb, call.line)
        return
    if verbs == ["run"] and call.name in ("npm", "pnpm", "yarn"):
        return
    two = "_".join(verbs[:2])
    if verbs[0] in tool.read_only_verbs or two in tool.read_only_verbs:
        _analyze_read(analysis, call, verbs)
    else:
        _report(analysis, _effects_of_verb(tool, verbs[0], two), call.line)
    _container_escape(analysis, call, verbs)
    _analyze_options(analysis, call)


def _analyze_options(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report options that write a file, run a program or address another machine."""
    option_kinds = OPTIONS.get(call.name, {})
    words = call.arguments
    for index, word in enumerate(words):
        option, has_value, text = word.text.partition("=")
        kind = option_kinds.get(option)
        if kind is None:
            continue
        value = word._replace(text=text) if has_value else words[index + 1] if index + 1 < len(words) else Word("")
        if kind in (_E.READ, _E.WRITE):
            analysis.add_file_effect(kind, value)
        else:
            analysis.report.add_effect(kind, call.line)


def _effects_of_verb(tool: SubcommandTool, verb: str, two: str) -> Kinds:
    if verb in tool.installs or two in tool.installs:
        return INSTALL
    return (_E.NETWORK,) if verb in tool.network_verbs or two in tool.network_verbs else tool.other


def _report(analysis: ShellAnalysis, kinds: Kinds, line: str) -> None:
    for kind in kinds:
        if kind is _E.WRITE:
            analysis.add_file_effect(kind, Word("."))
        else:
            analysis.report.add_effect(kind, line)


def _verbs(arguments: list[Word]) -> list[str]:
    verbs: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word.text in _OPTION_WITH_VALUE and verbs in ([], ["compose"]):
            next(rest, None)
        elif not word.is_option:
            verbs.append(word.text if word.is_exact else "?")
    return verbs or [word.text for word in arguments[:1] if word.is_option]


def _analyze_read(analysis: ShellAnalysis, call: CommandCall, verbs: list[str]) -> None:
    """Report reads of secrets, and settings that are changed with the verb that shows them."""
    if call.name in ("kubectl", "oc", "k") and (_names_secret(verbs) or "--raw" in call.texts):
        analysis.report.add_effect(_E.SECRET, call.line)
    elif verbs[1:2] == ["?"] and verbs[0] in ("get", "describe", "config"):
        analysis.report.add_unresolved(f"`{call.line[:64]}` is decided while it runs")
    elif verbs[0] in ("config", "env") and (_SETTING.intersection(verbs) or _SETTING.intersection(call.texts)):
        analysis.report.add_effect(_E.WRITE, call.line)
    elif _rewrites(call, verbs):
        analysis.add_file_effect(_E.WRITE, Word("."))
    elif verbs[0] in ("config", "get") and any(_SECRET_SETTING.search(verb) for verb in verbs[1:]):
        analysis.report.add_effect(_E.SECRET, call.line)


_SETTING = names_in("set unset edit delete -w -u")
_SECRET_SETTING = re.compile(r"(?i)_auth|token|passw|secret|\?\Z")


def _rewrites(call: CommandCall, verbs: list[str]) -> bool:
    """Return True for `npm version patch`, `terraform fmt` without `-check`, and the files that `terraform providers`
    writes."""
    if call.name in ("npm", "yarn", "pnpm"):
        return verbs[0] == "version" and len(verbs) > 1
    if call.name not in ("terraform", "tofu", "terragrunt"):
        return False
    shows = {"-check", "-write=false"} & set(call.texts)
    return (verbs[0] == "fmt" and not shows) or bool({"mirror", "lock"} & set(verbs[1:]))


def _names_secret(verbs: list[str]) -> bool:
    return any(re.match(r"secrets?\b|.*[/,]secrets?", verb) for verb in verbs[1:])


_HOST_ACCESS = re.compile(r"/:|/var/run/docker\.sock|--privileged|--pid=host|--net=host|--network=host|--volume=/:")
_CONTAINERS = names_in("docker podman nerdctl kubectl oc k crictl lxc")


def _container_escape(analysis: ShellAnalysis, call: CommandCall, verbs: list[str]) -> None:
    """Analyse commands inside containers, mounts of the host, and code in options."""
    if call.name in _CONTAINERS and verbs[0] in ("exec", "run", "debug"):
        _container_command(analysis, call.arguments)
    if any(_HOST_ACCESS.match(text) for text in call.texts):
        analysis.report.add_effect(_E.ADMIN, call.line)
    if verbs[0] in ("exec", "x", "dlx") and any(text in ("-c", "--call") for text in call.texts):
        analysis.report.add_violation(Violation.INLINE_CODE)
    if call.name in ("apt", "apt-get", "yum", "dnf") and any("::" in text for text in call.texts):
        analysis.report.add_violation(Violation.ESCAPE)
    if call.name in ("ansible", "vagrant") and any(text in ("-a", "--args", "-c") for text in call.texts):
        analysis.report.add_unresolved(f"`{call.name}` runs commands on other machines")


_RUN_VALUED = names_in(
    """
    -e --env -v --volume -w --workdir -u --user --name -p --publish --network --entrypoint -c --container -n --namespace
    --mount -l --label -h -m --memory --cpus --image --env-file --platform --add-host --context
    """
)


def _container_command(analysis: ShellAnalysis, arguments: list[Word]) -> None:
    """Analyse the command inside the container as if it ran on the host."""
    cut = next((index for index, word in enumerate(arguments) if word.text == "--"), -1)
    if cut >= 0:
        analysis.visit_command(arguments[cut + 1 :])
        return
    rest = iter(range(len(arguments)))
    operands = 0
    for index in rest:
        text = arguments[index].text
        if text in _RUN_VALUED:
            next(rest, None)
        elif not text.startswith("-"):
            operands += 1
            if operands == 3:
                analysis.visit_command(arguments[index:])
                return


_AWS_SECRETS = re.compile(
    r"get-secret|get-session|assume-role|get-parameter|create-access-key|get-login|get-authorization|decrypt|get-password"
    r"|export-credentials"
)
_AWS_DELETES = re.compile(r"delete|terminate|remove|rm|rb|deregister|purge")
_AWS_READS = re.compile(r"(?:describe|list|get|ls|lookup|search|help|head|batch-get|wait|tail|filter)\b|\Z")


def _aws(analysis: ShellAnalysis, call: CommandCall) -> None:
    verbs = _verbs(call.arguments)
    analysis.report.add_effect(_E.NETWORK, "amazonaws.com")
    verb = verbs[1] if len(verbs) > 1 else ""
    if _AWS_SECRETS.match(verb) or verbs[:1] == ["configure"]:
        analysis.report.add_effect(_E.SECRET, call.line)
    elif verbs[:1] == ["s3"] and verb in ("cp", "sync", "mv"):
        _aws_copy(analysis, verbs[2:4])
    elif _AWS_DELETES.match(verb):
        analysis.report.add_effect(_E.DELETE, call.line)
    elif not _AWS_READS.match(verb):
        analysis.report.add_effect(_E.ADMIN, call.line)


def _aws_copy(analysis: ShellAnalysis, paths: list[str]) -> None:
    for index, path in enumerate(paths):
        if not path.startswith("s3://"):
            analysis.add_file_effect(_E.WRITE if index else _E.READ, Word(path))


def _crontab(analysis: ShellAnalysis, call: CommandCall) -> None:
    if "-l" in call.texts and not {"-r", "-e"} & set(call.texts):
        return
    analysis.report.add_effect(_E.ADMIN, call.line)
    if call.stdin is not NO_DATA:
        analysis.report.add_violation(Violation.PERSISTENCE)


def _ssh_keygen(analysis: ShellAnalysis, call: CommandCall) -> None:
    if call.texts and re.match(r"-l|-B", call.texts[0]):
        for word in call.operands:
            analysis.add_file_effect(_E.READ, word)
        return
    _subcommand_tool(analysis, call)


_QUERY_WORDS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("service", "invoke-rc.d"), re.compile(r"status|--status-all")),
    **dict.fromkeys(("kill", "killall", "pkill"), re.compile(r"-[lL0]\Z")),
    **dict.fromkeys(
        ("dpkg", "rpm", "dpkg-query", "debsums"),
        re.compile(
            r"-(?:[lLsSpIcV]\Z|q|-list|-status|-search|-listfiles|-print-architecture|-get-selections|-version|-query|-contents"
            r"|-info)"
        ),
    ),
}
"""Words that make an administration tool read-only."""


def _admin_unless_query(analysis: ShellAnalysis, call: CommandCall) -> None:
    if not any(_QUERY_WORDS[call.name].match(text) for text in call.texts):
        analysis.report.add_effect(_E.ADMIN, call.line)


_CHANGES: dict[str, re.Pattern[str]] = {
    "journalctl": re.compile(r"--(?:vacuum|rotate|flush|sync|relinquish|setup-keys|update-catalog|pager)"),
    "sysctl": re.compile(r".*=|-w|-p|--write|--load|--system"),
    "mount": re.compile(r"[^-]|-a|-o"),
}
"""Words that make a read-only tool change something."""


def _changes(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(_CHANGES[call.name].match(text) for text in call.texts):
        analysis.report.add_effect(_E.ADMIN, call.line)


def _getent(analysis: ShellAnalysis, call: CommandCall) -> None:
    if call.texts and call.texts[0] in ("passwd", "shadow", "gshadow"):
        analysis.report.add_effect(_E.SECRET, f"/etc/{call.texts[0]}")


_PLAIN_VARIABLES = names_in(
    "PATH HOME USER SHELL LANG PWD TERM LOGNAME HOSTNAME VIRTUAL_ENV EDITOR TZ LC_ALL JAVA_HOME GOPATH NODE_ENV CI"
)


def _printenv(analysis: ShellAnalysis, call: CommandCall) -> None:
    if not call.arguments or not _PLAIN_VARIABLES.issuperset(call.texts):
        variable = call.operands[0].text if call.operands else "environment"
        analysis.report.add_effect(_E.SECRET, variable)


def _terminal(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse tmux and screen: a new window runs a command, and `send-keys` types one."""
    if call.texts and call.texts[0] in ("ls", "list-sessions", "-V", "-ls", "-list", "list-windows", "list-panes"):
        return
    analysis.report.add_effect(_E.EXECUTE, call.line)
    inner = [word for word in call.arguments if " " in word.text or "/" in word.text]
    if inner:
        analysis.report.add_violation(Violation.ESCAPE)
        run_text(analysis, inner[-1:], NO_DATA)


RULES: dict[str, Rule] = {
    **dict.fromkeys(SUBCOMMAND_TOOLS, _subcommand_tool),
    "aws": _aws,
    "crontab": _crontab,
    "ssh-keygen": _ssh_keygen,
    **dict.fromkeys(_QUERY_WORDS, _admin_unless_query),
    **dict.fromkeys(_CHANGES, _changes),
    "getent": _getent,
    "printenv": _printenv,
    **dict.fromkeys(("tmux", "screen"), _terminal),
}
