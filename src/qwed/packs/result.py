"""Result of a domain-pack check: status, rule, and the derivation to redo by hand."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from qwed.model import Record
from qwed.model.decimals import NumberFormatError
from qwed.model.suggestions import did_you_mean
from qwed.packs.unwrap import unwrap


class CheckStatus(StrEnum):
    """Outcome of a check. What cannot be decided is UNVERIFIABLE, never verified."""

    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    UNVERIFIABLE = "UNVERIFIABLE"


_FEW = 10**18


class UnreadableInputError(ValueError):
    """The input cannot be checked; the message says what to write, `known` lists the choices."""

    def __init__(self, message: str, known: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


@dataclass(frozen=True, kw_only=True)
class Result(Record):
    """Base of every pack result; `verified` is true for VERIFIED only."""

    verified: bool = field(init=False)
    status: CheckStatus
    message: str
    rule: str = ""
    """Rule that was applied, with its source if it has one."""
    by_hand: tuple[str, ...] = ()
    """Steps that lead to the computed value, each one line to redo with pencil and calendar."""
    known: tuple[str, ...] = ()
    """Known names, when a name was unknown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "verified", self.status is CheckStatus.VERIFIED)

    @classmethod
    def unverifiable(cls, message: str, known: Iterable[str] = ()) -> Self:
        """Return the result for an input that cannot be checked."""
        return cls(status=CheckStatus.UNVERIFIABLE, message=message, known=tuple(known))


P = ParamSpec("P")
R = TypeVar("R", bound=Result)


def unverifiable_on_error(kind: type[R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a method to return UNVERIFIABLE when its input cannot be read, instead of raising."""

    def around(method: Callable[P, R]) -> Callable[P, R]:
        @wraps(method)
        def answered(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return _call_unwrapped(method, args, kwargs)
            except UnreadableInputError as wrong:
                return kind.unverifiable(str(wrong), wrong.known)
            except NumberFormatError as wrong:
                return kind.unverifiable(f"a value {wrong}")

        return answered

    return around


def _call_unwrapped(method: Callable[..., R], args: Iterable[Any], kwargs: Mapping[str, Any]) -> R:
    return method(*map(unwrap, args), **{name: unwrap(value) for name, value in kwargs.items()})


def status_of(holds: bool) -> CheckStatus:
    """Return VERIFIED or FAILED."""
    return CheckStatus.VERIFIED if holds else CheckStatus.FAILED


def unknown_name_error(
    what: str, value: object, known: Iterable[str], names: Iterable[str] = ()
) -> UnreadableInputError:
    """Return the error for a name without a table entry; `names` are the English names of the codes in `known`."""
    listed, spelled = tuple(known), tuple(names)
    first_names = ", ".join(listed[:12]) + (f" and {len(listed) - 12} more" if len(listed) > 12 else "")
    suggestion, suffix = did_you_mean(value, (*spelled, *listed)), ", and their English names" if spelled else ""
    return UnreadableInputError(
        f"unknown {what} `{abbreviate(value)}`: {suggestion}known are {first_names}{suffix}", listed
    )


def abbreviate(value: object) -> str:
    """Return the beginning of a text, or the digits of a number if there are few (Python refuses to print very long
    ones)."""
    if isinstance(value, str):
        return value[:60]
    small = isinstance(value, bool | float | None) or (isinstance(value, int) and -_FEW < value < _FEW)
    return str(value) if small else type(value).__name__
