"""Query languages that no engine judges: a query in one is a read if it is proven to be, and else UNRESOLVED.

Each language has a form by which a text is recognised, and the words that its reads consist of.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from qwed.kernel.analysis.query_mutations import is_graph_pattern

_LONGEST = 20_000
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"' + r"|'(?:[^'\\]|\\.)*+'|`[^`]*+`")
_CALL = re.compile(r"(\w{1,64})\s*\(")
_WORD = re.compile(r"[A-Za-z_]\w{0,63}")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GREMLIN_STEPS = _words(
    """V E has hasLabel hasId hasKey hasValue hasNot is not and or where filter out in both outE inE bothE outV inV
    bothV otherV values valueMap elementMap properties propertyMap id label key value count sum max min mean fold unfold
    limit range skip tail dedup order by as select project path simplePath cyclicPath group groupCount repeat until emit
    times choose option coalesce optional union local sample coin toList next iterate hasNext toSet explain profile with
    within without eq neq lt lte gt gte inside outside between startingWith endingWith containing regex desc asc
    identity constant math match barrier index loops tree cap store aggregate"""
)
_MONGO_METHODS = _words(
    """find findOne count countDocuments estimatedDocumentCount distinct aggregate explain limit skip sort toArray
    pretty getIndexes stats dataSize storageSize totalSize isCapped getCollectionNames getCollectionInfos
    getName getCollection project hint batchSize maxTimeMS collation size hasNext next ObjectId ISODate NumberLong
    NumberInt NumberDecimal Date UUID Timestamp RegExp listCollections serverStatus hostInfo version hello help
    itcount objsLeftInBatch comment readPref"""
)
_MONGO_CHANGES = re.compile(r"\$(?:out|merge|where|function|accumulator)\b")
_MONGO_PROGRAM = re.compile(r";\s*\S|=>|\bfunction\b")
_SPARQL_CHANGES = _words("insert delete load clear drop create copy move add")
_REDIS_READS = _words(
    """get mget strlen getrange exists ttl pttl type keys scan dbsize info ping echo time randomkey hget hmget hgetall
    hkeys hvals hlen hexists hscan lrange llen lindex lpos smembers sismember smismember scard sscan srandmember sinter
    sunion sdiff zrange zrangebyscore zrevrange zrank zrevrank zscore zmscore zcard zcount zscan xrange xrevrange xlen
    xread xinfo geopos geodist geosearch bitcount bitpos getbit pfcount object memory_usage json.get json.mget json.type
    json.arrlen json.objkeys json.strlen ft.search ft.info ft.aggregate ft._list ts.get ts.range ts.mget ts.mrange
    lolwut command hstrlen expiretime dump"""
)
_FLUX_CHANGES = re.compile(
    r"\bto\s*\(|\b(?:http|sql|mqtt|kafka|secrets|slack|pagerduty|sendgrid)\s*\.\s*\w", re.IGNORECASE
)
_SPL_CHANGES = re.compile(
    r"\|\s*(?:delete|outputlookup|outputcsv|outputtext|collect|meventcollect|mcollect|tscollect|sendemail|sendalert"
    r"|script|run|runshellscript|map|rest|dbxquery|dump|crawl|savedsearch)\b",
    re.IGNORECASE,
)


_LOG_STAGES = _words(
    """fields filter stats sort limit parse display dedup pattern unnest diff anomaly filterindex source
    where project summarize extend order take top count distinct join union render mv-expand make-series"""
)
_STAGE = re.compile(r"(?:\A|\|)\s*([\w-]+)")


def _reads_gremlin(text: str) -> bool:
    plain = _STRINGS.sub('""', text)
    called = frozenset(_CALL.findall(plain))
    # A closure, a second statement or an assignment is Groovy, which can do anything.
    return bool(called) and called <= _GREMLIN_STEPS and not re.search(r"[{};=]", plain)


def _reads_mongo(text: str) -> bool:
    plain = _STRINGS.sub('""', text)
    called = frozenset(_CALL.findall(plain))
    return called <= _MONGO_METHODS and not _MONGO_CHANGES.search(text) and not _MONGO_PROGRAM.search(plain)


def _reads_sparql(text: str) -> bool:
    # A reference may have a `#` or a `//` in it, so references come before comments.
    plain = re.sub(r"#[^\n\r]*", " ", re.sub(r"<[^<>\s]*>", "<>", _STRINGS.sub('""', text)))
    # `ex:load` is a name, not a verb.
    words = {word.lower() for word in _WORD.findall(re.sub(r"(?<![\w-])[\w-]{0,64}+:[\w.-]++|[?$]\w++", " ", plain))}
    return not words & _SPARQL_CHANGES and "service" not in words


def _reads_redis(text: str) -> bool:
    lines = [line.split() for line in text.splitlines() if line.strip()]
    return bool(lines) and all(line[0].lower() in _REDIS_READS for line in lines)


def _begins_with(*words: str) -> Callable[[str], bool]:
    pattern = re.compile(rf"\s*(?:{'|'.join(words)})\b(?![^;]*;\s*\S)", re.IGNORECASE)
    return lambda text: pattern.match(text) is not None and not re.search(r"\binto\b", text, re.IGNORECASE)


def _has_none_of(*words: str) -> Callable[[str], bool]:
    pattern = re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE)
    return lambda text: pattern.search(_STRINGS.sub('""', text)) is None


class _Language(NamedTuple):
    names: frozenset[str]
    """Words of a tool or a parameter that name it."""
    form: re.Pattern[str] | None
    """Form of a text that is in this language, whatever its name."""
    reads: Callable[[str], bool]


_CYPHER_CHANGES = re.compile(
    r"\b(?:delete|remove|set|create|merge|drop|foreach|load|call|alter|grant)\b", re.IGNORECASE
)


def _reads_cypher(text: str) -> bool:
    """Return True for a read, and for a pattern, which is judged by its clauses."""
    return is_graph_pattern(text) or _CYPHER_CHANGES.search(_STRINGS.sub('""', text)) is None


_BEGINNING = r"(?:\A|(?<=[;\n}|(/])) ?"
"""Where a clause of a condensed text may begin: comments, hints and other statements may stand before it."""


def _condensed(text: str) -> str:
    """Return the text with one blank or one line end in place of several, so that a form need not look for them."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEGINNING}(?:{pattern})", re.IGNORECASE)


