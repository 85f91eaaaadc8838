"""Ruling 4.21: every setting by its variable; a bad value is named, an unknown name only warns."""

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
    "batch_ttl_seconds": ("63", 63),
    "content_retention_days": ("90", 90),
    "startup_hooks_allow": (" AB , cd,,", frozenset({"ab", "cd"})),
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
    "rate_limit_per_key": ["60/s"],
    "max_in_flight": ["0", "-1"],
    "max_in_flight_mb": ["0", "256MB"],
    "max_body_bytes": ["1MiB"],
    "max_upload_bytes": ["10MiB"],
    "llm_base_url": ["models.example/v1", "file:///etc/passwd", "https://user:word@models.example", "https://"],
    "a2a_strict": ["very", ""],
    "a2a_messages_per_minute": ["60/s", "-1"],
    "a2a_max_payload_bytes": ["1MiB", "0", "1023", "10485761"],
    "a2a_block_on_error": ["never"],
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


@pytest.mark.parametrize("name", ["QWED_DATABASE_URL", "QWED_REDIS_URL"])
def test_what_is_not_built_yet_is_refused_and_not_done_without(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}: this version .* leave it out") as caught:
        settings_from({name: "scheme://user:secret@host/0"})
    assert "secret" not in str(caught.value)
    assert settings_from({name: ""}) == Settings()


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().port = 1  # type: ignore[misc]
