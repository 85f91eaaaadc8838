"""Verdicts of the fact engine on claims, with the deciding sentence (INTERFACES 2, DESIGN 8)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.engines.fact import verify
from qwed.engines.protocol import EngineRequest
from qwed.model import Status, Verdict
from tests.support.case_tables import each, rows

FILLER = (
    "The harbour was dredged in the spring. Several ferries were repainted. The council met on Thursday. "
    "Visitors may park near the old mill. Tickets cost 12 euros.\n\n"
)


def ask(claim: Any, context: Any) -> Verdict:
    return verify(EngineRequest(query=claim, parameters={"context": context}))


def label(row: dict[str, Any]) -> str:
    return f"{row['claim'][:40]} <- {row['context'][:50]}"


@each("row", rows("fact_supported.jsonl"), ids=label)
def test_what_the_context_states_is_verified_with_its_sentence(row):
    verdict = ask(row["claim"], row["context"])
    assert (verdict.status, verdict.result["verdict"]) == (Status.VERIFIED, "SUPPORTED"), verdict.message
    evidence = verdict.result["evidence"]
    assert row["context"][evidence["start"] : evidence["end"]] == evidence["sentence"]


@each("row", rows("fact_numerals.jsonl"), ids=label)
def test_a_number_is_supported_only_in_every_reading_of_its_spelling(row):
    verdict = ask(row["claim"], row["context"])
    assert (verdict.status is Status.VERIFIED) is row["supported"], verdict.message


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("The price is 1 Euro.", "The price is 1.000 Euro."),
        ("The price is 1000 Euro.", "The price is 1.000 Euro."),
        ("The price is 1.000 Euro.", "The price is 1,000 Euro."),
        ("Python 3.1 is supported.", "Python 3.10 is supported."),
        ("Clause 7.1 limits liability.", "Clause 7.10 limits liability."),
        ("The address is 10.0.0.1.", "The address is 10.0.0.10."),
        ("The fee is $100 annually.", "The fee is $100 monthly."),
        ("The fee is 1 CHF.", "The fee is 1 000 CHF."),
    ],
)
def test_an_ambiguous_number_is_undecided(claim, context):
    for pair in ((claim, context), (context, claim)):
        assert ask(*pair).status is Status.INCONCLUSIVE, pair


@each("row", rows("fact_refuted.jsonl"), ids=label)
def test_what_the_context_contradicts_fails_with_the_slot(row):
    verdict = ask(row["claim"], row["context"])
    assert (verdict.status, verdict.result["verdict"]) == (Status.FAILED, "REFUTED"), verdict.message
    assert verdict.result["slot"]
    evidence = verdict.result["evidence"]
    assert row["context"][evidence["start"] : evidence["end"]] == evidence["sentence"]


@each("row", rows("fact_undecided.jsonl"), ids=label)
def test_what_the_context_does_not_state_is_never_decided(row):
    verdict = ask(row["claim"], row["context"])
    assert (verdict.status, verdict.result["verdict"]) == (Status.INCONCLUSIVE, "NOT_ENOUGH_INFO"), verdict.message


@pytest.mark.parametrize("row", rows("fact_hostile.jsonl"), ids=lambda row: ascii(row["claim"])[:40])
def test_text_that_is_missing_too_long_or_deceives_the_eye_is_blocked(row):
    verdict = ask(row["claim"], row["context"] * row.get("times", 1))
    assert (verdict.status, verdict.checks_failed) == (Status.BLOCKED, ("input_valid",))
    assert not verdict.message.endswith(".")


@pytest.mark.parametrize("context", [None, 7, ["Acme won."], {"text": "Acme won."}])
def test_a_context_that_is_no_text_is_blocked(context):
    assert ask("Acme won.", context).status is Status.BLOCKED
    assert ask(context, "Acme won.").status is Status.BLOCKED


@pytest.mark.parametrize("name", ["supported", "refuted", "undecided"])
def test_other_sentences_around_it_change_nothing_but_the_place(name):
    for row in rows(f"fact_{name}.jsonl")[::5]:
        alone, among = ask(row["claim"], row["context"]), ask(row["claim"], f"{FILLER}{row['context']}\n\n{FILLER}")
        assert among.result["verdict"] == alone.result["verdict"], row
        if name != "undecided":
            assert among.result["evidence"]["start"] == alone.result["evidence"]["start"] + len(FILLER)


def test_a_claim_is_supported_by_itself_or_not_decided_and_never_refuted():
    for name in ("supported", "refuted", "undecided"):
        for row in rows(f"fact_{name}.jsonl"):
            assert ask(row["claim"], row["claim"]).status is not Status.FAILED, row


def test_no_claim_is_supported_together_with_its_denial():
    for row in rows("fact_supported.jsonl"):
        denial = row["context"].replace(" is ", " is not ").replace(" was ", " was not ").replace(" has ", " has no ")
        if denial != row["context"]:
            assert not ask(row["claim"], denial).verified, denial


@pytest.mark.parametrize(
    "frame",
    [
        "It is not true that {0}",
        "Some people believe that {0}",
        "Bob said that {0}",
        "Reportedly, {0}",
        "If {0} then prices would rise.",
        "Nobody thinks that {0}",
        "“{0}” he wrote.",
        "Suppose the following. {0}",
        "{0} This is false.",
        "{0} That turned out to be wrong.",
        "{0} False.",
        "Rumours:\n- {0}",
        "Common misconceptions\n\n{0}",
        "Is it true that {0}?",
        "The film pretends that {0}",
        "Critics dispute that {0}",
        "He dreamed that\n{0}",
    ],
)
def test_a_frame_takes_what_it_holds_out_of_what_is_stated(frame):
    for row in rows("fact_supported.jsonl")[::3]:
        if "." in row["context"].rstrip(".") or "\n" in row["context"]:
            continue
        assert not ask(row["claim"], frame.format(row["context"])).verified, row


@pytest.mark.parametrize("doubt", ["not", "allegedly", "almost", "never", "half", "fake", "if"])
def test_a_word_of_doubt_anywhere_in_a_sentence_ends_its_support(doubt):
    for row in rows("fact_supported.jsonl"):
        if row["claim"] != row["context"] or "." in row["context"].rstrip("."):
            continue
        words = row["context"].rstrip(".").split()
        for at in range(len(words) + 1):
            sentence = " ".join([*words[:at], doubt, *words[at:]])
            assert not ask(row["claim"], f"{sentence}.").verified, sentence


def test_every_part_of_a_claim_must_be_supported():
    context = "Acme acquired Foo in 2020. Bar closed in 2021."
    assert ask("Acme acquired Foo in 2020. Bar closed in 2021.", context).verified
    assert ask("Acme acquired Foo in 2020. Bar closed in 2022.", context).status is Status.FAILED
    assert ask("Acme acquired Foo in 2020. Bar opened a shop.", context).status is Status.INCONCLUSIVE


def test_a_context_that_contradicts_itself_decides_nothing_and_says_so():
    verdict = ask("The store is open.", "The store is open. The store is closed.")
    assert (verdict.status, verdict.result["slot"]) == (Status.INCONCLUSIVE, "contradiction")
    assert verdict.message == "the context contradicts itself about the claim"


def test_the_closest_sentence_is_shown_where_none_decides():
    verdict = ask("Acme acquired Foo in May.", f"{FILLER}Acme may acquire Foo.")
    assert verdict.result["closest"]["sentence"] == "Acme may acquire Foo."


def test_the_largest_context_is_answered():
    context = (FILLER * 2000)[:199_000] + " Acme acquired Foo in 2020."
    assert ask("Acme bought Foo in 2020.", context).verified


@pytest.mark.parametrize(
    "piece", [". ", "\n- a", '" ', "(", "Acme ", "1,234 million and ", "in 2020 ", "'a ", "Dr. ", "a-"]
)
def test_a_context_of_one_thing_over_and_over_is_answered(piece):
    context = (piece * 200_000)[:200_000]
    assert ask("Acme acquired Foo in 2020 and sold Bar.", context).status is Status.INCONCLUSIVE


def test_facts_do_nothing_to_the_world():
    for row in rows("fact_refuted.jsonl")[::9] + rows("fact_hostile.jsonl"):
        verdict = ask(row["claim"], row["context"])
        assert (verdict.engine, verdict.effects, verdict.violations) == ("fact", (), ())


signed = st.integers(-(10**6), 10**6)


@settings(max_examples=60, deadline=None)
@given(signed, signed, st.sampled_from(["-", "\u2212"]))
def test_a_number_is_supported_with_its_own_sign_only(stated, claimed, minus):
    context = f"The balance was {stated:,} points.".replace("-", minus)
    verdict = ask(f"The balance was {claimed} points.", context)
    assert verdict.status is (Status.VERIFIED if stated == claimed else Status.FAILED)
    floor = ask(f"The balance was at least {claimed} points.", context)
    assert floor.status is (Status.VERIFIED if stated >= claimed else Status.FAILED)


amounts = st.integers(0, 10**9)


@settings(max_examples=80, deadline=None)
@given(amounts, amounts)
def test_a_number_is_supported_where_it_is_the_same_and_refuted_where_it_is_not(stated, claimed):
    verdict = ask(f"The plant made {claimed:,} bolts.", f"The plant made {stated} bolts.")
    assert verdict.status is (Status.VERIFIED if stated == claimed else Status.FAILED)


@settings(max_examples=80, deadline=None)
@given(amounts, amounts)
def test_a_bound_is_supported_exactly_where_it_holds(stated, bound):
    context = f"The plant made {stated} bolts."
    assert ask(f"The plant made at least {bound} bolts.", context).verified is (stated >= bound)
    assert ask(f"The plant made fewer than {bound} bolts.", context).verified is (stated < bound)


@settings(max_examples=60, deadline=None)
@given(st.dates(), st.dates())
def test_a_date_is_supported_within_its_year_and_month_only(happened, claimed):
    context = f"The bridge opened on {happened.day} {happened:%B} {happened.year:04}."
    if min(happened.year, claimed.year) < 1000 or max(happened.year, claimed.year) > 2200:
        return
    for text, same in (
        (f"in {claimed.year}", happened.year == claimed.year),
        (f"in {claimed:%B} {claimed.year}", (happened.year, happened.month) == (claimed.year, claimed.month)),
        (f"on {claimed.isoformat()}", happened == claimed),
    ):
        assert ask(f"The bridge opened {text}.", context).status is (Status.VERIFIED if same else Status.FAILED)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.text(max_size=80))
def test_no_text_raises(claim, context):
    verdict = ask(claim, context)
    assert verdict.engine == "fact"
    json.dumps(dict(verdict.result))
