"""Names of functions of common databases that only compute; any other name is unknown."""

PURE_NAMES = frozenset(
    """
    abbrev abs acos acosd acosh add add_days add_hours add_minutes add_months add_seconds add_weeks add_years
    adddate adddays addhours addminutes addmonths addseconds addtime addweeks addyears aes_decrypt aes_encrypt age
    agg aggregate ago akeys alias all_match alphatokens and any any_match any_value anyheavy anylast app_name apply
    approx_count_distinct approx_distinct approx_most_frequent approx_percentile approx_percentile_accumulate
    approx_percentile_combine approx_percentile_cont approx_percentile_disc approx_percentile_estimate
    approx_quantile approx_quantiles approx_set approx_top_count approx_top_k approx_top_k_accumulate
    approx_top_k_combine approx_top_k_estimate approx_top_sum approximate approximate_count_distinct
    approximate_jaccard_index approximate_similarity arbitrary arg_max arg_max_null arg_max_nulls_last arg_min
    arg_min_null arg_min_nulls_last argmax argmin armor array array_agg array_aggr array_aggregate array_all
    array_any array_append array_apply array_average array_cat array_compact array_concat array_concat_agg
    array_construct array_construct_compact array_contained_by array_contains array_contains_all
    array_cosine_distance array_cosine_similarity array_cross_product array_dims array_distance array_distinct
    array_dot_product array_duplicates array_except array_extract array_fill array_filter array_first array_flatten
    array_frequency array_generate_range array_grade_up array_has array_has_all array_has_any array_has_duplicates
    array_includes array_indexof array_inner_product array_insert array_intersect array_intersection
    array_is_distinct array_join array_last array_length array_lower array_max array_min array_ndims
    array_negative_dot_product array_negative_inner_product array_normalize array_overlaps array_pop_back
    array_pop_front array_position array_positions array_prepend array_push_back array_push_front array_reduce
    array_remove array_remove_at array_repeat array_replace array_resize array_reverse array_reverse_sort
    array_sample array_select array_shuffle array_size array_slice array_sort array_sum array_to_json
    array_to_string array_to_string_comma_default array_transform array_union_agg array_unique array_unique_agg
    array_upper array_value array_where array_zip arrayagg arrayall arrayauc arrayavg arraycompact arrayconcat
    arraycount arraycumsum arraydifference arraydistinct arrayelement arrayenumerate arrayenumerateuniq arrayexcept
    arrayexists arrayfilter arrayfirst arrayfirstindex arrayflatten arrayfold arrayintersect arrayjoin arraylast
    arraymap arraymax arraymin arraypopback arraypopfront arrayproduct arraypushback arraypushfront arrayreduce
    arrayresize arrayreverse arrayreversesort arrayrotateleft arrays_overlap arrays_to_object arrays_zip arrayslice
    arraysort arraystringconcat arraysum arrayuniq arraywithconstant arrayzip as_array as_boolean as_date as_double
    as_integer as_object as_varchar ascii asciistr asin asind asinh assert_true assumenotnull at_timezone atan atan2
    atand atanh atn2 avals avg avgif avgmerge avgweighted bar base64 base64_decode_binary base64_decode_string
    base64_encode base64decode base64encode beta_cdf bin bin_to_num bin_to_uuid binary_checksum bing_tile
    bing_tile_at binom bit_and bit_and_agg bit_andagg bit_count bit_get bit_length bit_lshift bit_not bit_or
    bit_or_agg bit_oragg bit_position bit_rshift bit_shiftleft bit_shiftright bit_xor bit_xor_agg bit_xoragg bitand
    bitand_agg bitandagg bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg
    bitmapbuild bitnot bitor bitor_agg bitoragg bitshiftleft bitshiftright bitstring bitstring_agg
    bitstring_byte_comparable bittest bitwise_and bitwise_and_agg bitwise_count bitwise_not bitwise_or
    bitwise_or_agg bitwise_xor bitwise_xor_agg bitxor bitxor_agg bitxoragg blocknumber bm25 bool bool_and bool_or
    booland booland_agg boolean boolnot boolor boolor_agg boolxor boolxor_agg boundingratio bpcharcmp broadcast
    bround btrim byte_length can_cast_implicitly can_json_parse cardinality case cast cast_to_str_type cast_to_type
    categoricalinformationvalue cbrt ceil ceiling century changes char char_length character_length charindex
    charset chartorowid check_json check_xml checksum checksum_agg choose chr city_hash64 cityhash64 classifier
    clock_timestamp cluster_id coalesce code_points_to_bytes code_points_to_string codepoint coercibility
    col_description col_length col_name collate collate_aa collate_af collate_am collate_ar collate_ar_sa collate_as
    collate_az collate_bal collate_be collate_bg collate_blo collate_bn collate_bo collate_br collate_bs collate_ca
    collate_ceb collate_chr collate_cs collate_cu collate_cy collate_da collate_de collate_de_at collate_dsb
    collate_dz collate_ee collate_el collate_en collate_en_us collate_eo collate_es collate_et collate_fa
    collate_fa_af collate_ff collate_fi collate_fil collate_fo collate_fr collate_fr_ca collate_fy collate_ga
    collate_gl collate_gu collate_ha collate_haw collate_he collate_he_il collate_hi collate_hr collate_hsb
    collate_hu collate_hy collate_id collate_id_id collate_ig collate_is collate_it collate_ja collate_ka collate_kk
    collate_kl collate_km collate_kn collate_ko collate_kok collate_ku collate_ky collate_lb collate_lij collate_lkt
    collate_ln collate_lo collate_lt collate_lv collate_mk collate_ml collate_mn collate_mr collate_ms collate_mt
    collate_my collate_nb collate_nb_no collate_ne collate_nl collate_nn collate_no collate_noaccent collate_nso
    collate_om collate_or collate_pa collate_pa_in collate_pl collate_ps collate_pt collate_ro collate_ru collate_sa
    collate_se collate_sgs collate_si collate_sk collate_sl collate_smn collate_sq collate_sr collate_sr_ba
    collate_sr_me collate_sr_rs collate_ssy collate_st collate_sv collate_sw collate_ta collate_te collate_th
    collate_tk collate_tn collate_to collate_tr collate_ug collate_uk collate_ur collate_uz collate_vi collate_vo
    collate_wae collate_wo collate_xh collate_yi collate_yo collate_zh collate_zh_cn collate_zh_hk collate_zh_mo
    collate_zh_sg collate_zh_tw collate_zu collation collect collect_list collect_set columnproperty combinations
    combine combine_aggr compose compress concat concat_ws concatwithseparator conditional_change_event
    conditional_true_event connect_by_root connection_id connectionproperty constant_or_null contains
    contains_sequence contains_substr context_info contingency conv convert convert_from convert_timezone convert_to
    convert_to_charset convert_tz corr cos cosd cosh cosine_distance cosine_similarity cosinedistance cot coth count
    count_big count_if count_star countd countequal countif countmatches countmerge countstate covar_pop covar_samp
    covarpop covarsamp cramersv cramersvbiascorrected crc32 create_sort_key crypt csc csch cube cume_dist curdate
    current_account current_account_name current_available_roles current_catalog current_client
    current_connection_id current_database current_date current_datetime current_ip_address current_localtime
    current_localtimestamp current_organization_name current_organization_user current_query_id current_region
    current_role current_role_type current_schema current_schemas current_secondary_roles current_session
    current_setting current_statement current_time current_timestamp current_timezone current_transaction
    current_transaction_id current_user current_user_id current_version current_warehouse currentdatabase
    currentschemas currentuser currval curtime cutquerystring cuttofirstsignificantsubdomain cutwww cv
    daitch_mokotoff damerau_levenshtein database databaseproperty databasepropertyex datalength date date_add
    date_bin date_bucket date_cmp date_cmp_timestamp date_diff date_format date_from_parts date_from_unix_date
    date_parse date_part date_part_year date_str_to_date date_sub date_to_date_str date_to_di date_trunc dateadd
    datediff datediff_big datefromparts datename datepart daterange datesub datetime datetime2fromparts datetime_add
    datetime_diff datetime_sub datetime_trunc datetimefromparts datetimeoffsetfromparts datetrunc datetype day
    day_of_month day_of_week day_of_year dayname dayofmonth dayofweek dayofweek_iso dayofweekiso dayofyear
    days_between days_in_month db_id db_name dbtimezone decade decimal_average decimal_division decode decode_case
    decodeurlcomponent decompose decompress decompress_binary decompress_string decrypt decrypt_raw degrees deltasum
    deltasumtimestamp dense_rank deref dexp di_to_date dictget dictgetordefault dictgetstring dicthas difference
    digest div div0 div0null divide dlog1 dlog10 dmetaphone domain domainwithoutwww dot_product double dow doy dpow
    dump e each edit_distance editdist3 editdistance element_at elt embed empty empty_blob empty_clob
    emptyarrayint32 emptyarraystring encode encodeurlcomponent encrypt encrypt_raw ends_with endswith entropy
    enum_first enum_last enum_range enum_range_boundary eomonth epoch epoch_ms epoch_ns epoch_us equal_null
    equi_width_bins era erf erfc error_line error_message error_number error_procedure error_severity error_state
    euclidean_distance even every exists existsnode exp explode explode_outer exploding_generate_series
    exponentialmovingaverage exponentialtimedecayedavg export_set extract extractall extractallgroups
    extracturlparameter extracturlparameters factorial family farm_fingerprint farmfingerprint64 farmhash64 favg
    fdiv feature_id field filter finalize finalizeaggregation find find_in_set findnth first first_value
    firstsignificantsubdomain flatten float float64 floor fmod fnv_hash forall format format_bytes format_date
    format_datetime format_number format_pg_type format_pico_time format_string format_time format_timestamp
    format_type formatdatetime formatmessage formatreadabledecimalsize formatreadablesize found_rows fragment
    from_base from_base32 from_base64 from_base64url from_big_endian_64 from_binary from_csv from_days from_hex
    from_iso8601_date from_iso8601_timestamp from_iso8601_timestamp_nanos from_json from_json_strict from_posix_time
    from_tz from_unixtime from_utc_timestamp from_utf8 fromunixtimestamp fromunixtimestamp64milli fsum fts5
    fts5_source_id func_sha1 gamma gap_fill gcd gen_random_bytes gen_random_uuid gen_salt generate generate_array
    generate_date_array generate_series generate_subscripts generate_timestamp_array generate_uuid generateuuidv4
    generateuuidv7 generator geodistance geohashdecode geohashencode geomean geometric_mean geometry_to_bing_tiles
    geopoly_area geopoly_contains_point geotoh3 get get_array_length get_bit get_block_size get_byte
    get_current_time get_current_timestamp get_current_ts_config get_extract get_format get_ignore_case
    get_json_object get_path get_type getbit getdate getutcdate grade_up great_circle_distance greatcircledistance
    greatest greatest_common_divisor greatest_ignore_nulls group_concat group_id grouparray grouparrayinsertat
    grouparraylast grouparraymovingavg grouparraymovingsum grouparraysample groupbitand groupbitmap groupbitmapand
    groupbitmapor groupbitmapxor groupbitor groupbitxor groupconcat grouping grouping_id groupuniqarray
    h3_cell_to_latlng h3_cell_to_parent h3_lat_lng_to_cell h3_latlng_to_cell h3_latlngtocell h3_point_to_cell
    h3_togeo h3tostring halfmd5 hamming hamming_distance has has_any_column_privilege has_column_privilege
    has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege
    has_perms_by_name has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege
    has_tablespace_privilege hasall hasany hash hash_agg hash_md5 hash_sha hash_sha1 hash_sha256 hash_sha512
    hashbytes hashtype_md5 hassubstr haversine hex hex_decode_binary hex_decode_string hex_encode hextoraw highlight
    histogram histogram_exact histogram_numeric hive_partition_component hll hll_accumulate hll_combine hll_count
    hll_estimate hll_sketch_agg hll_sketch_estimate hmac hmac_md5 hmac_sha1 hmac_sha256 host host_name hostmask
    hostname hour hours_between hstore human_readable_seconds hypot ident_current ident_incr ident_seed identifier
    identity ieee_divide if iff ifnull ignore iif ilike ilike_escape in_search_path index_col index_key indexof
    indexproperty inet6_aton inet6_ntoa inet_aton inet_client_addr inet_client_port inet_merge inet_ntoa
    inet_same_family inet_server_addr inet_server_port infinity initcap inline inline_outer inner_product
    input_file_name insert instr instrb int int4range int64 int8range intdiv intdivorzero interpolate interval_cmp
    intervallengthsum inthash32 inthash64 inverse_normal_cdf ip_prefix ip_subnet_max ip_subnet_min ipv4numtostring
    ipv4stringtonum ipv6numtostring is_array is_ascii is_boolean is_date is_decimal is_double is_finite
    is_histogram_other_bin is_inf is_infinite is_integer is_ipv4 is_ipv6 is_json_scalar is_member is_nan
    is_normalized is_null_value is_object is_rolemember is_subnet_of is_timestamp_ntz is_uuid is_valid_json
    is_valid_json_array is_varchar isdate isempty isfinite isinf isinfinite isipaddressinrange isjson isnan
    isnotnull isnull isnumeric isodow isoyear iteration_number jaccard jaro_similarity jaro_winkler_similarity
    jarowinkler_similarity jarowinklersimilarity json json_agg json_array json_array_append json_array_contains
    json_array_elements json_array_elements_text json_array_get json_array_insert json_array_length json_arrayagg
    json_build_array json_build_object json_contains json_contains_path json_copy_strftime_if_date
    json_copy_strftime_if_timestamp json_dataguide json_deep_merge json_depth json_each json_each_text
    json_error_position json_exists json_extract json_extract_array json_extract_array_element_text
    json_extract_path json_extract_path_text json_extract_scalar json_extract_string json_extract_string_array
    json_format json_group_array json_group_object json_group_structure json_insert json_keys json_length json_merge
    json_merge_patch json_merge_patch_diff json_merge_preserve json_modify json_normalize json_object
    json_object_agg json_object_keys json_objectagg json_overlaps json_parse json_patch json_path_exists
    json_populate_record json_populate_recordset json_pretty json_query json_query_array json_quote json_remove
    json_replace json_scalar json_schema_valid json_search json_serialize json_serialize_plan json_set json_size
    json_storage_size json_strip_nulls json_structure json_table json_to_record json_to_recordset json_to_tsvector
    json_transform json_transform_strict json_tree json_tuple json_type json_typeof json_unquote json_valid
    json_value json_value_array jsonb jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_array_length
    jsonb_build_array jsonb_build_object jsonb_concat jsonb_contains jsonb_each jsonb_each_text jsonb_exists
    jsonb_extract jsonb_extract_path jsonb_extract_path_text jsonb_extract_scalar jsonb_group_array
    jsonb_group_object jsonb_insert jsonb_object jsonb_object_agg jsonb_object_keys jsonb_path_exists
    jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_populate_record
    jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record
    jsonb_to_recordset jsonb_to_tsvector jsonb_typeof jsonextract jsonextractarrayraw jsonextractbool
    jsonextractfloat jsonextractint jsonextractkeysandvalues jsonextractraw jsonextractstring jsonhas jsonlength
    jsontype julian julianday justify_days justify_hours justify_interval kahan_sum keys kolmogorovsmirnovtest
    kurtosis kurtosis_pop kurtpop kurtsamp l1_distance l2_distance l2distance lag laginframe
    largesttrianglethreebuckets last last_day last_day_of_month last_insert_id last_insert_rowid last_query_id
    last_value lastval lax_bool lax_float64 lax_int64 lax_string lca lcase lcm lead leadinframe least
    least_common_multiple least_ignore_nulls left left_grapheme leftpad len length length_grapheme lengthb
    lengthutf8 levenshtein levenshtein_distance levenshtein_less_equal levenshteindistance lgamma like like_escape
    likelihood likely line_locate_point list list_aggr list_aggregate list_any_value list_append list_apply
    list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or list_cat
    list_concat list_contains list_cosine_distance list_cosine_similarity list_count list_distance list_distinct
    list_dot_product list_element list_entropy list_extract list_filter list_first list_grade_up list_has
    list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect list_kurtosis
    list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode list_negative_dot_product
    list_negative_inner_product list_pack list_position list_prepend list_product list_reduce list_resize
    list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort list_stddev_pop
    list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop list_var_samp
    list_where list_zip listagg ln lnnvl localtime localtimestamp locate locf log log10 log2 logical_and logical_or
    lower lower_hex lower_inc lower_inf lowerutf8 lpad ltree ltrim lttb luhn_check m_d5_number_lower64
    m_d5_number_upper64 macaddr8_set7bit mad make_date make_dt_interval make_interval make_ref make_set make_time
    make_timestamp make_timestamp_ms make_timestamp_ns make_timestamp_ntz make_timestamptz make_type
    make_ym_interval makedate maketime manhattan_distance mannwhitneyutest map map_agg map_cat map_concat
    map_contains map_contains_entry map_contains_key map_contains_value map_delete map_entries map_extract
    map_extract_value map_filter map_from_arrays map_from_entries map_insert map_keys map_pick map_size map_subset
    map_to_pg_oid map_union map_values map_zip_with mapadd mapapply mapcontains mapfilter mapfromarrays mapkeys
    mapvalues mask masklen match match_against match_number matchinfo materialize max max_by maxintersections
    maxintersectionsposition maxmap md5 md5_binary md5_digest md5_hex md5_number md5_number_lower md5_number_lower64
    md5_number_upper md5_number_upper64 mean meanztest median member_of merge metaphone metrohash64 microsecond mid
    millennium millisecond min min_active_rowversion min_by min_scale minhash minhash_combine minmap minus minute
    minutes_between mismatches mod mode modulo moduloorzero monotonically_increasing_id month monthname months_add
    months_between multiif multimap_agg multimatchany multiply multirange multisearchany multisearchfirstindex
    murmur3 murmurhash2_64 murmurhash3_32 murmurhash3_64 name_const named_struct nan nanosecond nanvl nchar negate
    negative neighbor netmask network new_time newid newsequentialid next next_day next_value_for nextafter
    nfc_normalize ngrams nlevel nls_initcap nls_lower nls_upper nlssort none_match normal normal_cdf normalize
    normalize_and_casefold normalized_interval not_ilike_escape not_like_escape notempty notlike now now64 nth_value
    ntile nullif nullifzero num_nonnulls num_nulls number_to_str numbers numbers_mt numeric_histogram
    numeric_to_char numnode numrange numtodsinterval numtoyminterval nvl nvl2 obj_description object_agg
    object_construct object_construct_keep_null object_definition object_delete object_id object_insert object_keys
    object_name object_pick object_schema_name object_transform objectproperty oct octet_length offset offsets
    openjson optimize or ora_hash ora_rowscn ord ordinal original_login overlay pad parse parse_bignumeric
    parse_date parse_datetime parse_dirname parse_dirpath parse_duration parse_formatted_bytes parse_ident parse_ip
    parse_json parse_numeric parse_path parse_time parse_timestamp parse_url parsedatetime parsedatetimebesteffort
    parsedatetimebesteffortornull parsename path path_join pathfull patindex percent_rank percentile percentile_agg
    percentile_approx percentile_cont percentile_disc period_add period_diff permissions pg_backend_pid
    pg_blocking_pids pg_collation_is_visible pg_column_size pg_conf_load_time pg_conversion_is_visible
    pg_current_wal_lsn pg_current_xact_id pg_database_collation_actual_version pg_database_size pg_encoding_to_char
    pg_function_is_visible pg_get_constraintdef pg_get_expr pg_get_functiondef pg_get_indexdef pg_get_keywords
    pg_get_partkeydef pg_get_ruledef pg_get_serial_sequence pg_get_triggerdef pg_get_userbyid pg_get_viewdef
    pg_has_role pg_indexes_size pg_input_is_valid pg_is_in_recovery pg_is_other_temp_schema pg_last_wal_receive_lsn
    pg_last_wal_replay_lsn pg_my_temp_schema pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible
    pg_postmaster_start_time pg_relation_size pg_size_pretty pg_stat_get_live_tuples pg_table_is_visible
    pg_table_size pg_total_relation_size pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible
    pg_ts_template_is_visible pg_type_is_visible pg_typeof pg_wal_lsn_diff phraseto_tsquery pi plainto_tsquery plus
    pointinellipses pointinpolygon posexplode posexplode_outer position positioncaseinsensitive positionutf8 pow
    power powermultiset pragma_collation_list pragma_compile_options pragma_database_list pragma_foreign_key_list
    pragma_function_list pragma_index_info pragma_index_list pragma_table_info pragma_table_list pragma_table_xinfo
    prefix presentnnv presentv prev previous previous_day printf prior product protocol ps_current_thread_id
    quantile quantile_cont quantile_disc quantilebfloat16 quantilebfloat16weighted quantiledeterministic
    quantileexact quantileexacthigh quantileexactinclusive quantileexactlow quantileexactweighted quantilegk
    quantileinterpolatedweighted quantiles quantilesbfloat16 quantilesbfloat16weighted quantilesdeterministic
    quantilesexact quantilesexactexclusive quantilesexacthigh quantilesexactlow quantilesexactweighted quantilesgk
    quantilesinterpolatedweighted quantilestdigest quantilestdigestweighted quantilestiming quantilestimingweighted
    quantiletdigest quantiletdigestweighted quantiletiming quantiletimingweighted quantileweighted quarter
    querystring querytree quote quote_ident quote_literal quote_nullable quotename radians rand rand32 rand64
    randcanonical randn randnormal random random_bytes random_normal randomblob randomprintableascii randomstring
    randstr randuniform range range_agg range_bucket range_intersect_agg range_merge range_n rank rankcorr
    ratio_to_report rawtohex reduce reduce_agg ref reg_domain regexp regexp_contains regexp_count regexp_escape
    regexp_extract regexp_extract_all regexp_full_match regexp_i_like regexp_instr regexp_like regexp_match
    regexp_matches regexp_replace regexp_split regexp_split_to_array regexp_split_to_table regexp_substr
    regexp_substr_all regexpextract regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy regr_valx regr_valy remainder remap_struct repeat repeated_count repeatstr replace
    replace_type replaceall replaceone replaceregexpall replaceregexpone replicate reservoir_quantile retention
    reverse reverseutf8 right right_grapheme rightpad rint rlike roles_graphml rollup round round_even roundbankers
    row row_count row_number row_to_json rowcount rowcount_big rowidtochar rownumberinallblocks rownumberinblock
    rpad rtreecheck rtreedepth rtreenode rtrim rtrimmed_length running runningaccumulate runningdifference safe_add
    safe_convert_bytes_to_string safe_divide safe_func safe_multiply safe_negate safe_offset safe_ordinal
    safe_subtract scale schema schema_id schema_name schema_of_csv schema_of_json scn_to_timestamp scope_identity
    scope_resolution search search_ip sec sec_to_time sech second seconds_between sem sentences seq1 seq2 seq4 seq8
    sequence sequencecount sequencematch sequencenextnode serverproperty session_context session_user session_window
    sessiontimezone set_agg set_bit set_byte set_masklen set_union setseed setweight sha sha1 sha1_binary sha1_hex
    sha2 sha224 sha256 sha2_binary sha2_hex sha384 sha512 shiftleft shiftright shiftrightunsigned shobj_description
    show_trgm shuffle sign signbit signum similarity simplejsonextractint simplejsonextractstring
    simplelinearregression sin sind sinh siphash128 siphash64 size skew skewness skewpop skewsamp skeys slice
    smalldatetimefromparts snippet some sort_array soundex soundex_p123 space spark_partition_id sparkbar split
    split_by_string split_part split_to_array split_to_map split_to_multimap split_to_table splitbychar
    splitbyregexp splitbystring splitbywhitespace spooky_hash_v2_64 sqlite_compileoption_get
    sqlite_compileoption_used sqlite_offset sqlite_source_id sqlite_version sqrt square st_area st_asbinary
    st_asgeojson st_asmvt st_asmvtgeom st_astext st_aswkb st_aswkt st_buffer st_centroid st_closestpoint
    st_clusterdbscan st_collect st_contains st_convexhull st_coveredby st_covers st_crosses st_crs st_difference
    st_disjoint st_distance st_distance_sphere st_distancesphere st_dump st_dwithin st_endpoint st_envelope
    st_equals st_expand st_extent st_geogfromtext st_geogpoint st_geography st_geohash st_geometryfromtext
    st_geometrytype st_geomfromgeojson st_geomfromtext st_geomfromwkb st_hexagongrid st_intersection st_intersects
    st_intersects_extent st_isvalid st_length st_linemerge st_makeenvelope st_makeline st_makepoint st_makepolygon
    st_makevalid st_npoints st_numgeometries st_numpoints st_overlaps st_perimeter st_point st_pointn st_setcrs
    st_setsrid st_simplify st_snaptogrid st_squaregrid st_srid st_startpoint st_symdifference st_tileenvelope
    st_touches st_transform st_union st_within st_x st_xmax st_xmin st_y st_ymax st_ymin st_z stack standard_hash
    star_map starts_with startswith statement_digest statement_timestamp stats stats_date stats_mode std stddev
    stddev_pop stddev_samp stddevpop stddevsamp stdev stdevp stochasticlinearregression stochasticlogisticregression
    str str_position str_split str_split_regex str_to_date str_to_map str_to_time str_to_unix strcmp strftime
    strict_word_similarity string string_agg string_escape string_split string_split_regex string_to_array
    string_to_table strip strip_accents strip_null_value strlen strpos strptime strtok strtok_split_to_table
    strtok_to_array strtol struct struct_concat struct_contains struct_extract struct_extract_at struct_has
    struct_indexof struct_insert struct_keys struct_pack struct_position struct_update struct_values studentttest
    stuff subarray subdate subltree subpath substr substrb substring substring_grapheme substring_index
    substringindex substringutf8 subtime subtract subtractdays subtracthours subtractminutes subtractmonths
    subtractseconds subtractweeks subtractyears subtype suffix sum sum_no_overflow sumcount sumif sumkahan summap
    summerge sumstate sumwithoverflow suser_id suser_name suser_sname svals switch switchoffset sys_connect_by_path
    sys_context sys_extract_utc sys_guid sys_op_map_nonnull sys_typeid sysdate sysdatetime sysdatetimeoffset
    system$typeof system_user systimestamp sysutcdatetime tan tand tanh text text2ltree text_to_int_alt
    text_to_numeric_alt textlen theilsu time time_add time_bucket time_bucket_gapfill time_diff time_format
    time_from_parts time_slice time_str_to_date time_str_to_time time_str_to_unix time_sub time_to_sec time_to_str
    time_to_time_str time_to_unix time_trunc timeadd timediff timefromparts timeofday timestamp timestamp_add
    timestamp_diff timestamp_from_parts timestamp_ltz timestamp_ltz_from_parts timestamp_micros timestamp_millis
    timestamp_ntz timestamp_ntz_from_parts timestamp_seconds timestamp_sub timestamp_to_scn timestamp_trunc
    timestamp_tz_from_parts timestampadd timestampdiff timestampfromparts timestampltzfromparts
    timestampntzfromparts timestampsub timestamptz timestamptzfromparts timetz_byte_comparable timezone
    timezone_hour timezone_minute to_aggregate_state to_array to_ascii to_base to_base32 to_base64 to_base64url
    to_big_endian_64 to_binary to_binary_double to_binary_float to_blob to_boolean to_centuries to_char to_clob
    to_code_points to_csv to_date to_days to_decades to_decfloat to_decimal to_double to_dsinterval to_geography
    to_geometry to_hex to_hours to_iso8601 to_json to_json_string to_jsonb to_lob to_map to_microseconds
    to_millennia to_milliseconds to_minutes to_months to_nchar to_nclob to_number to_numeric to_object to_quarters
    to_regclass to_regnamespace to_regproc to_regtype to_seconds to_time to_timestamp to_timestamp_ltz
    to_timestamp_ntz to_timestamp_tz to_tsquery to_tsvector to_unix_timestamp to_unixtime to_utc_timestamp to_utf8
    to_varchar to_variant to_weeks to_xml to_years to_yminterval todate todatetime todatetime64 todatetimeoffset
    today todayofmonth todayofweek todayofyear todecimal128 todecimal32 todecimal64 tofixedstring tofloat32
    tofloat64 tohour toint128 toint16 toint256 toint32 toint64 toint8 tointervalday tointervalhour tointervalminute
    tointervalmonth tointervalsecond tointervalweek tointervalyear toipv4 toipv6 toisoweek toisoyear tojsonstring
    tominute tomonday tomonth tonullable topk topkweighted topleveldomain toquarter torelativedaynum
    torelativehournum tosecond tostartofday tostartoffifteenminutes tostartoffiveminute tostartoffiveminutes
    tostartofhour tostartofinterval tostartofmicrosecond tostartofmillisecond tostartofminute tostartofmonth
    tostartofquarter tostartofsecond tostartoftenminutes tostartofweek tostartofyear tostring tostringcutoffzero
    total total_changes totimezone totypename touint16 touint32 touint64 touint8 tounixtimestamp
    tounixtimestamp64milli touuid toweek toyear toyearweek toyyyymm toyyyymmdd toyyyymmddhhmmss
    transaction_timestamp transform transform_keys transform_values translate treat trigger_nestlevel trim
    trim_array trim_scale trimboth trimleft trimright trunc truncate try try_add try_avg try_base64_decode_binary
    try_base64_decode_string try_cast try_convert try_decrypt try_decrypt_raw try_divide try_element_at
    try_hex_decode_binary try_hex_decode_string try_multiply try_parse try_parse_json try_strptime try_subtract
    try_sum try_to_binary try_to_boolean try_to_date try_to_decfloat try_to_decimal try_to_double try_to_number
    try_to_numeric try_to_time try_to_timestamp try_to_timestamp_ltz try_to_timestamp_ntz try_to_timestamp_tz
    trybase64decode ts_delete ts_filter ts_headline ts_or_di_to_di ts_or_ds_add ts_or_ds_diff ts_or_ds_to_date
    ts_or_ds_to_date_str ts_or_ds_to_datetime ts_or_ds_to_time ts_or_ds_to_timestamp ts_rank ts_rank_cd
    tsquery_phrase tsrange tstzrange tsvector tsvector_to_array tuple tupleelement txid_current type_id type_name
    typeof tz_offset ucase uid unaccent unbase64 unbin uncompress unhex unicode uniform union_extract union_tag
    union_value uniq uniqcombined uniqcombined64 uniqexact uniqhll12 uniqmerge uniqstate uniqtheta uniqthetasketch
    uniqupto unistr unix_date unix_micros unix_millis unix_seconds unix_timestamp unix_to_str unix_to_time
    unix_to_time_str unixepoch unlikely unnest unpivot_list untuple upper upper_inc upper_inf upperutf8 uptime
    url_decode url_encode url_extract_fragment url_extract_host url_extract_parameter url_extract_path
    url_extract_port url_extract_protocol url_extract_query user user_id user_name userenv utc_date utc_time
    utc_timestamp utctimestamp uuid uuid_extract_timestamp uuid_extract_version uuid_generate_v1 uuid_generate_v1mc
    uuid_generate_v4 uuid_short uuid_string uuid_to_bin uuidv4 uuidv7 validate_conversion value values var var_map
    var_pop var_samp variance variance_pop variance_samp variant_array_length variant_bytes_to_variant
    variant_comparator variant_contains variant_exists variant_extract variant_extract_string variant_group_array
    variant_group_object variant_keys variant_normalize variant_to_parquet_variant variant_type variant_typeof varp
    varpop varsamp vector_cosine_similarity vector_dims vector_inner_product vector_l1_distance vector_l2_distance
    vector_norm vector_type version vertex_extract visitparamextractint visitparamextractstring vsize wavg
    websearch_to_tsquery week week_of_year week_start weekday weekiso weekofyear weeks_between weight_string
    weighted_avg welchttest width_bucket wilson_interval_lower wilson_interval_upper window window_time windowfunnel
    with_timezone wm_concat word_similarity word_stem xact_state xml_is_well_formed xmlagg xmlcomment xmlconcat
    xmlelement xmlexists xmlforest xmlget xmlpi xmlroot xmlserialize xmltable xor xpath xpath_exists xxhash32
    xxhash64 year year_of_week year_of_week_iso yearofweek yearofweekiso years_between yearweek yesterday yow
    zeroblob zeroifnull zeros zeros_mt zip zip_with zipf
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
