"""Comparison of what the shell guard predicted with what a command did."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from qwed.model import EffectKind
from tests.oracle import commands, project, stand_in_verbs, trace
from tests.oracle.predictions import Prediction, predict_shell
from tests.oracle.recording import Record
from tests.oracle.shell_execution import ShellObservation, execute
from tests.oracle.tables import names

_CHANGE_OF = {"created": "write", "created empty": "write", "changed": "write", "mode": "write", "removed": "delete"}
_SCRATCH = ("/home/", "/tmp/", "./", "../")
_OUTBOUND = frozenset({EffectKind.NETWORK, EffectKind.COMMUNICATE})
_SERVICE_SOCKETS = (
    "/var/run/docker.sock",
    "/tmp/tmux-",
    "/run/systemd/",
    "/var/run/dbus",
    "/run/dbus",
    "/var/run/postgresql",
    "/run/postgresql",
    "/tmp/.s.PGSQL",
)
_OWN_SECRETS = {
    "ssh": (".ssh/id_ed25519",),
    "wget": (".netrc",),
    "chage": ("/etc/shadow",),
    "git-remote-https": (".netrc",),
    "git-remote-http": (".netrc",),
    **dict.fromkeys(("psql", "pg_isready", "pg_dump", "pg_restore"), (".pgpass", "/etc/shadow")),
}
"""Files a program reads without showing them: it authenticates with them, or shows only dates or sums of them."""
_LOOKUPS = frozenset({"hostname", "hostid", "curl"})
"""Programs that look up the name of this machine; curl does it for `--version`."""
_OWN_SIGNALS = ("SIGPIPE", "SIGPIPE ", "SIGABRT", "SIGABRT ")
_READERS = frozenset(
    names(
        "basename bzip2 cat cut dirname dpkg-query expr getopt grep groups gzip hostname id ld-linux-x86-64.so.2 "
        "locale mesg "
        "envsubst gettext head preconv readlink sed sort tail tbl tr tty uname uniq wc xz zstd"
    )
)
"""Programs that only read, whoever starts them; what sed does beyond that is seen as a deed of its own."""
_MANUAL = frozenset({"groff", "troff", "grotty", "nroff", "col", "less", "sh"})
_UNPACKING_PAGERS = {"less", "more", "sh", "bash", "dd", "stty"}
_UNPACKING_COMPARERS = {"zdiff", "xzdiff", "bzdiff", "cmp", "diff", "sh", "bash"}
_UNPACKING_SEARCHES = {"zgrep", "xzgrep", "unzip", "zstdcat", "sh", "bash", "mktemp", "rm"}
_HELPERS = {
    "apt-cache": {"dpkg"},
    "apt": {"dpkg"},
    "apt-mark": {"dpkg"},
    "awk": {"sh"},
    "gawk": {"sh"},
    "mawk": {"sh"},
    "env": {"bash", "sh"},
    "git": {
        "git",
        "pager",
        "less",
        "git-remote-https",
        "git-remote-http",
        "git-upload-pack",
        "git-receive-pack",
        "git-upload-archive",
        "git-submodule",
        "git-bisect",
        "ssh",
        "man",
        *_MANUAL,
    },
    "tar": {"sh"},
    "man": {"whatis", "apropos", *_MANUAL},
    "psql": {"pg_wrapper", "perl"},
    "rsync": {"ssh"},
    "scp": {"ssh", "cp"},
    "diff3": {"diff"},
    "sdiff": {"diff"},
    "less": {"sh", "lesspipe"},
    "watch": {"sh"},
    "tomlq": {"jq"},
    "yq": {"jq"},
    **dict.fromkeys(("zless", "bzless", "xzless", "lzless"), _UNPACKING_PAGERS),
    **dict.fromkeys(("zmore", "bzmore", "xzmore", "lzmore"), _UNPACKING_PAGERS),
    **dict.fromkeys(("zcmp", "zdiff", "bzcmp", "bzdiff", "xzcmp", "xzdiff", "lzcmp", "lzdiff"), _UNPACKING_COMPARERS),
    **dict.fromkeys(
        ("zgrep", "zegrep", "zfgrep", "bzgrep", "xzgrep", "lzgrep", "zstdgrep", "zipgrep"), _UNPACKING_SEARCHES
    ),
}
"""Programs that a program starts by itself."""


def observed_effects(observation: ShellObservation, predicted: Prediction) -> tuple[str, ...]:
    """Return what a command did beyond reading, connections and the predicted programs."""
    programs = {execution.name for execution in observation.deeds.executed}
    changes = [row for row in observation.changes if not _is_side_effect(row, programs, predicted)]
    effects = [f"{_CHANGE_OF[kind]} {path}" for kind, path in changes]
    effects += [f"secret {name}" for name in observation.canaries if EffectKind.SECRET not in predicted.kinds]
    own = {path for name in programs for path in _OWN_SECRETS.get(name, ())}
    if EffectKind.SECRET not in predicted.kinds:
        effects += [f"secret {path}" for path in observation.opened if not path.endswith(tuple(own))]
    effects += [predicted.error] if predicted.error else []
    effects += _attempts(observation, predicted)
    effects += [f"verb {execution.name} {verb}" for execution, verb in _recorded_verbs(observation)]
    effects += [f"execute {name}" for name in _unpredicted_programs(observation, predicted)]
    if observation.ended_sandbox:
        effects.append("admin ended the sandbox")
    return tuple(dict.fromkeys(effects))


def _is_side_effect(row: tuple[str, str], programs: set[str], predicted: Prediction) -> bool:
    """Return True for a file that a program keeps for itself and that holds nothing of the command's."""
    kind, path = row
    if path.startswith(("/home/dev/.gnupg", "/tmp/tmux-", "/tmp/hsperfdata_")):
        return bool(programs & {"gpg", "tmux", "java", "javac", "jar"})
    if path.startswith("/srv/remote.git") and predicted.kinds & _OUTBOUND:
        return kind != "removed"
    if "/.git/" in path and predicted.kinds & _OUTBOUND:
        return (
            path.endswith("/FETCH_HEAD")
            or "/.git/refs/remotes" in path
            or "/.git/logs/refs/remotes" in path
            or "/.git/objects" in path
        )
    return kind == "created empty" and "sqlite3" in programs


