"""What commands have in common: options that several take, and groups that show their commands."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from qwed.cli.printing import CANNOT, sorry


def directory(given: str) -> Path:
    """The directory that was named; a variable that was empty names none, and must not mean this one."""
    if not given:
        raise typer.BadParameter("no directory is named")
    return Path(given)


DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        parser=directory,
        metavar="DIR",
        help="the server's data directory (QWED_DATA_DIR, default ~/.qwed/data)",
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", help="the database in PostgreSQL, where that keeps the log (QWED_DATABASE_URL)"
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON value")]
Organisation = Annotated[
    str | None, typer.Option("--organisation", metavar="ID", help="whose log (default: all, or the only one)")
]
_WIDEST = 120


def data_dir_of(given: Path | None) -> Path:
    """The data directory that is meant; no other setting is looked at."""
    from qwed.settings import SettingsError, data_dir_from
    from qwed.words.home import NoHome, from_home

    try:
        return from_home(given or data_dir_from())
    except (NoHome, SettingsError) as error:
        sorry(error)


def database_of(given: str | None) -> str:
    """The database in PostgreSQL that is meant; empty where everything is in the data directory."""
    from qwed.settings import SettingsError, database_url_from

    try:
        return database_url_from() if given is None else database_url_from({"QWED_DATABASE_URL": given})
    except SettingsError as error:
        sorry(error if given is None else "--database must name a database, such as postgresql://user@host/qwed")


class _Group(TyperGroup):
    """Commands that are listed where none is named: that is no success, a script may have lost its argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(CANNOT)
        return super().parse_args(ctx, args)


def group(text: str) -> typer.Typer:
    """An empty group of commands, with what `--help` says of it."""
    # Help without rich: it is as readable, and a third as quick.
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": _WIDEST}
    return typer.Typer(cls=_Group, help=text, context_settings=settings, rich_markup_mode=None, add_completion=False)
