"""LangChain: a callback for executors, graphs and single tools, a middleware for `create_agent`.

Each class is loaded when it is asked for: the callback needs langchain-core alone, the middleware all of langchain.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qwed_sdk.langchain.callback import QWEDVerificationCallback
    from qwed_sdk.langchain.middleware import QWEDMiddleware

__all__ = ["QWEDMiddleware", "QWEDVerificationCallback"]

_LIVES_IN = {"QWEDMiddleware": "middleware", "QWEDVerificationCallback": "callback"}


def __getattr__(name: str) -> object:
    if name not in _LIVES_IN:
        raise AttributeError(f"module `{__name__}` has no `{name}`")
    return getattr(import_module(f"{__name__}.{_LIVES_IN[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__]