def _attempts(observation: ShellObservation, predicted: Prediction) -> Iterable[str]:
    programs = {execution.name for execution in observation.deeds.executed}
    outbound = bool(predicted.kinds & _OUTBOUND)
    for kind, target in observation.deeds.attempts:
        if target == "/dev/log" and "pidof" in programs:
            continue  # it reports wrong arguments to the system log, too
        if kind == "lookup":
            if not outbound and target not in _LOOKUPS and not (target == "psql" and _uses_own_address(observation)):
                yield f"network lookup by {target}"
        elif kind == "network" or (kind == "socket" and not target.startswith(_SERVICE_SOCKETS)):
            if not outbound and not (target == "127.0.0.1:5432" and "psql" in programs):
                yield f"network {target}"
        elif kind != "socket" and not target.endswith(_OWN_SIGNALS):
            yield f"{kind} {target}"


def _uses_own_address(observation: ShellObservation) -> bool:
    """Return True if psql is given the address of the user's own database: reading from it is what was predicted."""
    address = project.ENVIRONMENT["DATABASE_URL"]
    return any(execution.name == "psql" and address in execution.arguments for execution in observation.deeds.executed)


def _recorded_verbs(observation: ShellObservation) -> Iterable[tuple[trace.Execution, str]]:
    for execution in observation.deeds.executed:
        verb = stand_in_verbs.deed(execution.arguments) if execution.path.startswith("/stand-ins/") else ""
        if verb:
            yield execution, verb


