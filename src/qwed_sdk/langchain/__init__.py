"""LangChain integration: a callback for executors, graphs and single tools, and a middleware for `create_agent`.

Each class is imported on first use: the callback needs langchain-core only, the middleware needs langchain.
"""

from typing import TYPE_CHECKING

from qwed.model.lazy_import import lazy_names

if TYPE_CHECKING:
    from qwed_sdk.langchain.callback import QWEDVerificationCallback
    from qwed_sdk.langchain.middleware import QWEDMiddleware

__all__ = ["QWEDMiddleware", "QWEDVerificationCallback"]

_MODULE_OF_NAME = {
    "QWEDMiddleware": "qwed_sdk.langchain.middleware",
    "QWEDVerificationCallback": "qwed_sdk.langchain.callback",
}
__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF_NAME)
