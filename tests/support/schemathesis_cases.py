"""Schemathesis cases of an operation, generated on demand and not during collection.

`@schema.parametrize()` generates every case of every operation in every test process, whichever of them runs it.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from hypothesis import settings
from schemathesis import Case
from schemathesis.checks import load_all_checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.schemas import APIOperation, BaseSchema


class Cases:
    """Operations of a schema by their label, such as `GET /agents`."""

    def __init__(self, schema: BaseSchema) -> None:
        self.schema = schema

    @property
    def labels(self) -> list[str]:
        """Return every operation, in the order of the document."""
        return [*self._operations()]

    def ask(self, label: str, given: settings, question: Callable[[Case[Any]], None]) -> None:
        """Call the function with every case of the operation that the settings allow."""
        load_all_checks()

        def asked(case: Case[Any]) -> None:
            question(case)

        build_operation_test(
            config=self.schema.config,
            operation=self._operations()[label],
            test_func=given(asked),
            given_kwargs={},
            feedback=FeedbackSources(),
        )()

    @cache  # noqa: B019 - there are two, for as long as the tests run
    def _operations(self) -> dict[str, APIOperation[Any, Any, Any, Any]]:
        return {operation.label: operation for operation in self._read()}

    def _read(self) -> Iterator[APIOperation[Any, Any, Any, Any]]:
        for found in self.schema.get_all_operations():
            yield found.ok()