def _unpredicted_programs(observation: ShellObservation, predicted: Prediction) -> Iterable[str]:
    names = {name.rpartition("/")[2] for name in predicted.programs}
    names |= {f"{name}.exe" for name in names}
    allowed = names.union(*(_HELPERS.get(name, frozenset()) for name in names))
    for execution in observation.deeds.executed:
        if execution.path.startswith(_SCRATCH) or execution.name not in allowed | _READERS:
            yield execution.name


class ShellRun(NamedTuple):
    """Outcome of one command."""

    text: str
    predicted: Prediction
    observation: ShellObservation
    observed: tuple[str, ...]
    traced: bool = True
    """True if system calls were observed too."""

    @property
    def is_predicted_harmless(self) -> bool:
        """Return True if low or medium risk was predicted."""
        return self.predicted.is_harmless

    @property
    def is_idle(self) -> bool:
        """Return True if the command ended well and did nothing but read."""
        return self.observation.status == 0 and not self.observation.changes and not self.observed

    @property
    def is_failure(self) -> bool:
        """Return True if the command did more than was predicted."""
        return self.predicted.is_harmless and bool(self.observed)

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of the observed effects."""
        return frozenset(item.partition(" ")[0] for item in self.observed)

    @property
    def group(self) -> tuple[str, ...]:
        """Program and kinds of effect, by which failures are grouped."""
        return (commands.leading_program(self.text), *sorted(self.kinds))

    def row(self) -> dict[str, object]:
        """Return input, prediction and observation for a report."""
        kinds = sorted(kind.value for kind in self.predicted.kinds)
        predicted = {"risk": self.predicted.risk.word, "kinds": kinds, "programs": sorted(self.predicted.programs)}
        return {"input": self.text, "predicted": predicted, "observed": list(self.observed[:6])}

    def record(self) -> Record:
        """Return the input and everything that was observed, to be judged again later."""
        return {"input": self.text, "traced": self.traced, "observation": msgspec.to_builtins(self.observation)}


def run(texts: Sequence[str]) -> list[ShellRun]:
    """Predict and run each command."""
    predictions = [predict_shell(text) for text in texts]
    stand_ins = {name for text in texts for name in commands.words(text)}
    stand_ins |= {name for row in predictions for name in row.programs}
    runs: dict[int, ShellRun] = {}
    for harmless in (True, False):
        places = [place for place, row in enumerate(predictions) if row.is_harmless == harmless]
        # Tracing costs time, and only what was predicted harmless is judged by it.
        chosen = [texts[place] for place in places]
        for place, observation in zip(places, execute(chosen, stand_ins, traced=harmless), strict=True):
            effects = observed_effects(observation, predictions[place])
            runs[place] = ShellRun(texts[place], predictions[place], observation, effects, traced=harmless)
    return [runs[place] for place in range(len(texts))]


def rejudge(records: Sequence[Record]) -> list[ShellRun]:
    """Judge recorded commands again; one that was not traced is run if it is now predicted to be harmless."""
    runs = [_rejudge(record) for record in records]
    again = [place for place, row in enumerate(runs) if row.is_predicted_harmless and not row.traced]
    for place, row in zip(again, run([runs[place].text for place in again]), strict=True):
        runs[place] = row
    return runs


def _rejudge(record: Record) -> ShellRun:
    predicted = predict_shell(record["input"])
    observation = msgspec.convert(record["observation"], ShellObservation)
    effects = observed_effects(observation, predicted)
    return ShellRun(record["input"], predicted, observation, effects, record["traced"])


def shrink(failure: ShellRun, rounds: int = 12) -> ShellRun:
    """Return the shortest command that fails in the same way, by leaving out one part at a time."""
    best = failure
    for _ in range(rounds):
        candidates = [text for text in commands.shorter(best.text) if predict_shell(text).is_harmless]
        failing = [row for row in run(candidates[:60]) if row.is_failure and row.kinds & failure.kinds]
        if not failing:
            return best
        best = min(failing, key=lambda row: len(row.text))
    return best
