"""What an integration takes from its framework, so that our modules import where that is not installed."""

from importlib import import_module
from typing import Any, NoReturn


def framework(module: str, name: str, package: str) -> Any:
    """A name of the framework; where it is not installed a class that says so when an instance is made."""
    try:
        return getattr(import_module(module), name)
    except ImportError as missing:
        return _absent(package, missing)


def _absent(package: str, missing: ImportError) -> type:
    class Absent:
        def __new__(cls, *_arguments: object, **_named: object) -> NoReturn:
            raise ImportError(f"`{cls.__name__}` needs what is not installed: pip install {package}") from missing

        def __class_getitem__(cls, _parameters: object) -> type:
            return cls

    return Absent
