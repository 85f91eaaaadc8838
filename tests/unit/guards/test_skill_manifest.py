"""SkillProvenanceGuard: the origin of a skill decides if it is loaded (guide)."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.guards._skill.domains import LOOKALIKE_LETTERS, imitated_domain
from qwed.guards.skill_manifest import BLOCKED_REGISTRIES, TRUSTED_DOMAINS, SkillProvenanceGuard, SkillVerdict
from tests.support.case_tables import each, rows

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
        verdict = SkillProvenanceGuard().verify_skill({**SEED, field: code})
        assert (verdict.status, verdict.risk_level) == ("BLOCKED", "high")


@pytest.mark.parametrize(
    ("count", "risk"), [(9, "medium"), (10, "none"), (999, "none"), (1000, "medium"), (1001, "none")]
)
def test_a_count_of_downloads_is_odd_below_ten_and_at_a_round_thousand(count, risk):
    assert SkillProvenanceGuard().verify_skill({**SEED, "download_count": count}).risk_level == risk


SKILL = b"def forecast(city): ..."


def named(algorithm: str, content: bytes = SKILL) -> dict[str, Any]:
    return {**SEED, "digest": f"{algorithm}:{hashlib.new(algorithm, content).hexdigest()}"}


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_the_content_of_a_skill_must_be_the_one_its_digest_was_made_of(algorithm):
    guard = SkillProvenanceGuard()
    for same in (SKILL, bytearray(SKILL), memoryview(SKILL)):
        assert guard.verify_skill(named(algorithm), content=same).verified
    for other in (b"", SKILL + b"\n", SKILL[:-1], SKILL.upper()):
        verdict = guard.verify_skill(named(algorithm), content=other)
        assert (verdict.status, verdict.risk_level) == ("BLOCKED", "high")
        assert "the content does not match" in verdict.message
    upper = named(algorithm)["digest"].replace(algorithm, "").upper()
    assert guard.verify_skill({**SEED, "digest": algorithm + upper}, SKILL).verified


def test_the_digest_of_nothing_is_trusted_until_there_is_something():
    assert SkillProvenanceGuard().verify_skill(SEED).verified
    assert SkillProvenanceGuard().verify_skill(SEED, b"").verified
    assert SkillProvenanceGuard().verify_skill(SEED, SKILL).risk_level == "high"


@pytest.mark.parametrize("digest", [None, "", "sha256", 3, "md5:d41d8cd98f00b204e9800998ecf8427e", "sha256:ab"])
def test_content_that_cannot_be_compared_is_not_the_right_one(digest):
    guard = SkillProvenanceGuard(require_digest=False)
    assert guard.verify_skill({**SEED, "digest": digest}, SKILL).risk_level == "high"


@pytest.mark.parametrize("content", ["text", 3, ["bytes"], {}, False])
def test_content_that_is_no_bytes_is_blocked_and_not_compared(content):
    verdict = SkillProvenanceGuard().verify_skill(SEED, content)
    assert "and not bytes" in verdict.message


@pytest.mark.parametrize("value", [b"os.system('id')", {1, 2}, object(), float("nan"), float("inf"), {3: 4}, 1j])
def test_what_is_no_json_hides_nothing(value):
    for field in ("install", "description", "download_count"):
        verdict = SkillProvenanceGuard().verify_skill({**SEED, field: value})
        assert "not a JSON value" in verdict.message
        assert verdict.risk_level == "high"


def test_a_number_of_any_length_gets_an_answer():
    assert SkillProvenanceGuard().verify_skill({**SEED, "download_count": 10**5_000}).risk_level == "medium"
    assert SkillProvenanceGuard().verify_skill({**SEED, "download_count": -(10**5_000)}).risk_level == "medium"


def test_a_list_of_itself_is_too_large():
    shared: list[Any] = []
    for _ in range(60):
        shared = [shared, shared]
    circle: list[Any] = []
    circle.append(circle)
    for value in (shared, circle):
        assert "too large" in SkillProvenanceGuard().verify_skill({**SEED, "tools": value}).message


@pytest.mark.parametrize("value", ["github.com", b"github.com", [1], [None]])
def test_a_list_of_domains_is_a_list_of_texts(value):
    for parameter in ("trusted_registries", "trusted_domains"):
        with pytest.raises(TypeError, match=f"{parameter} takes a set of domain names"):
            SkillProvenanceGuard(**{parameter: value})


def test_a_look_alike_of_a_domain_of_ones_own_is_named_too():
    guard = SkillProvenanceGuard({"skills.example.org"}, {"git.example.org"})
    assert "`skills.example.org`" in guard.verify_skill({**SEED, "registry": "sk1lls.example.org"}).message
    assert "`git.example.org`" in guard.verify_skill({**SEED, "source_url": "https://g1t.example.org/x"}).findings[-1]


def test_no_letter_of_another_alphabet_stands_for_a_plain_one():
    guard = SkillProvenanceGuard({"skills.example.org"})
    assert not guard.verify_skill({**SEED, "registry": "s\u212aills.example.org"}).verified


def test_texts_that_are_slow_to_search_are_answered():
    for text in ("curl ", "/*", "''", "os \t", "%65", "a/", "e\u0301", "A", "sh -a ", "rm -"):
        SkillProvenanceGuard().verify_skill({**SEED, "changelog": text * 2_000})


KNOWN = TRUSTED_DOMAINS | BLOCKED_REGISTRIES


def coded_label(label: str) -> str:
    return label if label.isascii() else f"xn--{label.encode('punycode').decode()}"


@pytest.mark.parametrize("domain", sorted(KNOWN))
def test_every_twin_of_every_letter_and_every_foreign_ending_is_seen_through(domain):
    name, _, ending = domain.partition(".")
    spelt = {domain.replace(letter, twin) for letter in name for twin in LOOKALIKE_LETTERS.get(letter, "")}
    coded = {".".join(map(coded_label, host.split("."))) for host in spelt}
    placed = {f"{domain}.evil.test", f"a.{domain}.evil.test", f"{domain}-x.test", f"{name}{ending}.evil.test"}
    ended = {f"{name}.{other}" for other in ("zip", "xyz", "co.uk", "com.br")} | {f"{name}-x.test", f"x-{name}.test"}
    for host in sorted(spelt | coded | placed | ended):
        assert imitated_domain(host, KNOWN) == domain, ascii(host)
        assert imitated_domain(f"cdn.{host}", KNOWN) == domain, ascii(host)
    assert imitated_domain(domain, KNOWN) == imitated_domain(f"cdn.{domain}", KNOWN) == ""