_LANGUAGES = (
    _Language(
        _words("gremlin tinkerpop janusgraph"),
        _form(r"(?:graph\.traversal\(\)|g)\s*\.\s*(?:V|E|addV|addE|inject|tx|io|call|with\w*|merge[VE])\s*\("),
        _reads_gremlin,
    ),
    _Language(
        _words("cypher neo4j memgraph falkordb kuzu"),
        _form(
            r"call\s*(?:\([^)]{0,200}\)\s*)?\{|create\s+(?:\w+\s+)?(?:constraint|index)\b[^;]{0,200}\b(?:for|on)\s*[(:]"
        ),
        _reads_cypher,
    ),
    _Language(
        _words("mongosh mongoshell"),
        _form(r"(?:db|rs|sh)\s*[.\[]\s*['\"\w$-]+[\]'\"]*\s*[.(]|(?:let|var|const)\s+\w+\s*=\s*db\b"),
        _reads_mongo,
    ),
    _Language(
        _words("sparql rdf wikidata"),
        _form(
            r"(?:(?:prefix\s+\w*:|base)\s*<[^>]*>\s*){1,50}\w|(?:select|construct|describe|ask)\b[^;{}]{0,400}(?:where\s*)?\{\s*"
            r"|(?:insert|delete)\s+(?:data|where)\s*\{|(?:insert|delete)\s*\{\s*(?:[?$<_}]|\w*:)|with\s+<[^>]*>\s*(?:insert|delete)"
            r"|(?:clear|drop|load|create|copy|move|add)\s+(?:silent\s+)?(?:graph|default|named|all|<)"
        ),
        _reads_sparql,
    ),
    _Language(
        _words("influx influxdb influxql"),
        _form(r"drop\s+(?:measurement|series|shard|subscription|retention\s+policy|continuous\s+query)\b"),
        _begins_with("select", "show", "explain"),
    ),
    _Language(_words("flux"), None, lambda text: _FLUX_CHANGES.search(text) is None),
    _Language(
        _words("redis valkey keydb"),
        _form(
            r"(?:flush(?:all|db)\s*(?:a?sync\s*)?(?:\Z|\n|;)|config\s+set\s+(?:[a-z]+-[\w-]+|dir|dbfilename|requirepass|masterauth"
            r"|maxmemory|save|logfile|bind|port|timeout|loglevel|appendonly|appendfsync)\s|debug\s+(?:sleep|segfault|object|reload)"
            r"|script\s+(?:load|flush)|(?:slave|replica)of\s+\S+\s+\S+\s*(?:\Z|\n)|eval\s+[\"'])"
        ),
        _reads_redis,
    ),
    _Language(
        _words("kql kusto adx"),
        _form(r"\.(?:drop|delete|purge|alter|set|append|create|execute|clear)\b"),
        lambda text: re.search(rf"{_BEGINNING}\.(?!\d)", _condensed(text)) is None,
    ),
    _Language(
        _words("spl splunk"),
        _form(
            r"(?:search\s+)?(?:index|source|sourcetype)\s*=|[^|\n]{0,400}\|\s*(?:delete\s*\Z|(?:outputlookup|sendemail|collect)\b)"
        ),
        lambda text: _SPL_CHANGES.search(text) is None,
    ),
    _Language(
        _words("aql arangodb arango"),
        _form(
            r"for\s+\w+\s+in\s+\w+\b[^;]{0,400}\b(?:insert|update|replace|remove|upsert)\b[^;]{0,400}\b(?:in|into|with)\s|let\s+\w+\s*=[^;]{0,400}\bfor\s"
            r"|remove\s+(?:['\"{]\S*|\w+\.\S+)\s+in\s+\w+|(?:insert|upsert|replace)\s*\{\s*['\"\w]+\s*:"
        ),
        _has_none_of("insert", "update", "replace", "remove", "upsert"),
    ),
    _Language(
        _words("surreal surrealdb surrealql"),
        _form(
            r"remove\s+(?:table|database|namespace|index|field|user)\b|relate\s+\S+->"
            r"|(?:delete|update|upsert|create)\s+\w+:[\w\u27e8]\S*\s*(?:\Z|;|(?:set|content|merge|patch|replace|unset|return|where)\b)"
            r"|delete\s+\w+\s*[);]|let\s+\$\w+\s*="
        ),
        _begins_with("select", "info", "return", "show"),
    ),
    _Language(
        _words("xquery xpath"),
        _form(r"(?:xdmp|file|proc|admin|sec):[\w-]+\s*\("),
        _has_none_of("insert", "delete", "replace", "rename", "xdmp", "proc", "file"),
    ),
    _Language(_words("datalog datomic"), None, _has_none_of("transact", "retract", "retractEntity", "excise")),
    _Language(
        _words("cloudwatch insights"),
        None,
        lambda text: _LOG_STAGES.issuperset(stage.lower() for stage in _STAGE.findall(_STRINGS.sub('""', text))),
    ),
    _Language(
        _words(
            "dax mdx jql promql logql traceql lucene sosl prometheus prom thanos mimir victoriametrics loki"
            " tempo nrql honeycomb"
        ),
        None,
        _has_none_of("create", "alter", "drop", "delete", "insert", "update", "refresh", "process"),
    ),
)


def is_unproven_query(text: str, names: frozenset[str]) -> bool:
    """Return True if the text is a query of such a language and is not proven to be a read.

    `names` are the words of the tool and the parameter, which may name the language.
    """
    condensed = _condensed(text)
    concerned = (language for language in _LANGUAGES if _concerns(language, condensed, names))
    return any(len(text) > _LONGEST or not language.reads(text) for language in concerned)


def _concerns(language: _Language, condensed: str, names: frozenset[str]) -> bool:
    """Return True if the text is in this language, by a name or by its form."""
    return not language.names.isdisjoint(names) or (language.form is not None and bool(language.form.search(condensed)))


def names_language(names: frozenset[str]) -> bool:
    """Return True if one of these words names such a language."""
    return any(not language.names.isdisjoint(names) for language in _LANGUAGES)
