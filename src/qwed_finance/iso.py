"""ISO 20022 payment messages as XML or JSON: structure, codes and sums."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwed.model.currency import CURRENCIES
from qwed.packs.check import PackCheck
from qwed.packs.result import CheckStatus, Result, unverifiable_on_error
from qwed_finance._iso.message import (
    MessageMismatchError,
    ParsedMessage,
    candidate_messages,
    common_name,
    parse_message,
)
from qwed_finance._iso.node import MessageIssue
from qwed_finance._iso.rules import RULES, apply_rules
from qwed_finance._iso.xml_reader import MessageTooLargeError, XmlRejectedError
from qwed_finance._iso.xsd import validate_with_xsd
from qwed_finance.bic import check_bic
from qwed_finance.iban import check_iban

_MAX_STEPS = 20
_STRUCTURAL = frozenset(("structure", "value", "schema"))


@dataclass(frozen=True, kw_only=True)
class ISOResult(Result):
    """Type of a message and every issue found in it."""

    msg_type: str | None = None
    """Message with its version: `pacs.008.001.08`."""
    issues: tuple[MessageIssue, ...] = ()
    """Issues, each with `path`, `rule`, `message` and `by_hand`."""
    warnings: tuple[MessageIssue, ...] = ()
    """Points that the standard advises against; the message may still be verified."""


class ISOGuard:
    """Guard for ISO 20022 payment messages."""

    def __init__(self, schemas: str | os.PathLike[str] | None = None) -> None:
        self._schemas = None if schemas is None else Path(schemas)

    @unverifiable_on_error(ISOResult)
    def verify_payment_message(self, message: Any, msg_type: Any = None) -> ISOResult:
        """Verify that the message is of its type and that every IBAN, BIC, amount, count and sum in it is right.

        Without a type the message is judged as what its namespace says, and the result names it.
        """
        try:
            parsed = parse_message(message, msg_type)
        except XmlRejectedError as error:
            return _rejected_result(msg_type, "xml", f"the message {error}")
        except MessageMismatchError as error:
            return _rejected_result(msg_type, "namespace", str(error))
        except MessageTooLargeError as error:
            return ISOResult.unverifiable(str(error))
        if self._schemas is not None:
            validate_with_xsd(self._schemas, parsed.message, parsed.document, parsed.issues)
        if not any(issue.rule in _STRUCTURAL for issue in parsed.issues.errors):
            apply_rules(parsed.document.children[0], parsed.message.family, parsed.issues)
        return _result(parsed)


def _rejected_result(msg_type: Any, rule: str, message: str) -> ISOResult:
    issue = MessageIssue(path="/", rule=rule, message=message, by_hand=(f"look at the message: {message}",))
    return ISOResult(
        status=CheckStatus.FAILED,
        message=message,
        rule=f"{rule}: {RULES[rule]}",
        by_hand=issue.by_hand,
        msg_type=common_name(candidate_messages(msg_type)),
        issues=(issue,),
    )


def _result(parsed: ParsedMessage) -> ISOResult:
    collected, name = parsed.issues, parsed.message.name
    issues = (*collected.errors, *collected.undecided)
    status = (
        CheckStatus.FAILED
        if collected.errors
        else CheckStatus.UNVERIFIABLE
        if collected.undecided
        else CheckStatus.VERIFIED
    )
    rules = list(dict.fromkeys(issue.rule for issue in issues)) or ["structure", "value", *_applied_rules(parsed)]
    return ISOResult(
        status=status,
        message=_message(parsed, issues),
        rule=f"{name}: " + "; ".join(f"{issue}: {RULES[issue]}" for issue in rules),
        by_hand=_by_hand(parsed, issues),
        known=tuple(CURRENCIES) if any(issue.rule == "currency" for issue in collected.undecided) else (),
        msg_type=name,
        issues=issues,
        warnings=tuple(collected.warnings),
    )


def _message(parsed: ParsedMessage, issues: tuple[MessageIssue, ...]) -> str:
    if not issues:
        return f"`{parsed.message.name}` holds: {len(parsed.issues.confirmed)} sums and counts agree"
    more = f", and {'at least ' if parsed.issues.is_full else ''}{len(issues) - 1} more" if len(issues) > 1 else ""
    return f"{issues[0].message} at {issues[0].path}{more}"


def _applied_rules(parsed: ParsedMessage) -> list[str]:
    present = {node.name for node in parsed.document.iter_tree()}
    by_element = {"IBAN": "iban", "BICFI": "bic", "BIC": "bic", "AnyBIC": "bic", "BICOrBEI": "bic", "LEI": "lei"}
    by_element |= {
        "CtrlSum": "control_sum",
        "NbOfTxs": "count",
        "TtlIntrBkSttlmAmt": "settlement_sum",
        "Bal": "balance",
    }
    return ["currency", "decimals", *dict.fromkeys(rule for name, rule in by_element.items() if name in present)]


def _by_hand(parsed: ParsedMessage, issues: tuple[MessageIssue, ...]) -> tuple[str, ...]:
    if issues:
        return tuple(f"{issue.path}: {step}" for issue in issues[:_MAX_STEPS] for step in issue.by_hand)
    count = sum(1 for _ in parsed.document.iter_tree())
    first_step = f"compare the {count} elements with the definition of `{parsed.message.name}`: each is in its place"
    return (first_step, *parsed.issues.confirmed[:_MAX_STEPS])


def _check_payment_message(message: Any, msg_type: Any = None) -> Result:
    return ISOGuard().verify_payment_message(message, msg_type)


CHECKS: tuple[PackCheck, ...] = (
    PackCheck(
        "payment_message",
        "whether a payment message of ISO 20022 is right: structure, codes, amounts, counts and sums",
        _check_payment_message,
        ("message",),
        ("msg_type",),
        text="message",
    ),
    PackCheck("iban", "whether a text is an IBAN of a registered country", check_iban, ("iban",), text="iban"),
    PackCheck("bic", "whether a text has the form of a BIC of a country that exists", check_bic, ("bic",), text="bic"),
)
