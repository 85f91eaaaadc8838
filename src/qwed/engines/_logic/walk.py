"""Recursion without depth: a step yields the steps it needs and is resumed with what they return."""

from collections.abc import Generator, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")
Step = Generator[Any, Any, Result]
"""A function that would call itself, written with `yield` where it would."""


def walk(step: Step[Result]) -> Result:
    """What `step` returns; however deep its steps nest, our own stack stays flat."""
    pending: list[Step[Any]] = [step]
    answer: Any = None
    while pending:
        try:
            pending.append(pending[-1].send(answer))
            answer = None
        except StopIteration as done:
            pending.pop()
            answer = done.value
    return answer  # type: ignore[no-any-return]  # the first step's result


def each(steps: Iterable[Step[Result]]) -> Step[list[Result]]:
    """What every one of `steps` returns, in order."""
    found: list[Result] = []
    for step in steps:
        found.append((yield step))  # noqa: PERF401  # a comprehension cannot yield
    return found
