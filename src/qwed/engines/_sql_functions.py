"""Which functions a query may call: the parser's own are known, tables hold the rest, anything else is unknown."""

from enum import Enum

from sqlglot import exp


class Call(Enum):
    """What calling a function means."""

    PURE = "pure"
    STATEFUL = "stateful"
    UNKNOWN = "unknown"
    DANGEROUS = "dangerous"


DANGEROUS_NAMES = frozenset(
    """
    sleep benchmark waitfor delay get_lock release_lock master_pos_wait sleepeachrow
    load_file load_extension readfile writefile edit fts3_tokenizer file url s3 hdfs remote remotesecure mysql
    postgresql mongodb jdbc odbc executable input cluster clusterallreplicas azureblobstorage iceberg deltalake hudi
    glob sniff_csv parquet_scan parquet_metadata parquet_schema sqlite_scan postgres_scan mysql_scan st_read
    openrowset openquery opendatasource openxml fn_trace_gettable fn_xe_file_target_read_file bulk
    query_to_xml query_to_xmlschema database_to_xml schema_to_xml table_to_xml cursor_to_xml
    query_to_xml_and_xmlschema set_config pg_stat_file pg_current_logfile
    getenv sys_exec sys_eval sys_get sys_set do_system eval exec execute system shell httpuritype dburitype
    external_query system$wait system$cancel_query
    java_method reflect reflect2 java_call parse_filename result_scan
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
DANGEROUS_PREFIXES = (
    "pg_sleep",
    "pg_read_",
    "pg_write_",
    "pg_ls_",
    "pg_file_",
    "pg_terminate",
    "pg_cancel",
    "pg_reload",
    "pg_rotate",
    "pg_switch",
    "pg_promote",
    "pg_start_",
    "pg_stop_",
    "pg_backup_",
    "pg_create_",
    "pg_drop_",
    "pg_advisory",
    "pg_try_advisory",
    "pg_logical",
    "pg_replication",
    "pg_notify",
    "pg_import",
    "lo_",
    "dblink",
    "xp_",
    "sp_",
    "utl_",
    "dbms_",
    "http",
    "read_",
    "copy_",
    "ctxsys",
)
DANGEROUS_PACKAGES = frozenset({"ctxsys", "httpuritype", "http", "net", "sys_xmlgen"})
_OWN_PACKAGES = frozenset({"", "pg_catalog", "information_schema", "sys"})
STATEFUL_NAMES = frozenset({"nextval", "setval"})

DANGEROUS_TYPES: tuple[type[exp.Expr], ...] = (exp.ReadCSV, exp.ReadParquet, exp.ToFile, exp.QueryTransform)
UNKNOWN_TYPES: tuple[type[exp.Expr], ...] = (
    exp.AIAgg,
    exp.AIClassify,
    exp.AIEmbed,
    exp.AIForecast,
    exp.AIGenerate,
    exp.AISimilarity,
    exp.AISummarizeAgg,
    exp.AnonymousAggFunc,
    exp.Columns,
    exp.CombinedAggFunc,
    exp.CombinedParameterizedAgg,
    exp.DynamicIdentifier,
    exp.FeaturesAtTime,
    exp.GenerateBool,
    exp.GenerateDouble,
    exp.GenerateEmbedding,
    exp.GenerateInt,
    exp.GenerateTable,
    exp.GenerateText,
    exp.MLForecast,
    exp.MLTranslate,
    exp.NetFunc,
    exp.ParameterizedAgg,
    exp.Predict,
    exp.Secret,
    exp.VectorSearch,
)

PURE_NAMES = frozenset(
    """
    abs age any_value array_agg array_length array_position array_to_string array_upper array_lower arraymap arrayjoin
    ascii atan2 bin bit_length bool_and bool_or btrim cardinality cast ceil ceiling char char_length character_length
    charindex choose chr clock_timestamp coalesce concat concat_ws connection_id convert convert_tz count
    cume_dist curdate current_catalog current_database current_date current_schema current_setting current_time
    current_timestamp current_user curtime database datalength date date_add date_format date_part date_sub date_trunc
    dateadd datediff datefromparts datename datepart day dayname dayofmonth dayofweek dayofyear db_name decode degrees
    dense_rank div elt encode eomonth epoch every exp export_set extract field find_in_set first_value floor format
    format_type formatdatetime found_rows from_days from_unixtime gen_random_uuid generate_series get_byte getdate
    getutcdate greatest group_concat grouping hex hour ifnull iif inet_aton inet_ntoa initcap instr isdate isjson isnull
    isnumeric json json_agg json_array json_array_length json_build_array json_build_object json_each json_extract
    json_extract_path json_extract_path_text json_group_array json_group_object json_length json_object json_object_agg
    json_query json_tree json_type json_typeof json_valid json_value jsonb_agg jsonb_array_elements
    jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
    jsonb_extract_path jsonb_extract_path_text jsonb_object_agg jsonb_object_keys jsonb_pretty jsonb_set
    jsonb_strip_nulls jsonb_to_recordset jsonb_typeof json_array_elements json_array_elements_text json_each_text
    json_object_keys json_populate_record json_to_recordset julianday justify_days justify_hours lag last_day
    last_insert_id last_insert_rowid last_value lastval lcase lead least left len length likelihood likely ln localtime
    localtimestamp locate log log10 log2 lower lpad ltrim make_date make_interval make_set make_time make_timestamp
    makedate maketime max md5 microsecond mid min minute mod month monthname months_between newid next_day
    nlevel normalize now nth_value ntile nullif numeric_to_char nvl nvl2 object_name oct octet_length ord overlay
    parse_ident parsename patindex percent_rank percentile_cont percentile_disc period_add period_diff phraseto_tsquery
    pi plainto_tsquery position pow power printf quarter quote quote_ident quote_literal quote_nullable quotename
    radians random rand rank regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace
    regexp_split_to_array regexp_split_to_table regexp_substr repeat replace replicate reverse right round row
    row_count row_number row_to_json rpad rtrim scope_identity second sec_to_time sequence session_user setseed
    sha1 sha2 sha224 sha256 sha384 sha512 sign similarity sin space split_part sqlite_version sqrt str str_to_date
    strcmp strftime string_agg string_escape string_split string_to_array string_to_table strpos stuff subdate substr
    substring substring_index subtime sum sysdate sysdatetime system_user systimestamp tan time time_format time_to_sec
    timediff timeofday timestamp timestampadd timestampdiff to_ascii to_base64 to_char to_date to_days to_hex to_json
    to_jsonb to_number to_seconds to_timestamp to_tsquery to_tsvector total total_changes translate trim trunc truncate
    try_cast try_convert ts_headline ts_rank ts_rank_cd tsvector_to_array typeof ucase unhex unicode unistr
    unix_timestamp unixepoch unlikely unnest upper user user_name utc_date utc_time utc_timestamp uuid uuid_generate_v4
    value version websearch_to_tsquery week weekday weekofyear width_bucket word_similarity year yearweek zeroblob
    has_table_privilege pg_typeof pg_size_pretty pg_table_size pg_total_relation_size pg_relation_size
    pg_database_size pg_get_viewdef pg_get_constraintdef pg_get_indexdef obj_description col_description
    to_regclass array_remove array_append array_cat array_prepend array_replace unaccent crc32 soundex difference
    isfinite corr covar_pop covar_samp regr_slope stddev stddev_pop stddev_samp var_pop var_samp variance bit_and
    bit_or bit_xor checksum compress uncompress uniq uniqexact toyear tomonth todate todatetime tostring toint32 toint64
    tofloat64 todayofmonth tostartofmonth tostartofday countif sumif avgif approx_count_distinct approx_distinct
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)


