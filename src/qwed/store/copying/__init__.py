"""Everything a server keeps, taken from one database into another: all of it or nothing."""

from qwed.store.copying.addresses import Address, address_of, open_source, open_target
from qwed.store.copying.plan import CopyRefused, Target
from qwed.store.copying.walk import Copied, copy

__all__ = ["Address", "Copied", "CopyRefused", "Target", "address_of", "copy", "open_source", "open_target"]
