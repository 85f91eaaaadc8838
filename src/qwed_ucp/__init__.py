"""UCP pack: exact recomputation of carts, checkouts and orders of the Universal Commerce Protocol."""

from typing import TYPE_CHECKING

from qwed.model.lazy_import import lazy_names

if TYPE_CHECKING:
    from qwed_ucp.ucp_verifier import UCPVerifier

# Imported on first use.
_HOME = {
    "UCPVerifier": "qwed_ucp.ucp_verifier",
}

__all__ = ["UCPVerifier"]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
