"""Settings of the server: one dataclass, environment prefix QWED_. A bad value stops the start; an unknown name is a
warning."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from qwed.model.defaults import expand_home
from qwed.model.money import MAX_MICROS, MoneyError, micros_from
from qwed.model.tolerances import parse_tolerances

VERSION = "2"
"""Part of every policy hash: raise it when the meaning of a setting or the effect of a policy changes."""


class SettingsError(ValueError):
    """A setting has an unusable value; the message names the variable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Settings that an operator can choose, with their defaults."""

    host: str = "127.0.0.1"
    port: int = 8000
    data_dir: Path = Path("~/.qwed/data")
    signing_key_file: Path | None = None
    database_url: str = field(default="", repr=False)
    """PostgreSQL database shared by several processes; empty for the embedded store in the data directory."""
    redis_url: str = field(default="", repr=False)
    """Redis that shares rate limits and event notifications among processes; empty for each process on its own."""
    workers: int = 1
    """Server processes; more than one needs PostgreSQL."""
    log_level: str = "info"

    max_steps: int = 50
    step_lease_seconds: int = 30
    doom_loop_guard_required: bool = False
    require_tool_context: bool = True
    approval_ttl_seconds: int = 86_400
    attestation_ttl_seconds: int = 86_400
    idempotency_ttl_seconds: int = 86_400

    engine_price_usd: int = 10_000
    """Minimum cost of an action in micro-dollars; set as decimal dollars."""
    engine_seconds: int = 10
    engine_workers: int = 0
    """0 chooses one worker per processor, at least two."""
    engine_memory_mb: int = 1024

    trust_min_days: int = 30
    trust_min_actions: int = 1_000
    trust_max_denial_rate: float = 0.01
    max_open_approvals: int = 1_000
    """Maximum number of PENDING actions of one agent."""

    webhook_allow_private: bool = False
    witness: tuple[str, ...] = ()
    """Targets for publishing log heads: `stdout`, `file:<path>`, `https://...`."""
    witness_seconds: int = 60

    rate_limit_per_key: int = 60_000
    """Requests per minute; 0 is no limit."""
    max_in_flight: int = 2_048
    max_in_flight_mb: int = 256
    """Total size of the bodies of all requests in flight."""
    max_body_bytes: int = 1_048_576
    max_upload_bytes: int = 10_485_760
    """Maximum size of a file to verify, before it is encoded; not subject to `max_body_bytes`."""
    startup_hooks_allow: frozenset[str] = frozenset()
    tolerances: tuple[str, ...] = ()
    """How far a request without an agent may loosen the judgement of its claim, such as `tolerance_days=2`."""

    llm_base_url: str = ""
    """OpenAI-compatible provider that translates sentences; none by default."""
    llm_api_key: str = field(default="", repr=False)
    llm_model: str = ""

    a2a_strict: bool = False
    """Only registered and trusted agents may send messages."""
    a2a_messages_per_minute: int = 60
    """Messages from one sender to one receiver per minute; 0 is no limit."""
    a2a_max_payload_bytes: int = 1_048_576
    a2a_block_on_error: bool = True

    otel_endpoint: str = ""
    """Collector that receives traces by OTLP over HTTP; none by default."""
    otel_headers: str = field(default="", repr=False)
    """Headers sent with every batch of traces: `name=value`, separated by commas."""
    otel_sample: float = 1.0
    """Share of requests that are traced."""

    batch_ttl_seconds: int = 604_800
    content_retention_days: int = 0
    """Days for which request content is kept; 0 is for ever. Leaves and proofs always stay."""

    def __post_init__(self) -> None:
        # Checked here and not where text is parsed: values passed by a program have the same bounds.
        for setting in fields(self):
            if setting.type is int:
                _require_bounds(setting.name, getattr(self, setting.name))
        for name in ("database_url", "redis_url", "llm_base_url", "otel_endpoint", "otel_headers"):
            _read(name, str, getattr(self, name))

    @property
    def directory(self) -> Path:
        """The data directory with `~` expanded."""
        return expand_home(self.data_dir)


MAX_NUMBER = 10**9
"""Thirty years of seconds, three million of days: beyond this, sums of times overflow their column."""
_MINIMUM = {"a2a_max_payload_bytes": 1_024, "workers": 1}
_MAXIMUM = {"engine_price_usd": MAX_MICROS, "a2a_max_payload_bytes": 10_485_760, "workers": 1_024}


def _require_bounds(name: str, value: Any) -> None:
    minimum, maximum = _MINIMUM.get(name, 0), _MAXIMUM.get(name, MAX_NUMBER)
    if type(value) is not int or not minimum <= value <= maximum:
        prefix = f"{variable_of(name)}: `{str(value)[:64]}` cannot be used"
        raise SettingsError(f"{prefix}: must be a whole number from {minimum} to {maximum}")


def _path(text: str) -> Path:
    if not text:
        # An empty path would mean the current directory; the variable was most likely left empty by mistake.
        raise ValueError("the path is empty: unset the variable or name a path")
    return Path(text)


def _boolean(text: str) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    try:
        return words[text.strip().lower()]
    except KeyError:
        raise ValueError("must be true or false") from None


def _hashes(text: str) -> frozenset[str]:
    return frozenset(part.strip().lower() for part in text.split(",") if part.strip())


def _tolerances(text: str) -> tuple[str, ...]:
    entries = tuple(part.strip() for part in text.split(",") if part.strip())
    parse_tolerances(entries)
    return entries


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


def _positive_limit(text: str) -> int:
    number = int(text)
    if number == 0:
        raise ValueError("must be at least 1, otherwise every request is refused")
    return number


def _witnesses(text: str) -> tuple[str, ...]:
    targets = tuple(part.strip() for part in text.split(",") if part.strip())
    for target in targets:
        if not _WITNESS.fullmatch(target):
            raise ValueError(f"`{target}` is not one of `stdout`, `file:<path>` and `https://...`, separated by commas")
    return targets


def _positive(text: str) -> int:
    number = int(text)
    if number == 0:
        raise ValueError("must be at least 1")
    return number


def _workers(text: str) -> int:
    number = int(text)
    if number == 1:
        raise ValueError("must be 0 or at least 2, because one worker is reserved for agents")
    return number


def _address(text: str) -> str:
    parts = _split(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query):
        raise ValueError("must be an http or https address without credentials, such as https://host/v1")
    return text


def header_pairs(text: str) -> list[tuple[str, str]]:
    """Parse headers in the form of OpenTelemetry: `name=value`, separated by commas, the values percent-encoded."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    return [(name.strip(), unquote(value.strip())) for name, _, value in pairs]


