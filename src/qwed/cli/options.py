"""Options shared by several commands, and the command group class."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from qwed.cli.output import EXIT_ERROR, fail


def directory(value: str) -> Path:
    """Return the path; an empty value is an error, because it would mean the current directory."""
    if not value:
        raise typer.BadParameter("the directory name is empty")
    return Path(value)


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        parser=directory,
        metavar="DIR",
        help="data directory of the server (QWED_DATA_DIR, default ~/.qwed/data)",
    ),
]
Database = Annotated[
    str | None,
    typer.Option("--database", metavar="URL", help="PostgreSQL database, if the server uses one (QWED_DATABASE_URL)"),
]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON value")]
Organisation = Annotated[
    str | None,
    typer.Option("--organisation", metavar="ID", help="organisation of the log (default: all, or the only one)"),
]
_MAX_WIDTH = 120


def data_dir_of(value: Path | None) -> Path:
    """Return the data directory from the option, the environment or the default."""
    from qwed.model.defaults import HomeDirectoryError, expand_home
    from qwed.settings import SettingsError, data_dir_from

    try:
        return expand_home(value or data_dir_from())
    except (HomeDirectoryError, SettingsError) as error:
        fail(error)


def database_of(value: str | None) -> str:
    """Return the PostgreSQL URL from the option or the environment; empty if the data directory holds everything."""
    from qwed.settings import SettingsError, database_url_from

    try:
        return database_url_from() if value is None else database_url_from({"QWED_DATABASE_URL": value})
    except SettingsError as error:
        fail(error if value is None else "--database must be a PostgreSQL URL such as postgresql://user@host/qwed")


class _Group(TyperGroup):
    """Command group that prints its help and exits with 2 if no command is given: a script may lack an argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(EXIT_ERROR)
        return super().parse_args(ctx, args)


def group(text: str) -> typer.Typer:
    """Return an empty command group with this help text."""
    # Without rich: its help takes three times as long to print.
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": _MAX_WIDTH}
    return typer.Typer(cls=_Group, help=text, context_settings=settings, rich_markup_mode=None, add_completion=False)
