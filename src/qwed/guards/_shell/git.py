"""Rules for git: effects of its verbs, and settings and options that run other programs."""

import re

from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.command_model import NO_DATA, CommandCall, ShellAnalysis, Violation, Word, join_words, names_in
from qwed.guards._shell.options import Rule, values_of
from qwed.guards.file_effects import is_secret
from qwed.model import EffectKind

_READS = names_in(
    """
    status log diff show blame annotate shortlog describe ls-files ls-tree rev-parse rev-list cat-file name-rev grep
    whatchanged show-ref show-branch for-each-ref count-objects merge-base help version reflog cherry range-diff
    diff-tree diff-index diff-files verify-commit verify-tag check-ignore check-attr fsck var rerere get-tar-commit-id
    merge-tree patch-id stripspace column interpret-trailers --version --help
    """
)
_WRITES = names_in(
    """
    add commit checkout switch restore merge rebase reset stash tag branch mv init apply am cherry-pick revert
    worktree notes gc repack prune pack-refs update-index update-ref read-tree write-tree commit-tree config remote
    bundle archive format-patch sparse-checkout symbolic-ref replace maintenance hash-object mktag mktree submodule
    bisect lfs subtree flow pack-objects unpack-objects checkout-index
    """
)
_NETWORK = names_in("push pull fetch clone ls-remote remote-update send-email request-pull svn p4 archive-remote")
_DELETES = names_in("rm clean filter-branch filter-repo prune obliterate")
_RUNS = names_in("difftool mergetool filter-branch instaweb daemon http-backend shell credential fast-import")
_RUNNING_OPTION = re.compile(
    r"--(?:upload-pack|receive-pack|exec|ext-diff|textconv|open-files-in-pager|extcmd|tree-filter|index-filter|msg-filter"
    r"|env-filter|exec-path=|upload-archive|paginate)|-O.*\Z|--config-env"
)
_RUNNING_KEY = re.compile(
    r"(?i)(?:alias\.|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|gitproxy|askpass)|pager\.|diff\.(?:external|.*\.(?:command|textconv))"
    r"|merge\..*\.driver|filter\.|credential\.|gpg\.|(?:diff|merge)tool\.|sequence\.editor|protocol\.(?:ext|allow)|uploadpack\.|init\.templatedir"
    r"|include\.|includeif\.|http\.(?:proxy|sslverify)|url\.|interactive\.difffilter|web\.browser|browser\.|man\.|sendemail\.|submodule\.)"
)
_LISTS = {
    "branch": names_in(
        """
        -a -r -v -vv -l --list --all --remotes --show-current --merged --no-merged --contains --sort --format --color
        --no-color
        """
    ),
    "tag": names_in("-l --list -n --sort --contains --points-at --merged --format"),
    "remote": names_in("-v --verbose"),
    "stash": frozenset(),
    "worktree": frozenset(),
    "submodule": frozenset(),
    "config": names_in(
        """
        --get --get-all --list -l --get-regexp --show-origin --global --local --system --name-only --show-scope
        """
    ),
    "notes": frozenset(),
    "bundle": frozenset(),
    "symbolic-ref": names_in("--short -q HEAD"),
    "bisect": frozenset(),
    "lfs": frozenset(),
    "sparse-checkout": frozenset(),
    "reflog": frozenset(),
}
_CHANGING_WORDS = {
    "reflog": names_in("expire delete drop"),
    "rerere": names_in("clear forget gc"),
    "fsck": names_in("--lost-found"),
    "interpret-trailers": names_in("--in-place"),
    "config": names_in(
        """
        --add --replace-all --unset --unset-all --edit -e --rename-section --remove-section set unset edit
        rename-section remove-section
        """
    ),
}
"""Words that make a read-only verb change something."""
_LISTING_VERBS = names_in("list show show-url get-url status log ls-files summary verify list-heads visualize")