def _otel_headers(text: str) -> str:
    for name, value in header_pairs(text):
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError("must be `name=value` pairs, separated by commas, the values percent-encoded")
    return text


def _split(text: str) -> SplitResult:
    """Split an address. The error of `urlsplit` is replaced because it would repeat a password."""
    try:
        parts = urlsplit(text)
        no_port = parts.port == 0
    except ValueError:
        no_port = True
    if no_port:
        raise ValueError("is not a valid address")
    return parts


def _database(text: str) -> str:
    # With several hosts, each may have its own port.
    parts = _split(_INNER_PORT.sub("", text))
    is_postgres = parts.scheme in ("postgresql", "postgres")
    if parts.scheme and "://" in text and not is_postgres:
        raise ValueError(
            f"`{parts.scheme}` addresses are not supported: use PostgreSQL, such as postgresql://user@host/qwed, "
            "or leave it unset for SQLite in the data directory"
        )
    if text and not (is_postgres and parts.path.strip("/")):
        raise ValueError("must name a database, such as postgresql://user@host/qwed")
    return text


def _redis(text: str) -> str:
    parts = _split(text)
    form = f"{parts.scheme}://{'host' if parts.hostname else ''}{parts.path}"
    if text and not _REDIS.fullmatch(form):
        raise ValueError("must be an address such as redis://host:6379/0, rediss://host or unix:///path")
    options = [name for name, _value in parse_qsl(parts.query, keep_blank_values=True)]
    if not set(options) <= set(_REDIS_OPTIONS) or len(options) != len(set(options)):
        raise ValueError(f"has a repeated or unknown option: the known ones are {', '.join(_REDIS_OPTIONS)}")
    return text


def _level(text: str) -> str:
    if text.lower() not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
    return text.lower()


_REDIS = re.compile(r"rediss?://host(?:/(?:[0-9]{1,5})?)?|unix:///.+")
_REDIS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
"""Certificate authority and client certificate. Certificate validation cannot be switched off."""
_WITNESS = re.compile(r"stdout|file:.+|https?://.+", re.DOTALL)
_INNER_PORT = re.compile(r":[0-9]+(?=,)")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_HEADER_VALUE = re.compile(r"[\t -~]{1,8192}")
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")

