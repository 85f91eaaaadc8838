"""Optional imports, so that integrations can be imported without their framework."""

from importlib import import_module
from typing import Any, NoReturn


def import_or_stub(module: str, name: str, package: str) -> Any:
    """Return a name of the framework; if it is not installed, a class that raises ImportError when instantiated."""
    try:
        return getattr(import_module(module), name)
    except ImportError as missing:
        return _missing_class(package, missing)


def _missing_class(package: str, missing: ImportError) -> type:
    class Absent:
        def __new__(cls, *_arguments: object, **_named: object) -> NoReturn:
            raise ImportError(
                f"`{cls.__name__}` needs a package that is not installed: pip install {package}"
            ) from missing

        def __class_getitem__(cls, _parameters: object) -> type:
            return cls

    return Absent
