"""Trampolined recursion: a step yields the steps it needs and is resumed with their results."""

from collections.abc import Generator, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")
Step = Generator[Any, Any, Result]
"""Recursive function written as a generator, with `yield` in place of each recursive call."""


def run(step: Step[Result]) -> Result:
    """Run `step` and return its result; the Python stack stays flat however deep the steps nest."""
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


def run_all(steps: Iterable[Step[Result]]) -> Step[list[Result]]:
    """Run all `steps` in order, and return their results."""
    results: list[Result] = []
    for step in steps:
        results.append((yield step))  # noqa: PERF401  # a comprehension cannot yield
    return results
