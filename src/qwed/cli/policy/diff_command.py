"""`qwed policy diff`: what an edit of a policy set changes, proved."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.options import AsJson
from qwed.cli.output import EXIT_ERROR, EXIT_FAILED, echo, print_json
from qwed.cli.policy.files import compile_or_report

if TYPE_CHECKING:
    from qwed.policy import CompiledPolicies

EXIT_NOT_PROVEN = 3
"""Exit code of a comparison that could neither be proved nor refuted."""
Old = Annotated[str, typer.Argument(metavar="OLD", help="policy file, or directory of them, before the edit")]
New = Annotated[str, typer.Argument(metavar="NEW", help="policy file, or directory of them, after the edit")]
_HELP = (
    "Prove what an edit of a policy set changes, or show calls that are decided otherwise. "
    "Exit code 0: allows nothing new; 1: allows something new; 3: not proven."
)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diff", help=_HELP)(_diff)


def _diff(old: Old, new: New, as_json: AsJson = False) -> int:
    before, after = _compiled([old], as_json=as_json), _compiled([new], as_json=as_json)
    if before is None or after is None:
        return EXIT_ERROR
    return _show(before, after, as_json=as_json)


def _compiled(names: Sequence[str], *, as_json: bool) -> "CompiledPolicies | None":
    return compile_or_report(names, as_json=as_json)


def _show(before: "CompiledPolicies", after: "CompiledPolicies", *, as_json: bool) -> int:
    from qwed.policy.analysis import (
        ProofStatus,
        approver_changes,
        compare_policies,
        comparison_values,
        describe_comparison,
    )

    comparison, approvers = compare_policies(before, after), approver_changes(before, after)
    codes: dict[Any, int] = {
        ProofStatus.NONE: 0,
        ProofStatus.SOME: EXIT_FAILED,
        ProofStatus.NOT_PROVEN: EXIT_NOT_PROVEN,
    }
    code = codes[comparison.allowed.status]
    if as_json:
        print_json({**comparison_values(comparison, approvers), "exit_code": code})
    else:
        for line in describe_comparison(comparison, approvers):
            echo(line)
    return code
