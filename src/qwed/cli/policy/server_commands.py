"""`qwed policy apply`, `list`, `show` and `rollback`: the policies that are in force on a server."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.backend import Target, Url, server_client
from qwed.cli.options import AsJson, DataDir
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json, print_table, prompt
from qwed.cli.policy.files import PolicyFiles, compile_or_report, report_problems

if TYPE_CHECKING:
    from qwed.policy import PolicyProblem
    from qwed_sdk import QWEDClient

Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask for confirmation")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="show the changes and do not apply them")]
Name = Annotated[str, typer.Argument(metavar="POLICY", help="name of the policy")]
Version = Annotated[int, typer.Argument(metavar="VERSION", help="version to put in force again", min=0)]
AtVersion = Annotated[
    int | None, typer.Option("--version", metavar="N", help="version of the set (default: that in force)", min=0)
]
_APPLY = "Replace all policies of a server by those in files. Exit code 1 if they are refused or not confirmed."
_CHANGES = (("added", "+"), ("changed", "~"), ("removed", "-"))


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("apply", help=_APPLY)(_apply)
    app.command("list", help="List the policies in force.")(_list)
    app.command("show", help="Print the text of a policy in force.")(_show)
    app.command("rollback", help="Put an earlier version of the policies in force again.")(_rollback)


def _apply(
    files: PolicyFiles,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> int:
    policies = compile_or_report(files, as_json=as_json)
    if policies is None:
        return EXIT_FAILED
    texts = {one.policy.policy_id: one.policy.source.text for one in policies.policies}
    documents = {one.policy.source.file: one.policy.source.text for one in policies.policies}
    with server_client(Target(url, data_dir)) as client:
        problems = _server_problems(client, documents)
        if problems:
            return report_problems(problems, as_json=as_json)
        present = _present_set(client)
        changes = _changes(_texts_of(present), texts)
        if not as_json:
            _show_changes(changes, _newly_counted(_texts_of(present), texts))
        if not _confirm(changes, present["version"], yes=yes, dry_run=dry_run):
            return EXIT_FAILED
        # Also where nothing changes: the server says which version is in force.
        applied = _preview(present, changes) if dry_run else dict(client.apply_policies(documents, present["version"]))
    return _show_applied(applied, dry_run=dry_run, as_json=as_json)


def _server_problems(client: "QWEDClient", documents: Mapping[str, str]) -> "tuple[PolicyProblem, ...]":
    """Return what only the server knows to be wrong, such as a group without a key."""
    from qwed.policy import PolicyProblem
    from qwed.policy.problem import SourceText

    sources = {name: SourceText(name, text) for name, text in documents.items()}
    return tuple(
        PolicyProblem(
            **{name: problem[name] for name in ("file", "line", "column", "message", "policy", "rule")},
            source_line=sources.get(problem["file"], SourceText("", "")).line(problem["line"]),
        )
        for problem in client.check_policies(documents)["problems"]
    )


def _present_set(client: "QWEDClient") -> dict[str, Any]:
    """Return the set in force; of a damaged one only its version, so that it can be replaced."""
    from qwed.model import ErrorCode
    from qwed_sdk import QWEDServerError

    try:
        return dict(client.get_policies())
    except QWEDServerError as error:
        if error.code != ErrorCode.POLICIES_DAMAGED.code or "version" not in error.details:
            raise
        echo(f"warning: {error}", err=True)
        return {"version": error.details["version"], "digest": "", "policies": []}


def _texts_of(policy_set: Mapping[str, Any]) -> dict[str, str]:
    return {policy["policy"]: policy["text"] for policy in policy_set["policies"]}


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names of the policies that a set adds, changes and removes."""
    return {
        "added": sorted(after.keys() - before.keys()),
        "changed": sorted(name for name in after.keys() & before.keys() if after[name] != before[name]),
        "removed": sorted(before.keys() - after.keys()),
    }


