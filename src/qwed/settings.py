"""Every setting: one dataclass, environment prefix QWED_. A bad value stops the start; an unknown name only warns."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from qwed.words.home import from_home
from qwed.words.money import MAX_MICROS, MoneyError, micros_from

VERSION = "2"
"""Part of every policy hash: raise it when the meaning of a setting changes, or what a policy makes of an action."""


class SettingsError(ValueError):
    """A setting has a value we cannot use; the message names the variable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What an operator may choose; the defaults are what a first start uses."""

    host: str = "127.0.0.1"
    port: int = 8000
    data_dir: Path = Path("~/.qwed/data")
    signing_key_file: Path | None = None
    database_url: str = field(default="", repr=False)
    """A PostgreSQL that several processes share; none is the embedded store in the data directory."""
    redis_url: str = field(default="", repr=False)
    """Where several processes count rate limits together and tell each other of events; none is each in its memory."""
    workers: int = 1
    """Server processes; more than one needs a PostgreSQL."""
    log_level: str = "info"

    max_steps: int = 50
    step_lease_seconds: int = 30
    doom_loop_guard_required: bool = False
    require_tool_context: bool = True
    approval_ttl_seconds: int = 86_400
    attestation_ttl_seconds: int = 86_400
    idempotency_ttl_seconds: int = 86_400

    engine_price_usd: int = 10_000
    """What an action costs at least, in micro-dollars; set as decimal dollars."""
    engine_seconds: int = 10
    engine_workers: int = 0
    """0 chooses one worker per processor, two at least."""
    engine_memory_mb: int = 1024

    trust_min_days: int = 30
    trust_min_actions: int = 1_000
    trust_max_denial_rate: float = 0.01
    max_open_approvals: int = 1_000
    """How many PENDING actions one agent may have before people at once."""

    webhook_allow_private: bool = False
    witness: tuple[str, ...] = ()
    """Where heads of the log are published: `stdout`, `file:<path>`, `https://...`."""
    witness_seconds: int = 60

    rate_limit_per_key: int = 60_000
    """Requests a minute; 0 is no limit."""
    max_in_flight: int = 2_048
    max_in_flight_mb: int = 256
    """Bodies of all requests in flight together."""
    max_body_bytes: int = 1_048_576
    max_upload_bytes: int = 10_485_760
    """A file to be verified, before it is encoded; exempt from the limit above."""
    startup_hooks_allow: frozenset[str] = frozenset()

    llm_base_url: str = ""
    """An OpenAI-compatible provider that translates sentences; none by default."""
    llm_api_key: str = field(default="", repr=False)
    llm_model: str = ""

    a2a_strict: bool = False
    """Whether only registered and trusted agents may send messages to others."""
    a2a_messages_per_minute: int = 60
    """Of one sender to one receiver; 0 is no limit."""
    a2a_max_payload_bytes: int = 1_048_576
    a2a_block_on_error: bool = True

    otel_endpoint: str = ""
    """A collector that takes traces by OTLP over HTTP; none by default."""
    otel_headers: str = field(default="", repr=False)
    """What it is shown with every batch: `name=value`, separated by commas."""
    otel_sample: float = 1.0
    """The share of requests that is traced."""

    batch_ttl_seconds: int = 604_800
    content_retention_days: int = 0
    """How long what was asked and found is kept; 0 is for ever. Leaves and proofs always stay."""

    def __post_init__(self) -> None:
        # Here and not where text is read: what a program passes in is held to the same bounds.
        for each in fields(self):
            if each.type is int:
                _require_bounds(each.name, getattr(self, each.name))
        for name in ("database_url", "redis_url", "llm_base_url", "otel_endpoint", "otel_headers"):
            _read(name, str, getattr(self, name))

    @property
    def directory(self) -> Path:
        """The data directory as the system names it."""
        return from_home(self.data_dir)


MOST = 10**9
"""Thirty years of seconds, three million of days: past this, sums of time no longer fit what they are kept in."""
_LEAST = {"a2a_max_payload_bytes": 1_024, "workers": 1}
_MOST = {"engine_price_usd": MAX_MICROS, "a2a_max_payload_bytes": 10_485_760, "workers": 1_024}


def _require_bounds(name: str, value: Any) -> None:
    least, most = _LEAST.get(name, 0), _MOST.get(name, MOST)
    if type(value) is not int or not least <= value <= most:
        found = f"{variable_of(name)}: `{str(value)[:64]}` cannot be used"
        raise SettingsError(f"{found}: must be a whole number from {least} to {most}")


def _path(text: str) -> Path:
    if not text:
        # To the system that is the directory we happen to be in; to us it is a variable that was not set.
        raise ValueError("no path is named: leave it out, or name one")
    return Path(text)


def _truth(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    try:
        return words[text.strip().lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def _hashes(text: str) -> frozenset[str]:
    return frozenset(part.strip().lower() for part in text.split(",") if part.strip())


def _price(text: str) -> int:
    try:
        return micros_from(text)
    except MoneyError as error:
        raise ValueError(str(error)) from None


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError("must be from 0 to 1")
    return number


def _port(text: str) -> int:
    number = int(text)
    if number > 65_535:
        raise ValueError("must be 65535 at most")
    return number


def _some(text: str) -> int:
    number = int(text)
    if number == 0:
        raise ValueError("must be at least 1, or nothing would be answered")
    return number


def _witnesses(text: str) -> tuple[str, ...]:
    places = tuple(part.strip() for part in text.split(",") if part.strip())
    for place in places:
        if not _WITNESS.fullmatch(place):
            raise ValueError(f"`{place}` is none of `stdout`, `file:<path>` and `https://...`, separated by commas")
    return places


def _pause(text: str) -> int:
    number = int(text)
    if number == 0:
        raise ValueError("must be at least 1")
    return number


def _workers(text: str) -> int:
    number = int(text)
    if number == 1:
        raise ValueError("must be 0 or at least 2, because one worker is kept for agents")
    return number


def _address(text: str) -> str:
    parts = _split(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query):
        raise ValueError("must be an http or https address without credentials, such as https://host/v1")
    return text


def header_pairs(text: str) -> list[tuple[str, str]]:
    """Headers as OpenTelemetry writes them: `name=value`, separated by commas, the values percent-encoded."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return [(name.strip(), unquote(value.strip())) for name, _, value in pairs]


