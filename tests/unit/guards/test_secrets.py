"""Detection of secrets in text, false positives, and the cost of hostile text."""

import pytest

from qwed.guards._secrets import assignments
from qwed.guards.secrets import MAX_CANDIDATES, MAX_NESTING, find_secrets, mask
from qwed.guards.text_scan import MAX_SCANNED, UNSCANNED, TextFinding
from tests.support.case_tables import each, rows


# The texts are stored in pieces so that secret scanners do not find whole tokens in the repository.
@each("row", rows("secrets_attacks.jsonl"), ids=lambda row: row["name"])
def test_a_secret_is_found_and_masked(row):
    text = "".join(row["text"])
    assert [finding.kind for finding in find_secrets(text)] == row["kinds"]
    masked = mask(text)
    for finding in find_secrets(text):
        assert f"[secret:{finding.kind}]" in masked
        assert text[finding.start : finding.end] not in masked


@each("text", [row["text"] for row in rows("secrets_honest.jsonl")])
def test_honest_text_holds_no_secret_and_is_left_alone(text):
    assert find_secrets(text) == ()
    assert mask(text) == text


def test_a_masked_text_holds_no_secret_any_more():
    for row in rows("secrets_attacks.jsonl"):
        assert find_secrets(mask("".join(row["text"]))) == ()


def test_a_secret_is_found_wherever_it_stands_in_a_long_text():
    token = "ghp_" + "a1B2" * 9
    text = "word " * 50_000 + token + " word" * 50_000
    assert find_secrets(text) == (TextFinding("github_token", 250_000, 250_000 + len(token)),)


def test_an_escaped_or_joined_secret_is_found_wherever_it_stands_in_a_long_text() -> None:
    for token in ("%67%68%70_" + "a1B2" * 9, '"ghp_a1B2" + "' + "a1B2" * 8 + '"'):
        for count in (0, 5, 9_000):
            text = "word " * count + token + " word" * 20_000
            assert [finding.kind for finding in find_secrets(text)] == ["github_token"], (token, count)


def test_only_the_password_of_a_connection_string_is_masked():
    assert mask("postgres://app:p4ssw0rd@db/x") == "postgres://app:[secret:connection_string]@db/x"


def test_a_key_that_never_ends_is_masked_to_the_end():
    assert mask("see -----BEGIN PRIVATE" + " KEY-----\nabc\ndef") == "see [secret:private_key]"


def test_text_past_the_bound_is_reported_as_unscanned_and_masked():
    text = "a" * MAX_SCANNED + " password='hunter2hunter2'"
    assert find_secrets(text) == (TextFinding(UNSCANNED, MAX_SCANNED, len(text)),)
    assert mask(text).endswith("a[secret:unscanned]")


def test_more_candidates_than_anyone_writes_are_reported_as_unscanned():
    findings = find_secrets("password: 'some words' " * (MAX_CANDIDATES + 1))
    assert [finding.kind for finding in findings] == [UNSCANNED]


def test_a_secret_below_several_names_is_found():
    value = "a1B2c3D4e5F6"
    assert find_secrets("token:<" * (MAX_NESTING - 1) + "token:" + value)[-1].kind == "assignment"
    assert mask(f"password:/token:</secret={value}") == "password:/token:</secret=[secret:assignment]"


def test_more_addresses_than_anyone_writes_are_reported_as_unscanned():
    findings = find_secrets("postgres://a:<b>@c " * (MAX_CANDIDATES + 1))
    assert [finding.kind for finding in findings] == [UNSCANNED]


@pytest.mark.parametrize("unit", ["token:", "api_key:", "token:{", "password:/", "secret:your_", "pwd='token:"])
@pytest.mark.parametrize("size", [100, 440, 18_000, MAX_SCANNED])
def test_what_is_weighed_is_proportional_to_the_text(unit, size, monkeypatch):
    lengths = []
    original = assignments._is_secret
    monkeypatch.setattr(
        assignments, "_is_secret", lambda *arguments: lengths.append(len(arguments[2])) or original(*arguments)
    )
    text = (unit * size)[:size]
    find_secrets(text)
    assert 0 < sum(lengths) <= MAX_NESTING * size + 4_096
    assert sum(lengths) <= MAX_SCANNED + 4_096


def test_what_was_not_weighed_is_unscanned_to_the_end():
    text = "token:" * 3_000 + " password='hunter2hunter2'"
    assert find_secrets(text)[-1].end == len(text)
    assert "hunter2" not in mask(text)


HOSTILE = (
    "a",
    "[",
    "eyJ",
    "eyJaaaaaaaaaa.",
    "password=",
    "pwd='",
    "secret: ",
    "sk-",
    "://a:b",
    "-----BEGIN ",
    "bearer ",
    "token=\\",
    "token:",
    "api_key:",
    "token:<",
    "password:/",
    "password:your_",
    'secret="token:',
    "postgres://a:<b@",
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_megabyte_of_near_misses_is_answered_with_spans_of_the_text(unit):
    text = (unit * MAX_SCANNED)[:MAX_SCANNED]
    assert all(0 <= start < end <= len(text) for _, start, end in find_secrets(text))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password: Tr0ub4dor&3xyz", "password: [secret:assignment]"),
        ("pw: a1b2c3d4|e5f6 rest", "pw: [secret:assignment] rest"),
        ("https://h/?password=Tr0ub4dor3&user=bob", "https://h/?password=[secret:assignment]&user=bob"),
        ("connect(password=Tr0ub4dor3)", "connect(password=[secret:assignment])"),
        ("a%26password%3DTr0ub4dor3%26b%3D2", "a%26password%3D[secret:assignment]%26b%3D2"),
    ],
)
def test_a_password_is_masked_with_the_signs_inside_it_and_nothing_beside_it(text, masked):
    assert mask(text) == masked
