"""What a guard of a pack answers: whether the claim holds, by which rule, and how to work that out by hand."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

from qwed.packs.own import own
from qwed.words import Record
from qwed.words.exact import NotANumber
from qwed.words.near import perhaps


class Standing(StrEnum):
    """How a claim came out. What cannot be known is neither right nor wrong, and never verified."""

    VERIFIED = "VERIFIED"
    FAILED = "FAILED"
    UNVERIFIABLE = "UNVERIFIABLE"


_FEW = 10**18


class Unreadable(ValueError):
    """Nothing can be said about this input; the message says what to write, `known` what there is to choose from."""

    def __init__(self, message: str, known: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.known = tuple(known)


@dataclass(frozen=True, kw_only=True)
class Result(Record):
    """The base of every result of a pack; `verified` is true for VERIFIED alone."""

    verified: bool = field(init=False)
    status: Standing
    message: str
    rule: str = ""
    """The rule that was applied, with its source where there is one."""
    by_hand: tuple[str, ...] = ()
    """The steps that lead to the computed value, each one line that can be done with pencil and calendar."""
    known: tuple[str, ...] = ()
    """Where a name is unknown: those that are known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "verified", self.status is Standing.VERIFIED)

    @classmethod
    def unverifiable(cls, message: str, known: Iterable[str] = ()) -> Self:
        """The result of what nothing can be said about."""
        return cls(status=Standing.UNVERIFIABLE, message=message, known=tuple(known))


P = ParamSpec("P")
R = TypeVar("R", bound=Result)


def answering(kind: type[R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Makes a method answer UNVERIFIABLE where what it was given cannot be read, instead of raising."""

    def around(method: Callable[P, R]) -> Callable[P, R]:
        @wraps(method)
        def answered(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return _asked(method, args, kwargs)
            except Unreadable as wrong:
                return kind.unverifiable(str(wrong), wrong.known)
            except NotANumber as wrong:
                return kind.unverifiable(f"a value {wrong}")

        return answered

    return around


def _asked(method: Callable[..., R], args: Iterable[Any], kwargs: Mapping[str, Any]) -> R:
    return method(*map(own, args), **{name: own(value) for name, value in kwargs.items()})


def standing(holds: bool) -> Standing:
    """VERIFIED or FAILED."""
    return Standing.VERIFIED if holds else Standing.FAILED


def unknown(what: str, given: object, known: Iterable[str], names: Iterable[str] = ()) -> Unreadable:
    """To be raised where `given` names no `what` that there is a table for; `names` are those its codes stand for."""
    listed, spelled = tuple(known), tuple(names)
    shown = ", ".join(listed[:12]) + (f" and {len(listed) - 12} more" if len(listed) > 12 else "")
    meant, also = perhaps(given, (*spelled, *listed)), ", and their English names" if spelled else ""
    return Unreadable(f"unknown {what} `{briefly(given)}`: {meant}known are {shown}{also}", listed)


def briefly(given: object) -> str:
    """Of a text its beginning; of a number its digits where there are few, since Python refuses to write very many."""
    if isinstance(given, str):
        return given[:60]
    small = isinstance(given, bool | float | None) or (isinstance(given, int) and -_FEW < given < _FEW)
    return str(given) if small else type(given).__name__
