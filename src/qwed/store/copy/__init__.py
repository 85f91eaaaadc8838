"""Copy of a whole database into another: all of it or nothing."""

from qwed.store.copy.plan import CopyError, CopyTarget
from qwed.store.copy.runner import CopyResult, copy
from qwed.store.copy.urls import DatabaseAddress, address_of, open_source, open_target

__all__ = [
    "CopyError",
    "CopyResult",
    "CopyTarget",
    "DatabaseAddress",
    "address_of",
    "copy",
    "open_source",
    "open_target",
]
