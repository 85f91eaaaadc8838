"""Settings from environment variables: a bad value is named, an unknown name is only a warning (ruling 4.21)."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from qwed.settings import Settings, SettingsError, settings_from, unknown_variables, variable_of

GOOD: dict[str, tuple[str, Any]] = {
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("9000", 9000),
    "data_dir": ("/srv/qwed", Path("/srv/qwed")),
    "signing_key_file": ("/srv/key", Path("/srv/key")),
    "database_url": ("postgresql://qwed@db.example/qwed", "postgresql://qwed@db.example/qwed"),
    "workers": ("4", 4),
    "redis_url": ("redis://cache.example:6379/0", "redis://cache.example:6379/0"),
    "log_level": ("debug", "debug"),
    "max_steps": ("7", 7),
    "step_lease_seconds": ("45", 45),
    "doom_loop_guard_required": ("true", True),
    "require_tool_context": ("off", False),
    "approval_ttl_seconds": ("60", 60),
    "attestation_ttl_seconds": ("61", 61),
    "idempotency_ttl_seconds": ("62", 62),
    "engine_price_usd": ("0.025", 25_000),
    "engine_seconds": ("3", 3),
    "engine_workers": ("4", 4),
    "engine_memory_mb": ("512", 512),
    "trust_min_days": ("7", 7),
    "trust_min_actions": ("10", 10),
    "trust_max_denial_rate": ("0.05", 0.05),
    "max_open_approvals": ("3", 3),
    "webhook_allow_private": ("yes", True),
    "witness": (
        " stdout, file:/srv/heads,,https://example.com/heads",
        ("stdout", "file:/srv/heads", "https://example.com/heads"),
    ),
    "witness_seconds": ("5", 5),
    "rate_limit_per_key": ("0", 0),
    "max_in_flight": ("64", 64),
    "max_in_flight_mb": ("8", 8),
    "max_body_bytes": ("2048", 2048),
    "max_upload_bytes": ("4096", 4096),
    "llm_base_url": ("https://models.example/v1", "https://models.example/v1"),
    "llm_api_key": ("sk-something", "sk-something"),
    "llm_model": ("small", "small"),
    "a2a_strict": ("on", True),
    "a2a_messages_per_minute": ("0", 0),
    "a2a_max_payload_bytes": ("1024", 1024),
    "a2a_block_on_error": ("false", False),
    "otel_endpoint": ("http://collector.example:4318", "http://collector.example:4318"),
    "otel_headers": ("authorization=Bearer%20x, x-scope=a", "authorization=Bearer%20x, x-scope=a"),
    "otel_sample": ("0.25", 0.25),
    "batch_ttl_seconds": ("63", 63),
    "content_retention_days": ("90", 90),
    "startup_hooks_allow": (" AB , cd,,", frozenset({"ab", "cd"})),
    "tolerances": ("tolerance=0.5, strict_mode=false,", ("tolerance=0.5", "strict_mode=false")),
}

BAD: dict[str, list[str]] = {
    "port": ["", "eighty", "-1", "1.5", "65536", "99999999999999999999"],
    "log_level": ["", "loud", "10"],
    "max_steps": ["many", "-3"],
    "step_lease_seconds": ["1s"],
    "doom_loop_guard_required": ["maybe", ""],
    "require_tool_context": ["2"],
    "engine_price_usd": ["free", "-1", "0.0000001", "nan"],
    "engine_seconds": ["ten"],
    "engine_workers": ["two", "1"],
    "engine_memory_mb": ["1GB"],
    "trust_min_days": ["a month"],
    "trust_min_actions": ["-1"],
    "trust_max_denial_rate": ["1%", "1.01", "-0.1", "nan"],
    "max_open_approvals": ["many"],
    "webhook_allow_private": ["sometimes"],
    "witness": ["syslog", "file:", "stdout;stderr", "ftp://example.com", "stdout,https://"],
    "witness_seconds": ["0", "a minute"],
    "tolerances": ["1", "tolerance", "tolerance=-1", "rounding=1"],
    "rate_limit_per_key": ["60/s"],
    "max_in_flight": ["0", "-1"],
    "max_in_flight_mb": ["0", "256MB"],
    "max_body_bytes": ["1MiB"],
    "max_upload_bytes": ["10MiB"],
    "llm_base_url": [
        "models.example/v1",
        "file:///etc/passwd",
        "https://user:word@models.example",
        "https://",
        "https://models.example:65536/v1",
    ],
    "a2a_strict": ["very", ""],
    "a2a_messages_per_minute": ["60/s", "-1"],
    "a2a_max_payload_bytes": ["1MiB", "0", "1023", "10485761"],
    "a2a_block_on_error": ["never"],
    "otel_endpoint": [
        "collector.example:4318",
        "grpc://collector.example",
        "http://me:word@collector.example",
        "http://",
        "http://collector.example:0",
        "http://collector.example:99999",
        "http://collector.example:otlp",
        "http://[::1",
    ],
    "otel_sample": ["all", "1.01", "-0.1", "nan"],
    "batch_ttl_seconds": ["a week"],
    "content_retention_days": ["a month", "-1", "0.5"],
    "approval_ttl_seconds": ["-1"],
    "attestation_ttl_seconds": ["x"],
    "idempotency_ttl_seconds": ["x"],
}


def test_every_setting_is_tried_here() -> None:
    assert set(GOOD) == {field.name for field in fields(Settings)}


@pytest.mark.parametrize("field", GOOD)
def test_a_setting_is_read_from_its_variable(field: str) -> None:
    text, value = GOOD[field]
    read = settings_from({variable_of(field): text})
    assert getattr(read, field) == value
    others = {other.name for other in fields(Settings)} - {field}
    assert all(getattr(read, other) == getattr(Settings(), other) for other in others)


@pytest.mark.parametrize(("field", "text"), [(field, text) for field, texts in BAD.items() for text in texts])
def test_a_value_that_cannot_be_used_is_named_with_its_variable(field: str, text: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings_from({variable_of(field): text})
    message = str(raised.value)
    assert message.startswith(f"{variable_of(field)}: `{text}` cannot be used: ")
    assert not message.endswith(".")


WHOLE = [field.name for field in fields(Settings) if field.type is int]
MUCH = 10**30


@pytest.mark.parametrize("field", WHOLE)
def test_no_number_is_so_large_that_sums_of_time_and_money_break(field: str) -> None:
    with pytest.raises(SettingsError, match=variable_of(field)):
        settings_from({variable_of(field): "1" + "0" * 30})


@pytest.mark.parametrize("value", [-1, MUCH, 1.5, "7", True, float("nan")], ids=repr)
@pytest.mark.parametrize("field", WHOLE)
def test_what_a_program_passes_in_is_held_to_the_same_bounds(field: str, value: Any) -> None:
    with pytest.raises(SettingsError, match=variable_of(field)):
        settings_from({}, **{field: value})


@pytest.mark.parametrize(
    ("field", "text"), [(field, text) for field in ("llm_base_url", "otel_endpoint") for text in BAD[field]]
)
def test_an_address_that_a_program_passes_in_is_held_to_the_same_rules(field: str, text: str) -> None:
    with pytest.raises(SettingsError, match=variable_of(field)):
        settings_from({}, **{field: text})


@pytest.mark.parametrize("word", ["true", "1", "yes", "on", "TRUE", " On "])
def test_every_word_for_yes(word: str) -> None:
    assert settings_from({"QWED_DOOM_LOOP_GUARD_REQUIRED": word}).doom_loop_guard_required is True


@pytest.mark.parametrize("word", ["false", "0", "no", "off", "FALSE"])
def test_every_word_for_no(word: str) -> None:
    assert settings_from({"QWED_REQUIRE_TOOL_CONTEXT": word}).require_tool_context is False


def test_the_name_the_guide_uses_works_and_ours_wins() -> None:
    assert settings_from({"DOOM_LOOP_GUARD_REQUIRED": "true"}).doom_loop_guard_required
    both = {"DOOM_LOOP_GUARD_REQUIRED": "true", "QWED_DOOM_LOOP_GUARD_REQUIRED": "false"}
    assert not settings_from(both).doom_loop_guard_required


def test_what_is_given_wins_over_the_environment_and_nothing_given_does_not() -> None:
    environment = {"QWED_PORT": "9000", "QWED_HOST": "::1"}
    assert settings_from(environment, port=1, host=None).port == 1
    assert settings_from(environment, port=1, host=None).host == "::1"


def test_a_bad_value_stops_the_start_even_where_another_is_given() -> None:
    with pytest.raises(SettingsError, match="QWED_PORT"):
        settings_from({"QWED_PORT": "x"}, port=1)


def test_an_empty_environment_gives_the_defaults() -> None:
    assert settings_from({}) == Settings()
    assert (Settings().host, Settings().port, Settings().engine_price_usd) == ("127.0.0.1", 8000, 10_000)


def test_unknown_variables_are_seen_and_known_ones_are_not() -> None:
    environment = {
        "QWED_PROT": "1",
        "QWED_port": "1",
        "QWED_PORT": "1",
        "QWED_API_KEY": "x",
        "QWED_AGENT_TOKEN": "x",
        "PATH": "/bin",
        "QWED_": "",
    }
    assert unknown_variables(environment) == ["QWED_", "QWED_PROT", "QWED_port"]


def test_an_unknown_variable_changes_nothing() -> None:
    assert settings_from({"QWED_PROT": "1"}) == Settings()


def test_a_database_may_be_at_one_of_several_places() -> None:
    text = "postgresql://qwed@one:5432,two:5433/qwed"
    assert settings_from({"QWED_DATABASE_URL": text}).database_url == text


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("database_url", "mysql://me:hunter2@host/qwed"),
        ("database_url", "postgresql://me:hunter2@host"),
        ("database_url", "postgresql://me:hunter2@host/"),
        ("database_url", "postgresql://me:hunter2"),
        ("database_url", "postgresql://me:hunter2\u2100@host/qwed"),
        ("database_url", "postgresql://me:hunter2@one:1,two:nought/qwed"),
        ("redis_url", "http://me:hunter2@host"),
        ("otel_headers", "hunter2"),
        ("otel_headers", "authorization=hunter2,,=hunter2"),
        ("otel_headers", "authorization=hunter2%0d%0ax: y"),
        ("otel_headers", "authorization=hunter2%00"),
        ("otel_headers", "author ization=hunter2"),
        ("otel_headers", "authorization="),
        ("otel_headers", "authorization=" + "hunter2" * 2_000),
        ("redis_url", "redis://me:hunter2"),
        ("redis_url", "redis://me:hunter2@"),
        ("redis_url", "redis://:hunter2@host:0"),
        ("redis_url", "redis://:hunter2@host:65536"),
        ("redis_url", "redis://:hunter2\u2100@host"),
        ("redis_url", "redis://:hunter2@[::1"),
        ("redis_url", "redis://:hunter2@host/first"),
        ("redis_url", "redis://:hunter2@host/0/1"),
        ("redis_url", "unix://:hunter2@"),
        ("redis_url", "unix://:hunter2@host/path"),
        ("redis_url", "rediss://:hunter2@host?ssl_cert_reqs=none"),
        ("redis_url", "rediss://:hunter2@host?ssl_check_hostname=false"),
        ("redis_url", "rediss://host?password=hunter2"),
        ("redis_url", "rediss://:hunter2@host?ssl_ca_certs=a&ssl_ca_certs=b"),
    ],
)
def test_an_address_with_a_password_is_refused_without_repeating_it(field: str, text: str) -> None:
    passed_in: dict[str, Any] = {field: text}
    with pytest.raises(SettingsError) as raised:
        settings_from({variable_of(field): text})
    with pytest.raises(SettingsError) as raised_too:
        Settings(**passed_in)
    assert str(raised.value) == str(raised_too.value)
    assert str(raised.value).startswith(f"{variable_of(field)}: what it names cannot be used: ")
    assert "hunter2" not in str(raised.value)
    good = settings_from({"QWED_DATABASE_URL": "postgresql://me:hunter2@host/qwed"})
    assert "hunter2" not in repr(good)


SECRETS = ("database_url", "redis_url", "llm_api_key", "otel_headers")


@pytest.mark.parametrize("field", SECRETS)
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_may_stand_in_a_file(field: str, end: str, tmp_path: Path) -> None:
    text, value = GOOD[field]
    file = tmp_path / "secret"
    file.write_bytes((text + end).encode())
    read = settings_from({f"{variable_of(field)}_FILE": str(file)})
    assert getattr(read, field) == value
    assert unknown_variables({f"{variable_of(field)}_FILE": str(file)}) == []


def test_what_is_no_secret_stands_in_no_file(tmp_path: Path) -> None:
    file = tmp_path / "port"
    file.write_text("9000")
    assert settings_from({"QWED_PORT_FILE": str(file)}) == Settings()
    assert unknown_variables({"QWED_PORT_FILE": str(file)}) == ["QWED_PORT_FILE"]


def test_a_secret_stands_in_one_place(tmp_path: Path) -> None:
    both = {"QWED_LLM_API_KEY": "hunter2", "QWED_LLM_API_KEY_FILE": str(tmp_path / "key")}
    with pytest.raises(SettingsError, match="QWED_LLM_API_KEY and QWED_LLM_API_KEY_FILE are both set") as raised:
        settings_from(both)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"\xff\xfe", "cannot be read: it is not a text file"),
        (b"x" * 65_537, "cannot be used: it is longer than 65536 characters"),
    ],
)
def test_a_file_without_a_secret_is_named(content: bytes | None, why: str, tmp_path: Path) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as raised:
        settings_from({"QWED_LLM_API_KEY_FILE": str(file)})
    assert str(raised.value) == f"QWED_LLM_API_KEY_FILE: `{file}` {why}"


def test_a_secret_in_a_file_that_cannot_be_used_is_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("mysql://me:hunter2@host/qwed")
    with pytest.raises(SettingsError, match="QWED_DATABASE_URL: what it names cannot be used") as raised:
        settings_from({"QWED_DATABASE_URL_FILE": str(file)})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "redis://host",
        "redis://host/",
        "redis://me:hunter2@host:6379/15",
        "redis://[::1]:6379",
        "rediss://host?ssl_ca_certs=/a.pem&ssl_certfile=/b.pem&ssl_keyfile=/c.pem",
        "unix:///run/redis.sock",
        "unix://me:hunter2@/run/redis.sock",
    ],
)
def test_where_a_redis_may_be(text: str) -> None:
    assert Settings(redis_url=text).redis_url == text


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]