def _newly_counted(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the calls and arguments that one set counts and the other does not."""
    return sorted(_counted(after) - _counted(before))


def _counted(texts: Mapping[str, str]) -> frozenset[str]:
    from qwed.policy import CompiledPolicies, PolicySource, compile_policies

    policies = compile_policies(tuple(PolicySource(*item) for item in texts.items()))
    if not isinstance(policies, CompiledPolicies):
        return frozenset()
    by = {"agent": "by agent", "organisation": "by organisation"}
    return frozenset(
        f"{f'the argument `{key.argument}` of ' if key.argument else 'calls of '}`{key.tool}` {by[key.scope]}"
        for key in policies.usage
    )


def _show_changes(changes: Mapping[str, list[str]], newly_counted: list[str]) -> None:
    for kind, sign in _CHANGES:
        for name in changes[kind]:
            echo(f"{sign} {name}")
    for name in newly_counted:
        echo(f"counted from then on: {name}")


def _confirm(changes: Mapping[str, list[str]], version: int, *, yes: bool, dry_run: bool) -> bool:
    """Return True if the changes may be made."""
    has_changes = any(changes.values())
    if yes or dry_run or not has_changes:
        return True
    if sys.stdin is None:
        fail("confirmation needs a terminal: add --yes")
    if prompt(f"replace version {version} of the policies? [y/N] ") in ("y", "yes"):
        return True
    echo("nothing was changed", err=True)
    return False


def _preview(present: Mapping[str, Any], changes: Mapping[str, list[str]]) -> dict[str, Any]:
    names = {f"policies_{kind}": names for kind, names in changes.items()}
    return {"version": present["version"], "digest": present["digest"], "changed": False, **names}


def _show_applied(applied: Mapping[str, Any], *, dry_run: bool, as_json: bool) -> int:
    if as_json:
        print_json({"ok": True, "dry_run": dry_run, **applied})
    elif dry_run:
        echo(f"version {applied['version']} stays in force")
    elif applied["changed"]:
        echo(f"version {applied['version']} is in force", "bold")
    else:
        echo(f"nothing to change: version {applied['version']} is in force")
    return 0


def _list(version: AtVersion = None, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> int:
    with server_client(Target(url, data_dir)) as client:
        policy_set = client.get_policies(version)
        versions = client.list_policy_versions(limit=1) if version is None else []
    if as_json:
        print_json(dict(policy_set))
        return 0
    made = f", since {versions[0]['changed_at']} by {versions[0]['changed_by']}" if versions else ""
    echo(f"version {policy_set['version']}{made}")
    if policy_set["policies"]:
        lines = ((policy["policy"], policy["text"].count("\n")) for policy in policy_set["policies"])
        print_table(("policy", "lines"), lines)
    return 0


def _show(
    name: Name, version: AtVersion = None, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> int:
    with server_client(Target(url, data_dir)) as client:
        if version is None:
            policy = dict(client.get_policy(name))
        else:
            policy = _policy_in(dict(client.get_policies(version)), name)
    if as_json:
        print_json(policy)
    else:
        for line in policy["text"].splitlines():
            echo(line)
    return 0


def _policy_in(policy_set: Mapping[str, Any], name: str) -> dict[str, Any]:
    texts = _texts_of(policy_set)
    if name not in texts:
        known = ", ".join(sorted(texts)) or "none"
        fail(f"version {policy_set['version']} has no policy `{name}`: it has {known}")
    return {"policy": name, "text": texts[name], "version": policy_set["version"]}


def _rollback(
    version: Version, yes: Yes = False, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> int:
    with server_client(Target(url, data_dir)) as client:
        present, earlier = _present_set(client), client.get_policies(version)
        changes = _changes(_texts_of(present), _texts_of(earlier))
        if not as_json:
            _show_changes(changes, _newly_counted(_texts_of(present), _texts_of(earlier)))
        if not _confirm(changes, present["version"], yes=yes, dry_run=False):
            return EXIT_FAILED
        applied = dict(client.roll_back_policies(version, present["version"]))
    return _show_applied(applied, dry_run=False, as_json=as_json)