def _otel_headers(text: str) -> str:
    for name, value in header_pairs(text):
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError("must be `name=value` pairs, separated by commas, the values percent-encoded")
    return text


def _split(text: str) -> SplitResult:
    """The parts of an address. What Python says of one it cannot read would repeat a password in it."""
    try:
        parts = urlsplit(text)
        no_port = parts.port == 0
    except ValueError:
        no_port = True
    if no_port:
        raise ValueError("is no address")
    return parts


def _database(text: str) -> str:
    # Of several hosts each may have a port of its own.
    parts = _split(_PORT_AMONG_OTHERS.sub("", text))
    if text and (parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/")):
        raise ValueError("must name a database, such as postgresql://user@host/qwed")
    return text


def _redis(text: str) -> str:
    parts = _split(text)
    place = f"{parts.scheme}://{'host' if parts.hostname else ''}{parts.path}"
    if text and not _REDIS.fullmatch(place):
        raise ValueError("must be an address such as redis://host:6379/0, rediss://host or unix:///path")
    options = [name for name, _value in parse_qsl(parts.query, keep_blank_values=True)]
    if not set(options) <= set(_REDIS_OPTIONS) or len(options) != len(set(options)):
        raise ValueError(f"has an option twice, or one that is none of {', '.join(_REDIS_OPTIONS)}")
    return text


def _level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
    return text.lower()


_REDIS = re.compile(r"rediss?://host(?:/(?:[0-9]{1,5})?)?|unix:///.+")
_REDIS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Whom to believe, and who we are. That a certificate need not be valid is none of them."""
_WITNESS = re.compile(r"stdout|file:.+|https?://.+", re.DOTALL)
_PORT_AMONG_OTHERS = re.compile(r":[0-9]+(?=,)")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[\t -~]{1,8192}")
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

_READERS: dict[str, Callable[[str], Any]] = {
    "port": _port,
    "log_level": _level,
    "engine_price_usd": _price,
    "engine_workers": _workers,
    "startup_hooks_allow": _hashes,
    "witness": _witnesses,
    "witness_seconds": _pause,
    "trust_max_denial_rate": _share,
    "max_in_flight": _some,
    "max_in_flight_mb": _some,
    "llm_base_url": _address,
    "database_url": _database,
    "redis_url": _redis,
    "otel_endpoint": _address,
    "otel_headers": _otel_headers,
    "otel_sample": _share,
}
_SECRET = frozenset({"database_url", "redis_url", "llm_api_key", "otel_headers"})
"""Whose value no message repeats, because a password may stand in it; each may be named by a file that holds it."""
_MOST_SECRET = 65_536
_READERS_BY_TYPE: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: int,
    bool: _truth,
    Path: _path,
    Path | None: _path,
}
_ALIASES = {"DOOM_LOOP_GUARD_REQUIRED": "doom_loop_guard_required"}


def variable_of(name: str) -> str:
    """The environment variable that sets the field of that name."""
    return f"QWED_{name.upper()}"


def file_variable_of(name: str) -> str:
    """The environment variable that names a file with the value of that secret field."""
    return f"{variable_of(name)}_FILE"


def settings_from(environment: Mapping[str, str] = os.environ, **given: Any) -> Settings:
    """Settings from the environment; what is `given` (and not None) wins over it."""
    found = {each.name: _found(each, environment) for each in fields(Settings)}
    return Settings(**found | {name: value for name, value in given.items() if value is not None})


def data_dir_from(environment: Mapping[str, str] = os.environ) -> Path:
    """The data directory that the environment names, whatever else it sets."""
    return next(Path(_found(each, environment)) for each in fields(Settings) if each.name == "data_dir")


def database_url_from(environment: Mapping[str, str] = os.environ) -> str:
    """The database in PostgreSQL that the environment names, whatever else it sets; empty where it names none."""
    return next(str(_found(each, environment)) for each in fields(Settings) if each.name == "database_url")


def _found(each: Field[Any], environment: Mapping[str, str]) -> Any:
    """What the environment sets, else the default."""
    text = _text_of(each.name, environment)
    return each.default if text is None else _read(each.name, each.type, text)


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The QWED_ variables that set nothing, so that a slip of the pen is seen."""
    known = {variable_of(each.name) for each in fields(Settings)} | CLIENT_VARIABLES | MCP_VARIABLES
    known |= {file_variable_of(name) for name in _SECRET}
    return sorted(name for name in environment if name.startswith("QWED_") and name not in known)


CLIENT_VARIABLES = frozenset({"QWED_API_KEY", "QWED_BASE_URL", "QWED_AGENT_ID", "QWED_AGENT_TOKEN"})
MCP_VARIABLES = frozenset(
    {"QWED_MCP_TRUSTED_CODE_EXECUTION", "QWED_MCP_BACKGROUND_TIMEOUT", "QWED_MCP_SANDBOX", "QWED_SKILL_MANIFEST"}
)
"""Read by the client and by the MCP server, and none of ours: set for them, they are no slip of the pen."""


def _text_of(name: str, environment: Mapping[str, str]) -> str | None:
    names = [variable_of(name), *(alias for alias, meant in _ALIASES.items() if meant == name)]
    found = next((environment[each] for each in names if each in environment), None)
    file = environment.get(file_variable_of(name)) if name in _SECRET else None
    if file is None:
        return found
    if found is not None:
        raise SettingsError(f"{variable_of(name)} and {file_variable_of(name)} are both set: leave one of them out")
    return _text_in(file, file_variable_of(name))


def _text_in(file: str, variable: str) -> str:
    """What a file holds without the end of its line; SettingsError where it cannot be read, or is no short text."""
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(_MOST_SECRET + 1).decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise SettingsError(f"{variable}: `{file}` cannot be read: {reason}") from None
    if len(text) > _MOST_SECRET:
        raise SettingsError(f"{variable}: `{file}` cannot be used: it is longer than {_MOST_SECRET} characters")
    return text.strip()


def _read(name: str, kind: Any, text: str) -> Any:
    reader = _READERS.get(name) or _READERS_BY_TYPE[kind]
    try:
        return reader(text)
    except ValueError as error:
        shown = "what it names" if name in _SECRET else f"`{text}`"
        raise SettingsError(f"{variable_of(name)}: {shown} cannot be used: {error}") from None
