"""ISO 20022: payment messages as XML or as JSON, their structure, their codes and their sums."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwed.packs.question import Question
from qwed.packs.result import Result, Standing, answering
from qwed.words.currency import CURRENCIES
from qwed_finance._iso.message import Mismatch, Read, candidates, read
from qwed_finance._iso.node import Finding
from qwed_finance._iso.official import examine_with
from qwed_finance._iso.rules import RULES, apply
from qwed_finance._iso.xml import Refused, TooLarge
from qwed_finance.bic import check_bic
from qwed_finance.iban import check_iban

_STEPS = 20
_STRUCTURAL = frozenset(("structure", "value", "schema"))


@dataclass(frozen=True, kw_only=True)
class ISOResult(Result):
    """What a message is, and everything that is wrong with it."""

    msg_type: str | None = None
    """The message with its version: `pacs.008.001.08`."""
    issues: tuple[Finding, ...] = ()
    """Each with `path`, `rule`, `message` and `by_hand`."""
    warnings: tuple[Finding, ...] = ()
    """What the standard advises against; the message may be verified all the same."""


class ISOGuard:
    """Verifies payment messages of ISO 20022."""

    def __init__(self, schemas: str | os.PathLike[str] | None = None) -> None:
        self._schemas = None if schemas is None else Path(schemas)

    @answering(ISOResult)
    def verify_payment_message(self, message: Any, msg_type: Any = "pacs.008") -> ISOResult:
        """Whether a message is what its type says, with every IBAN, BIC, amount, count and sum in it right."""
        try:
            found = read(message, msg_type)
        except Refused as wrong:
            return _refused(msg_type, "xml", f"the message {wrong}")
        except Mismatch as wrong:
            return _refused(msg_type, "namespace", str(wrong))
        except TooLarge as wrong:
            return ISOResult.unverifiable(str(wrong))
        if self._schemas is not None:
            examine_with(self._schemas, found.message, found.document, found.found)
        if not any(each.rule in _STRUCTURAL for each in found.found.wrong):
            apply(found.document.children[0], found.message.family, found.found)
        return _result(found)


def _refused(msg_type: Any, rule: str, message: str) -> ISOResult:
    named = candidates(msg_type)
    issue = Finding(path="/", rule=rule, message=message, by_hand=(f"look at the message: {message}",))
    return ISOResult(
        status=Standing.FAILED,
        message=message,
        rule=f"{rule}: {RULES[rule]}",
        by_hand=issue.by_hand,
        msg_type=named[0].name if len(named) == 1 else named[0].family,
        issues=(issue,),
    )


def _result(read: Read) -> ISOResult:
    found, name = read.found, read.message.name
    issues = (*found.wrong, *found.unknown)
    status = Standing.FAILED if found.wrong else Standing.UNVERIFIABLE if found.unknown else Standing.VERIFIED
    named = list(dict.fromkeys(each.rule for each in issues)) or ["structure", "value", *_applied(read)]
    return ISOResult(
        status=status,
        message=_message(read, issues),
        rule=f"{name}: " + "; ".join(f"{each}: {RULES[each]}" for each in named),
        by_hand=_by_hand(read, issues),
        known=tuple(CURRENCIES) if any(each.rule == "currency" for each in found.unknown) else (),
        msg_type=name,
        issues=issues,
        warnings=tuple(found.warnings),
    )


def _message(read: Read, issues: tuple[Finding, ...]) -> str:
    if not issues:
        return f"`{read.message.name}` holds: {len(read.found.checked)} sums and counts agree"
    more = f", and {'at least ' if read.found.full else ''}{len(issues) - 1} more" if len(issues) > 1 else ""
    return f"{issues[0].message} at {issues[0].path}{more}"


def _applied(read: Read) -> list[str]:
    present = {node.name for node in read.document.below()}
    by_element = {"IBAN": "iban", "BICFI": "bic", "BIC": "bic", "AnyBIC": "bic", "BICOrBEI": "bic", "LEI": "lei"}
    by_element |= {
        "CtrlSum": "control_sum",
        "NbOfTxs": "count",
        "TtlIntrBkSttlmAmt": "settlement_sum",
        "Bal": "balance",
    }
    return ["currency", "decimals", *dict.fromkeys(rule for name, rule in by_element.items() if name in present)]


def _by_hand(read: Read, issues: tuple[Finding, ...]) -> tuple[str, ...]:
    if issues:
        return tuple(f"{each.path}: {step}" for each in issues[:_STEPS] for step in each.by_hand)
    many = sum(1 for _ in read.document.below())
    laid = f"lay the {many} elements beside the definition of `{read.message.name}`: each stands in its place"
    return (laid, *read.found.checked[:_STEPS])


def _payment_message(message: Any, msg_type: Any = "pacs.008") -> Result:
    return ISOGuard().verify_payment_message(message, msg_type)


QUESTIONS: tuple[Question, ...] = (
    Question(
        "payment_message",
        "whether a payment message of ISO 20022 is right: structure, codes, amounts, counts and sums",
        _payment_message,
        ("message",),
        ("msg_type",),
        text="message",
    ),
    Question("iban", "whether a text is an IBAN of a registered country", check_iban, ("iban",), text="iban"),
    Question("bic", "whether a text has the form of a BIC of a country that exists", check_bic, ("bic",), text="bic"),
)