def _git(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = list(call.arguments)
    directory = next(iter(values_of(rest, ("--work-tree", "-C"))), Word("."))
    while rest and rest[0].is_option and rest[0].text not in ("--version", "--help"):
        rest = _global_option(analysis, rest)
    if not rest:
        return
    verb, rest = rest[0], rest[1:]
    if not verb.is_exact:
        analysis.report.add_unresolved(f"`git {verb.text[:40]}` is known only at run time")
        return
    if any(_RUNNING_OPTION.match(word.text) for word in rest) and _runs_by_option(verb.text, rest):
        analysis.report.add_violation(Violation.ESCAPE)
    if any(word.text.startswith(("ext::", "fd::")) for word in rest):
        analysis.report.add_violation(Violation.ESCAPE)
    _analyze_verb(analysis, verb.text, rest, directory)


def _runs_by_option(verb: str, rest: list[Word]) -> bool:
    texts = [word.text for word in rest]
    if verb == "grep":
        return any(text.startswith(("-O", "--open")) for text in texts)
    return any(_RUNNING_OPTION.match(text) and not text.startswith("-O") for text in texts)


def _global_option(analysis: ShellAnalysis, rest: list[Word]) -> list[Word]:
    option = rest[0].text
    if option == "-c" or option.startswith("--config-env"):
        if len(rest) > 1 and _RUNNING_KEY.match(rest[1].text) and not re.search(r"=(?:cat|less|)\Z", rest[1].text):
            analysis.report.add_violation(Violation.ESCAPE)
        elif len(rest) > 1 and not rest[1].is_resolved:
            analysis.report.add_unresolved(f"`{rest[1].text[:64]}` is known only at run time")
        return rest[2:]
    for directory in values_of(rest[:2], ("-C", "--git-dir", "--work-tree")):
        analysis.add_file_effect(EffectKind.READ, directory)
    if option in ("-C", "--git-dir", "--work-tree", "--namespace"):
        return rest[2:]
    if option.startswith("--exec-path="):
        analysis.report.add_violation(Violation.ESCAPE)
    return rest[1:]


def _analyze_verb(analysis: ShellAnalysis, verb: str, rest: list[Word], directory: Word) -> None:
    if verb in _RUNS or (verb == "rebase" and any(_REBASE_RUNS.match(word.text) for word in rest)):
        analysis.report.add_violation(Violation.ESCAPE)
    _analyze_options(analysis, verb, rest)
    if verb in _LISTS and _is_listing(verb, rest):
        _analyze_listing(analysis, verb, rest)
        return
    if verb == "config":
        _config(analysis, rest)
    elif verb == "submodule" and any(word.text == "foreach" for word in rest):
        run_text(analysis, [word for word in rest if word.text not in ("foreach", "--recursive")], NO_DATA)
    elif verb == "bisect" and rest and rest[0].text == "run":
        analysis.visit_command(rest[1:])
    _effects(analysis, verb, rest, directory)


_REBASE_RUNS = re.compile(r"-[a-z]*x|--exec")
_FILE_OPTIONS: tuple[tuple[frozenset[str], tuple[str, ...], EffectKind], ...] = (
    (names_in("diff log show shortlog format-patch whatchanged diff-tree archive"), ("--output",), EffectKind.WRITE),
    (names_in("format-patch"), ("-o", "--output-directory"), EffectKind.WRITE),
    (names_in("archive"), ("-o",), EffectKind.WRITE),
    (names_in("checkout-index"), ("--prefix",), EffectKind.WRITE),
    (names_in("clone init"), ("--separate-git-dir",), EffectKind.WRITE),
    (names_in("commit notes tag merge"), ("-F", "--file"), EffectKind.READ),
    (names_in("config"), ("-f", "--file"), EffectKind.READ),
    (names_in("blame"), ("--ignore-revs-file", "--contents"), EffectKind.READ),
    (names_in("ls-files"), ("-X", "--exclude-from"), EffectKind.READ),
)
_SETTINGS = ("-c", "--config")


def _analyze_options(analysis: ShellAnalysis, verb: str, rest: list[Word]) -> None:
    """Report options of a verb that name files, set configuration or install hooks."""
    for verbs, options, kind in _FILE_OPTIONS:
        for value in values_of(rest, options) if verb in verbs else ():
            analysis.add_file_effect(kind, value)
    if verb in ("clone", "init"):
        settings = [value.text for value in values_of(rest, _SETTINGS)]
        if any(map(_RUNNING_KEY.match, settings)) or values_of(rest, ("-u", "--template")):
            analysis.report.add_violation(Violation.ESCAPE)
    if verb == "apply" and any(word.text == "--unsafe-paths" for word in rest):
        analysis.report.add_unresolved("`git apply --unsafe-paths` may write anywhere")
    for directory in _destinations(verb, [word for word in rest if not word.is_option]):
        analysis.add_file_effect(EffectKind.WRITE, directory)


def _destinations(verb: str, words: list[Word]) -> list[Word]:
    """Return the directory that an operand of the verb names."""
    if verb == "clone":
        return words[1:2]
    if verb == "init":
        return words[:1]
    adds = (verb, words[0].text if words else "") in (("worktree", "add"), ("bundle", "create"))
    return words[1:2] if adds else []


def _analyze_listing(analysis: ShellAnalysis, verb: str, rest: list[Word]) -> None:
    """Report a listing that queries the remote."""
    words = [word.text for word in rest]
    if verb == "remote" and words[:1] == ["show"] and len(words) > 1 and "-n" not in words:
        analysis.report.add_effect(EffectKind.NETWORK, words[-1])


def _changes(verb: str, rest: list[Word]) -> bool:
    return any(word.text in _CHANGING_WORDS.get(verb, ()) for word in rest)


def _effects(analysis: ShellAnalysis, verb: str, rest: list[Word], directory: Word) -> None:
    if verb in _READS and not _changes(verb, rest):
        _read(analysis, verb, rest)
        return
    fetches = verb in ("clone", "pull") or (verb == "submodule" and any(w.text in ("update", "add") for w in rest))
    if verb in _WRITES or fetches or _changes(verb, rest):
        analysis.add_file_effect(EffectKind.WRITE, directory)
    if verb in _DELETES or _discards(verb, rest):
        analysis.add_file_effect(EffectKind.DELETE, directory)
    if verb in _NETWORK or fetches:
        analysis.report.add_effect(EffectKind.NETWORK, _address(rest))
    if verb in _RUNS:
        analysis.report.add_effect(EffectKind.EXECUTE, join_words([Word("git"), Word(verb), *rest]))
    elif verb not in _WRITES | _DELETES | _NETWORK | _READS:
        analysis.report.add_unresolved(f"`git {verb[:40]}` is not known")


def _discards(verb: str, rest: list[Word]) -> bool:
    texts = {word.text for word in rest}
    return bool(
        (verb == "reset" and "--hard" in texts)
        or (verb == "branch" and texts & {"-D", "-d", "--delete"})
        or (verb == "push" and texts & {"--force", "-f", "--delete", "--mirror", "--force-with-lease"})
        or (verb == "stash" and texts & {"drop", "clear"})
        or (verb == "reflog" and _changes(verb, rest))
        or (verb == "checkout" and texts & {"--", ".", "-f"})
    )


def _address(rest: list[Word]) -> str:
    return next((word.text for word in rest if not word.is_option), "origin")


def _read(analysis: ShellAnalysis, verb: str, rest: list[Word]) -> None:
    if verb == "help" and any(word.text in ("-w", "--web") for word in rest):
        analysis.report.add_effect(EffectKind.EXECUTE, "browser")
    for word in rest:
        if verb in ("diff", "grep") and any(other.text == "--no-index" for other in rest) and not word.is_option:
            analysis.add_file_effect(EffectKind.READ, word)
        elif (not word.is_option or word.text.startswith("-L")) and is_secret(
            word.text.rpartition(":")[2] or word.text
        ):
            analysis.report.add_effect(EffectKind.SECRET, word.text)


def _is_listing(verb: str, rest: list[Word]) -> bool:
    words = [word.text for word in rest]
    named = [word for word in words if not word.startswith("-")]
    if verb in ("branch", "tag"):
        lists = bool(
            set(words) & {"-l", "--list", "--contains", "--merged", "--no-merged", "--sort", "--points-at", "-n"}
        )
        return all(word.partition("=")[0] in _LISTS[verb] for word in words if word.startswith("-")) and (
            lists or not named
        )
    if verb == "config":
        reads = set(words) & {"--get", "--get-all", "--list", "-l", "--get-regexp", "list", "get"}
        return not _changes(verb, rest) and (bool(reads) or len(named) == 1)
    if verb == "symbolic-ref":
        return len(named) <= 1
    if verb == "reflog":
        return not _changes(verb, rest)
    return (not named and verb != "stash" and verb != "bisect") or (named[:1] != [] and named[0] in _LISTING_VERBS)


def _config(analysis: ShellAnalysis, rest: list[Word]) -> None:
    if any(_RUNNING_KEY.match(word.text) for word in rest) and not any(
        word.text.startswith("--unset") for word in rest
    ):
        analysis.report.add_violation(Violation.ESCAPE)


def _gh(analysis: ShellAnalysis, call: CommandCall) -> None:
    words = [word.text for word in call.arguments if not word.is_option]
    line = call.line
    analysis.report.add_effect(EffectKind.NETWORK, "github.com" if call.name == "gh" else call.name)
    if words[:1] == ["auth"] or words[:1] == ["secret"] or words[:2] == ["ssh-key", "add"]:
        analysis.report.add_effect(EffectKind.SECRET, line)
    elif words[:1] == ["alias"] or words[:1] == ["extension"]:
        analysis.report.add_violation(Violation.ESCAPE)
    elif len(words) > 1 and words[1] in ("delete", "archive"):
        analysis.report.add_effect(EffectKind.DELETE, line)
    elif not (len(words) > 1 and words[1] in ("list", "view", "status", "diff", "checks")) and words[:1] != ["search"]:
        analysis.report.add_effect(EffectKind.WRITE, line)


RULES: dict[str, Rule] = {"git": _git, **dict.fromkeys(("gh", "glab", "hub"), _gh)}
