"""Guide, SkillProvenanceGuard: where a skill comes from decides whether it is loaded."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.guards.skill import BLOCKED_REGISTRIES, TRUSTED_DOMAINS, SkillProvenanceGuard, SkillVerdict
from tests.support.tables import each, rows

ATTACKS, HONEST = rows("skill_attacks.jsonl"), rows("skill_honest.jsonl")
SEED = HONEST[0]["manifest"]


def label(row: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in row["manifest"].items() if SEED.get(key) != value})[:60]


@each("row", ATTACKS, ids=label)
def test_a_doubtful_skill_is_blocked_and_the_finding_says_why(row):
    result = SkillProvenanceGuard().verify_skill(row["manifest"])
    assert (result.verified, result.status, result.risk_level) == (False, "BLOCKED", row["risk"])
    assert any(row["finding"] in finding for finding in result.findings), result.findings
    assert result.findings[0] in result.message


@each("row", HONEST, ids=label)
def test_a_skill_from_a_known_place_is_trusted(row):
    result = SkillProvenanceGuard(**row["options"]).verify_skill(row["manifest"])
    assert (result.verified, result.findings) == (True, [])
    assert (result.status, result.risk_level, result.skill_name) == ("TRUSTED", "none", row["manifest"]["name"])


def test_the_seed_example_reads_as_printed():
    result = SkillProvenanceGuard().verify_skill(manifest=SEED)
    assert (result["verified"], result["status"], result["risk_level"]) == (True, "TRUSTED", "none")
    assert set(result) == {"verified", "status", "skill_name", "risk_level", "findings", "message"}


def test_every_finding_is_listed_not_only_the_first():
    result = SkillProvenanceGuard().verify_skill({"registry": "moltbot.io", "download_count": 1000})
    assert len(result.findings) == 6
    assert result.risk_level == "high"


def test_trusted_registries_are_the_whole_list():
    guard = SkillProvenanceGuard(trusted_registries={"skills.example.org"})
    assert guard.verify_skill({**SEED, "registry": "skills.example.org"}).verified
    for other in ("github.com", "a.skills.example.org", "skills.example.org.", "skills.example.org:443", "example.org"):
        assert not guard.verify_skill({**SEED, "registry": other}).verified, other


def test_an_empty_list_of_registries_trusts_none():
    assert not SkillProvenanceGuard(trusted_registries=set()).verify_skill(SEED).verified


def test_trusted_domains_are_added_to_the_built_in_ones():
    guard = SkillProvenanceGuard(trusted_domains={"git.example.org"})
    assert guard.verify_skill({**SEED, "source_url": "https://git.example.org/x"}).verified
    assert guard.verify_skill(SEED).verified
    assert not guard.verify_skill({**SEED, "source_url": "https://a.git.example.org/x"}).verified


def test_a_malformed_digest_is_refused_even_where_none_is_needed():
    guard = SkillProvenanceGuard(require_digest=False)
    assert guard.verify_skill({**SEED, "digest": None}).verified
    assert not guard.verify_skill({**SEED, "digest": "sha256:12"}).verified


@pytest.mark.parametrize("manifest", [None, [], "x", 3, {}, {1: 2}, {"name": {"a": []}}])
def test_what_is_no_manifest_is_blocked(manifest):
    assert SkillProvenanceGuard().verify_skill(manifest).status == "BLOCKED"


def test_a_manifest_too_large_to_read_is_blocked():
    nested: Any = "x"
    for _ in range(100):
        nested = [nested]
    assert not SkillProvenanceGuard().verify_skill({**SEED, "deep": nested}).verified
    assert not SkillProvenanceGuard().verify_skill({**SEED, "wide": ["x"] * 20_000}).verified


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(BLOCKED_REGISTRIES)),
    st.sampled_from(["{}.", "a.{}", "{}:1", "//{}", "u@{}", "{}/p", "\t{}"]),
)
def test_no_spelling_gets_a_blocked_registry_through(registry, spelling):
    for written in (spelling.format(registry), spelling.format(registry).upper()):
        assert not SkillProvenanceGuard().verify_skill({**SEED, "registry": written}).verified


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=8), st.recursive(st.none() | st.integers() | st.text(max_size=20), st.lists, max_leaves=20)
    )
)
def test_any_manifest_gets_an_answer_and_always_the_same(manifest):
    first, again = (SkillProvenanceGuard().verify_skill({**SEED, **manifest}) for _ in range(2))
    assert isinstance(first, SkillVerdict)
    assert first == again


def test_these_are_the_domains_that_are_trusted_and_the_registries_that_are_not():
    trusted = {"github.com", "gitlab.com", "bitbucket.org", "pypi.org", "npmjs.com", "qwedai.com"}
    blocked = {"clawdhub.com", "moltbot.io", "skillhub.ai", "agentstore.dev", "llm-tools.net"}
    assert (trusted, blocked) == (TRUSTED_DOMAINS, BLOCKED_REGISTRIES)
    for domain in trusted:
        assert SkillProvenanceGuard().verify_skill({**SEED, "source_url": f"https://{domain}/org/skill"}).verified
    for registry in blocked:
        assert not SkillProvenanceGuard().verify_skill({**SEED, "registry": registry}).verified
        assert SkillProvenanceGuard({registry}).verify_skill({**SEED, "registry": registry}).verified


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_a_digest_of_each_algorithm_has_its_own_length(algorithm):
    whole = hashlib.new(algorithm, b"skill").hexdigest()
    assert SkillProvenanceGuard().verify_skill({**SEED, "digest": f"{algorithm}:{whole}"}).verified
    for wrong in (whole[:-1], whole + "0", whole[:-1] + "g"):
        assert not SkillProvenanceGuard().verify_skill({**SEED, "digest": f"{algorithm}:{wrong}"}).verified


@pytest.mark.parametrize("code", ["eval('1')", "exec('1')", "os.system('id')", "open('/etc/shadow')"])
def test_code_is_looked_for_everywhere_but_in_the_metadata(code):
    for field in ("name", "description"):
        assert SkillProvenanceGuard().verify_skill({**SEED, field: f"a skill about {code}"}).verified
    for field in ("version", "install", "author"):
        found = SkillProvenanceGuard().verify_skill({**SEED, field: code})
        assert (found.status, found.risk_level) == ("BLOCKED", "high")


@pytest.mark.parametrize(
    ("count", "risk"), [(9, "medium"), (10, "none"), (999, "none"), (1000, "medium"), (1001, "none")]
)
def test_a_count_of_downloads_is_odd_below_ten_and_at_a_round_thousand(count, risk):
    assert SkillProvenanceGuard().verify_skill({**SEED, "download_count": count}).risk_level == risk
