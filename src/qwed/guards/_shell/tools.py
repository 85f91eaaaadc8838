"""What a verb of a family does, and the few tools with ways of their own: aws, cron, services, processes."""

import re

from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.families import FAMILIES, INSTALL, OPTIONS, Family, Kinds
from qwed.guards._shell.model import NOTHING, Call, Look, Violation, Word, names_in
from qwed.guards._shell.options import Rule
from qwed.words import EffectKind

_E = EffectKind
_OPTION_WITH_VALUE = names_in(
    """
    -n --namespace --context --profile --region --project -f --file -C --prefix --kubeconfig -H --host --cluster -p
    --workspace --filter --manifest-path
    """
)


def _family(look: Look, call: Call) -> None:
    family = FAMILIES[call.name]
    verbs = _verbs(call.arguments)
    if not verbs:
        _report(look, family.bare, call.line)
        return
    if verbs == ["run"] and call.name in ("npm", "pnpm", "yarn"):
        return
    two = "_".join(verbs[:2])
    if verbs[0] in family.looks or two in family.looks:
        _looked(look, call, verbs)
    else:
        _report(look, _done(family, verbs[0], two), call.line)
    _escape(look, call, verbs)
    _judge_options(look, call)


def _judge_options(look: Look, call: Call) -> None:
    """Options of a family that write a file, run a program or turn to another machine."""
    telling = OPTIONS.get(call.name, {})
    words = call.arguments
    for at, word in enumerate(words):
        option, given, text = word.text.partition("=")
        kind = telling.get(option)
        if kind is None:
            continue
        value = word._replace(text=text) if given else words[at + 1] if at + 1 < len(words) else Word("")
        if kind in (_E.READ, _E.WRITE):
            look.file(kind, value)
        else:
            look.report.effect(kind, call.line)


def _done(family: Family, verb: str, two: str) -> Kinds:
    if verb in family.installs or two in family.installs:
        return INSTALL
    return (_E.NETWORK,) if verb in family.asks or two in family.asks else family.other


def _report(look: Look, kinds: Kinds, line: str) -> None:
    for kind in kinds:
        if kind is _E.WRITE:
            look.file(kind, Word("."))
        else:
            look.report.effect(kind, line)


def _verbs(arguments: list[Word]) -> list[str]:
    found: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if word.text in _OPTION_WITH_VALUE and found in ([], ["compose"]):
            next(rest, None)
        elif not word.is_option:
            found.append(word.text if word.known else "?")
    return found or [word.text for word in arguments[:1] if word.is_option]


def _looked(look: Look, call: Call, verbs: list[str]) -> None:
    """Looking at a secret, and the settings that are changed with the verb that shows them."""
    if call.name in ("kubectl", "oc", "k") and (_names_secret(verbs) or "--raw" in call.texts):
        look.report.effect(_E.SECRET, call.line)
    elif verbs[1:2] == ["?"] and verbs[0] in ("get", "describe", "config"):
        look.report.unclear(f"`{call.line[:64]}` is decided while it runs")
    elif verbs[0] in ("config", "env") and (_SETTING.intersection(verbs) or _SETTING.intersection(call.texts)):
        look.report.effect(_E.WRITE, call.line)
    elif _rewrites(call, verbs):
        look.file(_E.WRITE, Word("."))
    elif verbs[0] in ("config", "get") and any(_SECRET_SETTING.search(verb) for verb in verbs[1:]):
        look.report.effect(_E.SECRET, call.line)


_SETTING = names_in("set unset edit delete -w -u")
_SECRET_SETTING = re.compile(r"(?i)_auth|token|passw|secret|\?\Z")


def _rewrites(call: Call, verbs: list[str]) -> bool:
    """`npm version patch`, `terraform fmt` without `-check`, and what `terraform providers` keeps."""
    if call.name in ("npm", "yarn", "pnpm"):
        return verbs[0] == "version" and len(verbs) > 1
    if call.name not in ("terraform", "tofu", "terragrunt"):
        return False
    shows = {"-check", "-write=false"} & set(call.texts)
    return (verbs[0] == "fmt" and not shows) or bool({"mirror", "lock"} & set(verbs[1:]))


def _names_secret(verbs: list[str]) -> bool:
    return any(re.match(r"secrets?\b|.*[/,]secrets?", verb) for verb in verbs[1:])


_MACHINE = re.compile(r"/:|/var/run/docker\.sock|--privileged|--pid=host|--net=host|--network=host|--volume=/:")
_CONTAINERS = names_in("docker podman nerdctl kubectl oc k crictl lxc")


def _escape(look: Look, call: Call, verbs: list[str]) -> None:
    """Commands inside containers, mounts of the whole machine, and code in options."""
    if call.name in _CONTAINERS and verbs[0] in ("exec", "run", "debug"):
        _inside(look, call.arguments)
    if any(_MACHINE.match(text) for text in call.texts):
        look.report.effect(_E.ADMIN, call.line)
    if verbs[0] in ("exec", "x", "dlx") and any(text in ("-c", "--call") for text in call.texts):
        look.report.violate(Violation.INLINE_CODE)
    if call.name in ("apt", "apt-get", "yum", "dnf") and any("::" in text for text in call.texts):
        look.report.violate(Violation.ESCAPE)
    if call.name in ("ansible", "vagrant") and any(text in ("-a", "--args", "-c") for text in call.texts):
        look.report.unclear(f"`{call.name}` runs what it is given elsewhere")


