"""Secrets in configuration."""

import json

import pytest

from qwed_sdk.guards.config_guard import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_PATTERN_TEXT,
    MAX_PATTERNS,
    MAX_VALUES,
    ConfigGuard,
)

TOKEN = "ghp_" + "a1B2" * 9


def paths(result):
    return [violation.path for violation in result.violations]


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"database": {"password": "hunter2"}}, "database.password"),
        ({"database": {"password": 48213377}}, "database.password"),
        ({"services": [{"env": {"GITHUB_TOKEN": TOKEN}}]}, "services[0].env.GITHUB_TOKEN"),
        ({"url": "postgres://app:s3cr3tpw@db/app"}, "url"),
        ({"keys": ["x", TOKEN]}, "keys[1]"),
        ({"password": ["hunter2x"]}, "password[0]"),
        ({"client_secret": b"9f8e7d6c5b4a39281706"}, "client_secret"),
        ({"env": [{"name": "x", "value": "AWS_SECRET_ACCESS_KEY=" + "aB3/" * 10}]}, "env[0].value"),
        (("api_key=" + "a1b2c3d4" * 4).encode(), ""),
        ("password: hunter2!", ""),
    ],
)
def test_a_secret_is_found_under_its_key_and_never_shown(data, where):
    result = ConfigGuard().verify_config_safety(data)
    assert paths(result) == [where]
    assert (result.verified, result["verified"], result.risk) == (False, False, "critical")
    for secret in ("hunter2", TOKEN, "s3cr3tpw", "9f8e7d6c5b4a39281706", "48213377", "a1b2c3d4a1b2"):
        assert secret not in repr(result)


@pytest.mark.parametrize(
    "data",
    [
        {},
        None,
        "",
        [],
        {"database": {"host": "db", "port": 5432, "password": "${DB_PASSWORD}"}},
        {"database": {"password": "vault:secret/data/db#password"}, "debug": True, "ratio": 0.5},
        {"api_key": "<your-api-key>", "token": "{{ secret }}"},
        {"auth": {"password_env": "DB_PASSWORD", "token_file": "/run/secrets/token"}},
        {"max_tokens": 4096, "primary_key": "id", "secretName": "db-credentials"},
        {"image": "app@sha256:" + "9f86d081" * 8, "commit": "3f786850e387550fdab836ed7e6dc881de23001b"},
        {"labels": {1: "x", None: "y"}, "ports": (80, 443), "tags": {"a"}},
    ],
)
def test_an_honest_configuration_passes(data):
    result = ConfigGuard().verify_config_safety(data)
    assert (result.verified, result.risk, result.violations) == (True, "low", ())
    assert result.message == "no secret found"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"database": {"password": "hunter2x"}}', "database.password"),
        ('{"password": ["hunter2x"]}', "password[0]"),
        ('{"\\u0070assword": "hunter2x"}', "password"),
        (b'[{"client_secret": "9f8e7d6c5b4a39281706"}]', "[0].client_secret"),
        ('{"password": "hunter2x", "password": "${PASSWORD}"}', ""),
        ('{"password": "hunter2x"', ""),
    ],
)
def test_a_configuration_written_as_json_is_read(text, where):
    assert paths(ConfigGuard().verify_config_safety(text)) == [where]


@pytest.mark.parametrize("text", ['{"password": "${DB_PASSWORD}", "port": 5432}', "[]", "null", "7", '"fine"'])
def test_an_honest_configuration_written_as_json_passes(text):
    assert ConfigGuard().verify_config_safety(text).verified


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000, "1" * 5_000, "\ud800"])
def test_json_that_nobody_can_read_is_answered(text):
    ConfigGuard().verify_config_safety(text)


def test_several_secrets_are_all_named():
    result = ConfigGuard().verify_config_safety({"a": {"password": "hunter2x"}, "b": [TOKEN], "c": "fine"})
    assert paths(result) == ["a.password", "b[0]"]
    assert result.message.startswith("2 found: `a.password` contains a secret")


def test_a_secret_in_the_place_of_a_key_is_found_and_not_shown():
    result = ConfigGuard().verify_config_safety({TOKEN: "x"})
    assert not result.verified
    assert TOKEN not in repr(result)


def test_a_string_is_scanned_with_what_was_found():
    result = ConfigGuard().scan_string(f"TOKEN={TOKEN}\npassword = 'hunter2x'")
    assert [violation.type for violation in result.secrets_found] == ["github_token", "assignment"]
    assert result.secrets_found[0].masked == "gh***"
    assert (result.verified, result.risk) == (False, "critical")
    assert ConfigGuard().scan_string("nothing here").secrets_found == ()


@pytest.mark.parametrize("text", [None, 3, ["x"], {"a": 1}])
def test_what_is_no_text_is_not_called_clean(text):
    assert not ConfigGuard().scan_string(text).verified


def test_custom_patterns_have_names_and_are_masked():
    guard = ConfigGuard({"ticket": r"TCK-\d{6}"})
    result = guard.verify_config_safety({"note": "see TCK-123456"})
    assert [(violation.path, violation.type) for violation in result.violations] == [("note", "ticket")]
    assert "TCK-123456" not in repr(result)
    assert ConfigGuard([r"TCK-\d{6}"]).scan_string("TCK-123456").secrets_found[0].type == "custom"


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|aa)+",
        "(a*)*b",
        "([a-z]+)*!",
        "((a{1,5})){1,9}x",
        r"(\w+)\1",
        "(",
        "[",
        "",
        "x" * 501,
        "a*a*a*a*a*a*a*b",
        3,
    ],
)
def test_a_pattern_that_may_take_forever_is_refused_at_once(pattern):
    with pytest.raises(ValueError, match=r"pattern|expression|backtrack"):
        ConfigGuard([pattern])


def test_patterns_are_a_table_or_a_list_and_not_too_many():
    with pytest.raises(ValueError, match="mapping"):
        ConfigGuard("abc")
    with pytest.raises(ValueError, match="more than"):
        ConfigGuard(["x"] * (MAX_PATTERNS + 1))


def test_a_value_too_long_for_custom_patterns_is_not_called_clean():
    result = ConfigGuard(["zzz"]).scan_string("a " * MAX_PATTERN_TEXT)
    assert [violation.type for violation in result.secrets_found] == ["unscanned"]


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = {"k": value}
    return value


@pytest.mark.parametrize(
    "data",
    [nested(MAX_DEPTH + 1), nested(5_000), ["x"] * (MAX_VALUES + 5), ["a " * 1_000] * 1_000, "a " * MAX_CHARACTERS],
    ids=["deep", "very deep", "many", "large", "one large"],
)
def test_what_was_not_looked_at_is_not_called_clean(data):
    result = ConfigGuard().verify_config_safety(data)
    assert (result.verified, result.risk) == (False, "medium")
    assert result.violations[-1].type == "unscanned"


def test_a_structure_that_holds_itself_is_answered():
    data = {}
    data["self"] = data
    assert not ConfigGuard().verify_config_safety(data).verified


def test_a_result_reads_as_json():
    result = ConfigGuard().verify_config_safety({"password": "hunter2x"})
    assert (
        json.loads(json.dumps({**result, "violations": [dict(violation) for violation in result.violations]}))["risk"]
        == "critical"
    )