_READERS: dict[str, Callable[[str], Any]] = {
    "port": _port,
    "log_level": _level,
    "engine_price_usd": _price,
    "engine_workers": _workers,
    "startup_hooks_allow": _hashes,
    "tolerances": _tolerances,
    "witness": _witnesses,
    "witness_seconds": _positive,
    "trust_max_denial_rate": _share,
    "max_in_flight": _positive_limit,
    "max_in_flight_mb": _positive_limit,
    "llm_base_url": _address,
    "database_url": _database,
    "redis_url": _redis,
    "otel_endpoint": _address,
    "otel_headers": _otel_headers,
    "otel_sample": _share,
}
_SECRET = frozenset({"database_url", "redis_url", "llm_api_key", "otel_headers"})
"""Settings whose value no message repeats, because it may contain a password; each may also be read from a file."""
_MAX_SECRET_LENGTH = 65_536
_READERS_BY_TYPE: dict[Any, Callable[[str], Any]] = {
    str: str,
    int: int,
    bool: _boolean,
    Path: _path,
    Path | None: _path,
}
_ALIASES = {"DOOM_LOOP_GUARD_REQUIRED": "doom_loop_guard_required"}


def variable_of(name: str) -> str:
    """Return the environment variable that sets this field."""
    return f"QWED_{name.upper()}"


def file_variable_of(name: str) -> str:
    """Return the environment variable that names a file with the value of this secret field."""
    return f"{variable_of(name)}_FILE"


def settings_from(environment: Mapping[str, str] = os.environ, **overrides: Any) -> Settings:
    """Read the settings from the environment; `overrides` that are not None win."""
    values = {setting.name: _value_of(setting, environment) for setting in fields(Settings)}
    return Settings(**values | {name: value for name, value in overrides.items() if value is not None})


def data_dir_from(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the data directory named by the environment, ignoring all other settings."""
    return next(Path(_value_of(setting, environment)) for setting in fields(Settings) if setting.name == "data_dir")


def database_url_from(environment: Mapping[str, str] = os.environ) -> str:
    """Return the PostgreSQL address named by the environment, ignoring all other settings; empty if there is none."""
    return next(str(_value_of(setting, environment)) for setting in fields(Settings) if setting.name == "database_url")


def _value_of(setting: Field[Any], environment: Mapping[str, str]) -> Any:
    """Return the value set by the environment, or the default."""
    text = _text_of(setting.name, environment)
    return setting.default if text is None else _read(setting.name, setting.type, text)


def unknown_variables(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the QWED_ variables that set nothing, so that a typing error is reported."""
    variables = {variable_of(setting.name) for setting in fields(Settings)} | CLIENT_VARIABLES | MCP_VARIABLES
    variables |= {file_variable_of(name) for name in _SECRET}
    return sorted(name for name in environment if name.startswith("QWED_") and name not in variables)


CLIENT_VARIABLES = frozenset({"QWED_API_KEY", "QWED_BASE_URL", "QWED_AGENT_ID", "QWED_AGENT_TOKEN"})
MCP_VARIABLES = frozenset(
    {"QWED_MCP_TRUSTED_CODE_EXECUTION", "QWED_MCP_BACKGROUND_TIMEOUT", "QWED_MCP_SANDBOX", "QWED_SKILL_MANIFEST"}
)
"""Variables of the client and of the MCP server: not settings of this server, and not typing errors."""


def _text_of(name: str, environment: Mapping[str, str]) -> str | None:
    names = [variable_of(name), *(alias for alias, target in _ALIASES.items() if target == name)]
    text = next((environment[variable] for variable in names if variable in environment), None)
    file = environment.get(file_variable_of(name)) if name in _SECRET else None
    if file is None:
        return text
    if text is not None:
        raise SettingsError(f"{variable_of(name)} and {file_variable_of(name)} are both set: unset one of them")
    return _read_file(file, file_variable_of(name))


def _read_file(file: str, variable: str) -> str:
    """Return the text of a file without the trailing newline; raise SettingsError if it is unreadable or too long."""
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(_MAX_SECRET_LENGTH + 1).decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a text file"
        raise SettingsError(f"{variable}: `{file}` cannot be read: {reason}") from None
    if len(text) > _MAX_SECRET_LENGTH:
        raise SettingsError(f"{variable}: `{file}` cannot be used: it is longer than {_MAX_SECRET_LENGTH} characters")
    return text.strip()


def _read(name: str, kind: Any, text: str) -> Any:
    reader = _READERS.get(name) or _READERS_BY_TYPE[kind]
    try:
        return reader(text)
    except ValueError as error:
        quoted = "what it names" if name in _SECRET else f"`{text}`"
        raise SettingsError(f"{variable_of(name)}: {quoted} cannot be used: {error}") from None