_RUN_VALUED = names_in(
    """
    -e --env -v --volume -w --workdir -u --user --name -p --publish --network --entrypoint -c --container -n --namespace
    --mount -l --label -h -m --memory --cpus --image --env-file --platform --add-host --context
    """
)


def _inside(look: Look, arguments: list[Word]) -> None:
    """The command inside the container; what it touches is said as if it were here."""
    cut = next((at for at, word in enumerate(arguments) if word.text == "--"), -1)
    if cut >= 0:
        look.command(arguments[cut + 1 :])
        return
    rest = iter(range(len(arguments)))
    named = 0
    for at in rest:
        text = arguments[at].text
        if text in _RUN_VALUED:
            next(rest, None)
        elif not text.startswith("-"):
            named += 1
            if named == 3:
                look.command(arguments[at:])
                return


_AWS_SECRETS = re.compile(
    r"get-secret|get-session|assume-role|get-parameter|create-access-key|get-login|get-authorization|decrypt|get-password"
    r"|export-credentials"
)
_AWS_DELETES = re.compile(r"delete|terminate|remove|rm|rb|deregister|purge")
_AWS_READS = re.compile(r"(?:describe|list|get|ls|lookup|search|help|head|batch-get|wait|tail|filter)\b|\Z")


def _aws(look: Look, call: Call) -> None:
    verbs = _verbs(call.arguments)
    look.report.effect(_E.NETWORK, "amazonaws.com")
    verb = verbs[1] if len(verbs) > 1 else ""
    if _AWS_SECRETS.match(verb) or verbs[:1] == ["configure"]:
        look.report.effect(_E.SECRET, call.line)
    elif verbs[:1] == ["s3"] and verb in ("cp", "sync", "mv"):
        _aws_copy(look, verbs[2:4])
    elif _AWS_DELETES.match(verb):
        look.report.effect(_E.DELETE, call.line)
    elif not _AWS_READS.match(verb):
        look.report.effect(_E.ADMIN, call.line)


def _aws_copy(look: Look, places: list[str]) -> None:
    for at, place in enumerate(places):
        if not place.startswith("s3://"):
            look.file(_E.WRITE if at else _E.READ, Word(place))


def _crontab(look: Look, call: Call) -> None:
    if "-l" in call.texts and not {"-r", "-e"} & set(call.texts):
        return
    look.report.effect(_E.ADMIN, call.line)
    if call.fed is not NOTHING:
        look.report.violate(Violation.PERSISTENCE)


def _ssh_keygen(look: Look, call: Call) -> None:
    if call.texts and re.match(r"-l|-B", call.texts[0]):
        for word in call.operands:
            look.file(_E.READ, word)
        return
    _family(look, call)


_ONLY_ASKS: dict[str, re.Pattern[str]] = {
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
"""Administration, unless one of the words says that it only asks."""


def _asks_or_changes(look: Look, call: Call) -> None:
    if not any(_ONLY_ASKS[call.name].match(text) for text in call.texts):
        look.report.effect(_E.ADMIN, call.line)


_CHANGES: dict[str, re.Pattern[str]] = {
    "journalctl": re.compile(r"--(?:vacuum|rotate|flush|sync|relinquish|setup-keys|update-catalog|pager)"),
    "sysctl": re.compile(r".*=|-w|-p|--write|--load|--system"),
    "mount": re.compile(r"[^-]|-a|-o"),
}
"""Harmless, unless one of the words changes something."""


def _changes(look: Look, call: Call) -> None:
    if any(_CHANGES[call.name].match(text) for text in call.texts):
        look.report.effect(_E.ADMIN, call.line)


def _getent(look: Look, call: Call) -> None:
    if call.texts and call.texts[0] in ("passwd", "shadow", "gshadow"):
        look.report.effect(_E.SECRET, f"/etc/{call.texts[0]}")


_PLAIN_VARIABLES = names_in(
    "PATH HOME USER SHELL LANG PWD TERM LOGNAME HOSTNAME VIRTUAL_ENV EDITOR TZ LC_ALL JAVA_HOME GOPATH NODE_ENV CI"
)


def _printenv(look: Look, call: Call) -> None:
    if not call.arguments or not _PLAIN_VARIABLES.issuperset(call.texts):
        named = call.operands[0].text if call.operands else "environment"
        look.report.effect(_E.SECRET, named)


def _terminal(look: Look, call: Call) -> None:
    """tmux and screen: a new window runs a command, and `send-keys` types one."""
    if call.texts and call.texts[0] in ("ls", "list-sessions", "-V", "-ls", "-list", "list-windows", "list-panes"):
        return
    look.report.effect(_E.EXECUTE, call.line)
    inner = [word for word in call.arguments if " " in word.text or "/" in word.text]
    if inner:
        look.report.violate(Violation.ESCAPE)
        run_text(look, inner[-1:], NOTHING)


RULES: dict[str, Rule] = {
    **dict.fromkeys(FAMILIES, _family),
    "aws": _aws,
    "crontab": _crontab,
    "ssh-keygen": _ssh_keygen,
    **dict.fromkeys(_ONLY_ASKS, _asks_or_changes),
    **dict.fromkeys(_CHANGES, _changes),
    "getent": _getent,
    "printenv": _printenv,
    **dict.fromkeys(("tmux", "screen"), _terminal),
}
