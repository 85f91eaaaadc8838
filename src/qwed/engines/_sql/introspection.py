"""Expressions that reveal the version, user, database or file paths of the server."""

from sqlglot import exp

_IDENTITY_TYPES = (
    exp.SessionParameter,
    exp.CurrentVersion,
    exp.CurrentUser,
    exp.SessionUser,
    exp.CurrentDatabase,
    exp.CurrentSchema,
    exp.CurrentCatalog,
    exp.CurrentRole,
)
SERVER_PATH_NODES = (exp.SessionParameter, exp.Parameter, exp.MatchAgainst, exp.Anonymous)
"""Node types without which no server path is read."""
_IDENTITY_CANDIDATES = (exp.Parameter, exp.MatchAgainst, exp.Anonymous, exp.Column)
_IDENTITY_FUNCTIONS = frozenset(
    """
    user version database schema system_user session_user sqlite_version db_name user_name suser_name suser_sname
    original_login host_name hostname current_user current_database current_schema sys_context userenv serverproperty
    is_srvrolemember is_member is_rolemember has_dbaccess inet_server_addr inet_server_port pg_postmaster_start_time
    connection_id pg_backend_pid pg_conf_load_time current_setting currentdatabase currentuser ora_database_name
    sqlite_source_id has_table_privilege has_column_privilege has_schema_privilege has_database_privilege pg_has_role
    has_perms_by_name has_function_privilege
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
_SERVER_PATH_SETTINGS = frozenset(
    """
    datadir basedir tmpdir plugin_dir secure_file_priv general_log_file slow_query_log_file log_error log_bin_basename
    pid_file socket ssl_key character_sets_dir slave_load_tmpdir innodb_data_home_dir data_directory config_file
    hba_file ident_file external_pid_file log_directory ssl_key_file ssl_passphrase_command archive_command
    restore_command dynamic_library_path local_preload_libraries shared_preload_libraries unix_socket_directories
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Settings that reveal where the server keeps its files and which commands it runs; they describe no data."""
_IDENTITY_WORDS = frozenset({"system_user", "session_user", "current_user"})
_DUAL_COLUMNS = frozenset({"user", "uid", "ora_database_name"})


def is_system_variable(node: exp.Expr) -> bool:
    """Return True for `@@version`, in any form a dialect parses it to."""
    if isinstance(node, exp.SessionParameter) or (isinstance(node, exp.Column) and _is_identity_column(node)):
        return True
    # Some dialects have an operator `@@`, and parse it with an empty left side.
    bare = isinstance(node, exp.MatchAgainst) and node.expressions == [None]
    return bare or (isinstance(node, exp.Parameter) and isinstance(node.this, exp.Parameter))


def reads_identity(node: exp.Expr) -> bool:
    """Return True if the node reads the version, the user, the database or a privilege."""
    # One traversal for all types.
    return any(_is_identity(child) for child in node.find_all(*_IDENTITY_TYPES, *_IDENTITY_CANDIDATES))


def _is_identity(node: exp.Expr) -> bool:
    if isinstance(node, exp.Column):
        return _is_identity_column(node)
    if isinstance(node, exp.Anonymous):
        return _is_identity_call(node)
    return isinstance(node, _IDENTITY_TYPES) or is_system_variable(node)


def reads_server_paths(statement: exp.Expr) -> bool:
    """Return True if the statement reads paths or commands of the server."""
    for node in statement.find_all(exp.SessionParameter, exp.Parameter, exp.MatchAgainst):
        if is_system_variable(node) and any(
            _is_server_path(child.name) for child in node.find_all(exp.Identifier, exp.Var)
        ):
            return True
    settings = (call for call in statement.find_all(exp.Anonymous) if call.name.lower() == "current_setting")
    return any(call.expressions and _is_server_path(call.expressions[0].name) for call in settings)


def _is_server_path(name: str) -> bool:
    return name.lower() in _SERVER_PATH_SETTINGS


def _is_identity_call(call: exp.Expr) -> bool:
    name = call.name.lower()
    if name != "current_setting":
        return name in _IDENTITY_FUNCTIONS
    # A setting with a dot belongs to the application, such as the tenant that a policy reads.
    setting = call.expressions[0] if call.expressions else None
    return isinstance(setting, exp.Literal) and "." not in setting.name


def _is_identity_column(column: exp.Expr) -> bool:
    """Return True for `SELECT user FROM dual`, or for an unquoted word that is not a column."""
    if column.name.lower() in _IDENTITY_WORDS:
        return isinstance(column.this, exp.Identifier) and not column.this.args.get("quoted")
    select = column.find_ancestor(exp.Select) if column.name.lower() in _DUAL_COLUMNS else None
    source = select.args.get("from_") if select is not None else None
    return isinstance(source, exp.From) and source.name.lower() == "dual"