def call_of(node: exp.Expr) -> Call:
    """What calling this function means; PURE for a node that is no call."""
    if isinstance(node, DANGEROUS_TYPES):
        return Call.DANGEROUS
    if isinstance(node, UNKNOWN_TYPES):
        return Call.UNKNOWN
    if isinstance(node, exp.NextValueFor):
        return Call.STATEFUL
    if isinstance(node, exp.Anonymous):
        if isinstance(node.parent, exp.Hint):
            return Call.PURE
        return _named(call_name(node), _package(node))
    # A function of somebody's own schema may share its name with a known one.
    return Call.PURE if _package(node) in _OWN_PACKAGES else Call.UNKNOWN


def call_name(node: exp.Expr) -> str:
    """The function's name as the text has it, folded."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else node.key


def _package(node: exp.Expr) -> str:
    parent = node.parent
    called = isinstance(node, exp.Func) and isinstance(parent, exp.Dot) and parent.expression is node
    return parent.this.name.lower() if called and parent is not None else ""


def _named(name: str, package: str) -> Call:
    if name in DANGEROUS_NAMES or name.startswith(DANGEROUS_PREFIXES):
        return Call.DANGEROUS
    if package in DANGEROUS_PACKAGES or package.startswith(("utl_", "dbms_")):
        return Call.DANGEROUS
    if name in STATEFUL_NAMES:
        return Call.STATEFUL
    return Call.PURE if name in PURE_NAMES and package in _OWN_PACKAGES else Call.UNKNOWN
