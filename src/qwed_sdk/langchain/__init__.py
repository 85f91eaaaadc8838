"""LangChain integration: a callback for executors, graphs and single tools, and a middleware for `create_agent`.

Each class is imported on first use: the callback needs langchain-core only, the middleware needs langchain.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qwed_sdk.langchain.callback import QWEDVerificationCallback
    from qwed_sdk.langchain.middleware import QWEDMiddleware

__all__ = ["QWEDMiddleware", "QWEDVerificationCallback"]

_MODULE_OF_NAME = {"QWEDMiddleware": "middleware", "QWEDVerificationCallback": "callback"}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module `{__name__}` has no `{name}`")
    return getattr(import_module(f"{__name__}.{_MODULE_OF_NAME[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__]
