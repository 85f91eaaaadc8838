"""Expressions by which a database says what and whose it is."""

from sqlglot import exp

_TYPES = (
    exp.SessionParameter,
    exp.CurrentVersion,
    exp.CurrentUser,
    exp.SessionUser,
    exp.CurrentDatabase,
    exp.CurrentSchema,
    exp.CurrentCatalog,
    exp.CurrentRole,
)
ASKED_PLACES = (exp.SessionParameter, exp.Parameter, exp.MatchAgainst, exp.Anonymous)
"""Without one of these nobody asks for a place."""
_ASKING = (exp.Parameter, exp.MatchAgainst, exp.Anonymous, exp.Column)
_NAMES = frozenset(
    """
    user version database schema system_user session_user sqlite_version db_name user_name suser_name suser_sname
    original_login host_name hostname current_user current_database current_schema sys_context userenv serverproperty
    is_srvrolemember is_member is_rolemember has_dbaccess inet_server_addr inet_server_port pg_postmaster_start_time
    connection_id pg_backend_pid pg_conf_load_time current_setting currentdatabase currentuser ora_database_name
    sqlite_source_id has_table_privilege has_column_privilege has_schema_privilege has_database_privilege pg_has_role
    has_perms_by_name has_function_privilege
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
_PLACES = frozenset(
    """
    datadir basedir tmpdir plugin_dir secure_file_priv general_log_file slow_query_log_file log_error log_bin_basename
    pid_file socket ssl_key character_sets_dir slave_load_tmpdir innodb_data_home_dir data_directory config_file
    hba_file ident_file external_pid_file log_directory ssl_key_file ssl_passphrase_command archive_command
    restore_command dynamic_library_path local_preload_libraries shared_preload_libraries unix_socket_directories
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Settings that tell where the server keeps its files and which commands it runs: no data is described by them."""
_WORDS = frozenset({"system_user", "session_user", "current_user"})
_BARE = frozenset({"user", "uid", "ora_database_name"})


def is_system_variable(node: exp.Expr) -> bool:
    """`@@version`, however the dialect reads it."""
    if isinstance(node, exp.SessionParameter) or (isinstance(node, exp.Column) and _of_dual(node)):
        return True
    # Some dialects have an operator `@@`, and read it with nothing on its left.
    bare = isinstance(node, exp.MatchAgainst) and node.expressions == [None]
    return bare or (isinstance(node, exp.Parameter) and isinstance(node.this, exp.Parameter))


def asks_who_we_are(node: exp.Expr) -> bool:
    """Whether the version, the user, the database or a privilege is asked for in here."""
    # One look at the tree for all of them.
    return any(_says_who(each) for each in node.find_all(*_TYPES, *_ASKING))


def _says_who(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return _of_dual(node)
    if isinstance(node, exp.Anonymous):
        return _named(node)
    return isinstance(node, _TYPES) or is_system_variable(node)


def asks_for_places(statement: exp.Expr) -> bool:
    """Whether the files and commands of the server are asked for."""
    for node in statement.find_all(exp.SessionParameter, exp.Parameter, exp.MatchAgainst):
        if is_system_variable(node) and any(_is_place(each.name) for each in node.find_all(exp.Identifier, exp.Var)):
            return True
    settings = (call for call in statement.find_all(exp.Anonymous) if call.name.lower() == "current_setting")
    return any(call.expressions and _is_place(call.expressions[0].name) for call in settings)


def _is_place(name: str) -> bool:
    return name.lower() in _PLACES


def _named(call: exp.Expr) -> bool:
    name = call.name.lower()
    if name != "current_setting":
        return name in _NAMES
    # A setting with a dot is the application's own, such as the tenant a policy looks up.
    given = call.expressions[0] if call.expressions else None
    return isinstance(given, exp.Literal) and "." not in given.name


def _of_dual(column: exp.Expr) -> bool:
    """`SELECT user FROM dual`, or a word that is no column where nobody quoted it."""
    if column.name.lower() in _WORDS:
        return isinstance(column.this, exp.Identifier) and not column.this.args.get("quoted")
    select = column.find_ancestor(exp.Select) if column.name.lower() in _BARE else None
    source = select.args.get("from_") if select is not None else None
    return isinstance(source, exp.From) and source.name.lower() == "dual"
