"""One old signed head of a log detects any edit, deletion, reordering, truncation or fork of it (P5).

The attacker has all rights over the database and none over the signing key: leaves, hashes, indexes and heads can be
made to fit each other in any way, and the heads be left as they were, left out, or signed with another key.
"""

import copy
import itertools
import json
import random
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import pytest

from qwed.ledger.verifier import Tree, check_log, leaf_hash, verify_consistency, verify_inclusion
from tests.support import rfc6962
from tests.support.campaign_table import Figure, campaign
from tests.support.log_builder import NODE, LogSigner, SignedLog, build_log, leaf, log_of, roots

COUNT = 10_000
STRANGER = LogSigner(2)
hashed = lru_cache(maxsize=4 * COUNT)(lambda text: leaf_hash(text.encode()))


class Tampered(NamedTuple):
    """Leaves after an attack, and the first position that differs."""

    leaves: list[str]
    at: int


Attack = Callable[[list[str], int, random.Random], Tampered]
"""Change of a log at one position."""


def edit(leaves: list[str], at: int, chance: random.Random) -> Tampered:
    members = json.loads(leaves[at])
    name = chance.choice(sorted(members))
    members[name] = members[name] + 1 if isinstance(members[name], int) else members[name] + "0"
    changed = json.dumps(members, sort_keys=True, separators=(",", ":"))
    return Tampered([*leaves[:at], changed, *leaves[at + 1 :]], at)


def delete(leaves: list[str], at: int, _chance: random.Random) -> Tampered:
    return Tampered([*leaves[:at], *leaves[at + 1 :]], at)


def delete_some(leaves: list[str], at: int, chance: random.Random) -> Tampered:
    return Tampered([*leaves[:at], *leaves[at + chance.randint(1, 50) :]], at)


def swap(leaves: list[str], at: int, chance: random.Random) -> Tampered:
    other = chance.choice([position for position in (at - 1, at + 1, chance.randrange(len(leaves))) if position != at])
    first, second = sorted((at, other % len(leaves)))
    if first == second:
        return edit(leaves, at, chance)
    swapped = list(leaves)
    swapped[first], swapped[second] = leaves[second], leaves[first]
    return Tampered(swapped, first)


def duplicate(leaves: list[str], at: int, chance: random.Random) -> Tampered:
    again = [*leaves[:at], leaves[chance.randrange(len(leaves))], *leaves[at:]]
    # A doubled leaf changes only the entries after it.
    return Tampered(again, at + 1 if again[at] == leaves[at] else at)


def insert(leaves: list[str], at: int, chance: random.Random) -> Tampered:
    return Tampered([*leaves[:at], leaf(chance.randrange(10**9, 10**10)), *leaves[at:]], at)


def cut(leaves: list[str], at: int, _chance: random.Random) -> Tampered:
    return Tampered(leaves[:at], at)


def fork(leaves: list[str], at: int, chance: random.Random) -> Tampered:
    """Return a log that continues differently from here on: as long, longer or shorter."""
    length, start = max(0, len(leaves) - at + chance.choice([0, 0, 5, -5])), chance.randrange(COUNT)
    return Tampered([*leaves[:at], *itertools.islice(itertools.cycle(_others()), start, start + length)], at)


@lru_cache
def _others() -> list[str]:
    """Return leaves that are in no log."""
    return [leaf(number) for number in range(10 * COUNT, 11 * COUNT + 10)]


def rewrite(leaves: list[str], _at: int, chance: random.Random) -> Tampered:
    """Replace every leaf."""
    return fork(leaves, 0, chance)


ATTACKS: dict[str, Attack] = {
    each.__name__: each for each in (edit, delete, delete_some, swap, duplicate, insert, cut, fork, rewrite)
}

Heads = dict[int, dict[str, Any]]
"""Heads by their size."""


def left(log: SignedLog, tampered: Tampered) -> Heads:
    """Keep the heads that still have entries."""
    return {size: head for size, head in log.heads.items() if size <= len(tampered.leaves)}


def signed_by_a_stranger(log: SignedLog, tampered: Tampered) -> Heads:
    """Keep the heads before the change, and sign the later ones with an attacker's key."""
    forged = build_log(tampered.leaves, [*log.heads, len(tampered.leaves)], STRANGER).heads
    return {size: log.heads[size] if size <= tampered.at and size in log.heads else forged[size] for size in forged}


def signed_with_nothing(log: SignedLog, tampered: Tampered) -> Heads:
    """Make heads that fit and name our key, with signatures of other heads."""
    forged = signed_by_a_stranger(log, tampered)
    old = itertools.cycle(log.heads.values())
    for size in [size for size in forged if size > tampered.at or size not in log.heads]:
        claims = {name: forged[size][name] for name in ("log_id", "root", "size", "time")}
        body = NODE.sign("qwed-head+jwt", json.dumps(claims, sort_keys=True, separators=(",", ":")).encode())
        stolen = next(old)["signature"].rpartition(".")[2]
        forged[size] = {**claims, "signature": f"{body.rpartition('.')[0]}.{stolen}"}
    return forged


def left_out(log: SignedLog, tampered: Tampered) -> Heads:
    """Keep only the heads before the change."""
    return {size: head for size, head in log.heads.items() if size <= tampered.at}


STYLES: dict[str, Callable[[SignedLog, Tampered], Heads]] = {
    each.__name__: each for each in (left, signed_by_a_stranger, signed_with_nothing, left_out)
}


def export(log: SignedLog, tampered: Tampered, style: str) -> list[bytes]:
    """Return the export of the attacker's database; it offers both keys as the node's."""
    heads = STYLES[style](log, tampered)
    return SignedLog(tampered.leaves, heads, keys=[NODE.jwk, STRANGER.jwk]).export()


def findings(lines: list[bytes], head: dict[str, Any] | None, keys: Any = NODE.keys) -> list[str]:
    """Return the locations of the findings."""
    return [finding.where for finding in check_log(lines, keys=keys, head=head).findings]


# A log of ten thousand entries


@pytest.fixture(scope="session")
def log() -> SignedLog:
    return log_of(COUNT)


@pytest.fixture(scope="session")
def trees(log: SignedLog) -> list[Tree]:
    """Return the tree after every hundred entries."""
    tree, snapshots = Tree(), []
    for index, text in enumerate(log.leaves):
        if index % 100 == 0:
            snapshots.append(copy.deepcopy(tree))
        tree.add(hashed(text))
    return snapshots


def contradicts(head: dict[str, Any], tampered: Tampered, trees: list[Tree]) -> bool:
    """Return True if `check_log` finds a contradiction with a given head, skipping the entries before the change."""
    size: int = head["size"]
    if size > len(tampered.leaves):
        return True
    tree = copy.deepcopy(trees[min(tampered.at, size - 1) // 100])
    for text in tampered.leaves[tree.size : size]:
        tree.add(hashed(text))
    return tree.root() != bytes.fromhex(head["root"])


def covering(log: SignedLog, tampered: Tampered, chance: random.Random) -> dict[str, Any]:
    """Return one of the heads that cover the change."""
    return log.heads[chance.choice([size for size in log.heads if size > tampered.at])]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hundred_random_changes_contradict_an_old_head(attack: str, log: SignedLog, trees: list[Tree]) -> None:
    chance = random.Random(attack)
    for _ in range(100):
        at = chance.randrange(COUNT)
        tampered = ATTACKS[attack](log.leaves, at, chance)
        assert tampered.leaves != log.leaves
        assert contradicts(covering(log, tampered, chance), tampered, trees), (attack, at)


def test_a_hundred_older_copies_contradict_a_later_head(log: SignedLog, trees: list[Tree]) -> None:
    chance = random.Random("older")
    for size in chance.sample([*log.heads][:-1], 100):
        tampered = Tampered(log.leaves[:size], size)
        assert contradicts(covering(log, tampered, chance), tampered, trees), size


def test_an_untouched_log_contradicts_none_of_its_heads(log: SignedLog, trees: list[Tree]) -> None:
    chance = random.Random("untouched")
    for size in [*chance.sample([*log.heads], 50), COUNT]:
        assert not contradicts(log.heads[size], Tampered(log.leaves, chance.randrange(size)), trees)


@pytest.mark.parametrize("attack", ["edit", "delete", "fork"])
def test_the_same_is_found_in_an_export_of_ten_thousand_entries(attack: str, log: SignedLog) -> None:
    chance = random.Random(f"{attack} exported")
    tampered = ATTACKS[attack](log.leaves, chance.randrange(COUNT), chance)
    exported = export(log, tampered, chance.choice([*STYLES]))
    head = covering(log, tampered, chance)
    assert "the given head" in findings(exported, head, keys=chance.choice([NODE.keys, None]))


def test_ten_thousand_entries_that_were_not_touched_are_found_to_be_so(log: SignedLog) -> None:
    assert findings(log.export(), log.heads[COUNT]) == []


# Every way to treat the heads


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_way_of_making_the_heads_fit_deceives_the_given_head(attack: str, style: str) -> None:
    chance = random.Random(f"{attack} {style}")
    small = _small(120)
    for keys in (NODE.keys, None):
        tampered = ATTACKS[attack](small.leaves, chance.randrange(120), chance)
        exported = export(small, tampered, style)
        assert "the given head" in findings(exported, covering(small, tampered, chance), keys)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("attack", sorted(ATTACKS.keys() - {"cut"}))
def test_with_the_keys_alone_every_change_is_found_but_the_one_that_leaves_an_older_copy(
    attack: str, style: str
) -> None:
    chance = random.Random(f"{attack} {style} alone")
    small = _small(120)
    for at in chance.sample(range(60), 2):
        # Not so close to the end that the rest could be an older copy.
        tampered = ATTACKS[attack](small.leaves, at, chance)
        assert findings(export(small, tampered, style), None) != []


def test_an_older_copy_looks_right_to_whoever_kept_no_later_head() -> None:
    small = _small(40)
    sizes = [*small.heads]
    for older, later in itertools.pairwise(sizes):
        copied = SignedLog(small.leaves[:older], {size: small.heads[size] for size in sizes if size <= older})
        assert findings(copied.export(), None) == []
        assert findings(copied.export(), small.heads[older]) == []
        assert findings(copied.export(), small.heads[later]) == ["the given head"]


def test_a_whole_log_under_another_key_looks_right_only_to_whoever_trusts_the_export() -> None:
    small = _small(120)
    rewritten = rewrite(small.leaves, 0, random.Random("told"))
    forged = build_log(rewritten.leaves, [*small.heads], STRANGER).export()
    assert findings(forged, None, keys=None) == []
    assert findings(forged, None) != []
    for head in small.heads.values():
        assert "the given head" in findings(forged, head, keys=None)


@lru_cache
def _small(count: int) -> SignedLog:
    return log_of(count)


# Every change of small logs, under every head


def every_change(leaves: list[str]) -> Iterator[Tampered]:
    """Yield every kind of change at every position."""
    chance, size = random.Random(len(leaves)), len(leaves)
    for at in range(size):
        for attack in (edit, delete, insert, cut, fork):
            yield attack(leaves, at, chance)
        for other in range(at + 1, size):
            yield Tampered([*leaves[:at], leaves[other], *leaves[at + 1 : other], leaves[at], *leaves[other + 1 :]], at)
            yield Tampered([*leaves[:at], *leaves[other:]], at)
            yield Tampered([*leaves[:at], leaves[other], *leaves[at:]], at)
            yield Tampered([*leaves[: other + 1], leaves[at], *leaves[other + 1 :]], other + 1)


def require_found(size: int) -> None:
    """Assert that every head that covers a change contradicts it, and no other does."""
    small = _every_head(size)
    genuine = roots(small.leaves)
    for tampered in every_change(small.leaves):
        now = roots(tampered.leaves)
        same = [at < len(now) and now[at] == genuine[at] for at in range(size + 1)]
        assert same == [at <= tampered.at for at in range(size + 1)]


@lru_cache
def _every_head(size: int) -> SignedLog:
    return build_log([leaf(number) for number in range(size)], range(1, size + 1))


@pytest.mark.parametrize("size", [*range(1, 18), 31, 32, 33])
def test_every_change_of_a_small_log_contradicts_exactly_the_heads_that_cover_it(size: int) -> None:
    require_found(size)


@pytest.mark.parametrize("size", range(1, 10))
def test_every_change_of_a_small_log_is_found_in_its_export(size: int) -> None:
    small, chance, styles = _every_head(size), random.Random(size), itertools.cycle(STYLES)
    for tampered in every_change(small.leaves):
        if tampered.at < size:
            exported = export(small, tampered, next(styles))
            assert "the given head" in findings(exported, covering(small, tampered, chance))


@pytest.mark.parametrize("size", [2, 5, 8, 13])
def test_no_proof_connects_an_old_head_with_a_log_that_was_changed_under_it(size: int) -> None:
    small = _every_head(size)
    genuine = roots(small.leaves)
    for tampered in every_change(small.leaves):
        inputs, now = [leaf.encode() for leaf in tampered.leaves], len(tampered.leaves)
        root = rfc6962.mth(inputs)
        for first in range(1, min(size, now) + 1):
            proven = verify_consistency(first, now, rfc6962.proof(first, inputs), genuine[first], root)
            assert proven == (first <= tampered.at)


@pytest.mark.parametrize("size", [2, 5, 8, 13])
def test_no_proof_of_the_changed_log_leads_to_an_old_head(size: int) -> None:
    small = _every_head(size)
    genuine = roots(small.leaves)
    for tampered in every_change(small.leaves):
        inputs = [leaf.encode() for leaf in tampered.leaves]
        for index in range(tampered.at, min(size, len(inputs))):
            path = rfc6962.path(index, inputs)
            assert not verify_inclusion(leaf_hash(inputs[index]), index, size, path, genuine[size])


# Larger runs


@pytest.mark.drill
@campaign("P5", "changed logs")
@pytest.mark.parametrize("size", range(1, 65))
def test_every_change_of_any_log_of_up_to_64_entries_contradicts_the_heads_that_cover_it(
    size: int, figure: Figure
) -> None:
    require_found(size)
    figure("logs searched whole", 1)


@pytest.mark.drill
@campaign("P5", "changed logs")
@pytest.mark.parametrize("size", [16, 33, 64])
def test_every_change_of_a_log_is_found_in_its_export_under_every_style(size: int, figure: Figure) -> None:
    small, chance = _every_head(size), random.Random(size)
    for tampered in itertools.islice(every_change(small.leaves), 0, None, 1 if size < 64 else 4):
        if tampered.at < size:
            style = chance.choice([*STYLES])
            assert "the given head" in findings(export(small, tampered, style), covering(small, tampered, chance))
            figure("changes found", 1)


@pytest.mark.drill
@campaign("P5", "changed logs")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_change_at_each_of_ten_thousand_places_contradicts_an_old_head(
    attack: str, log: SignedLog, trees: list[Tree], figure: Figure
) -> None:
    chance = random.Random(f"{attack} everywhere")
    for at in range(0, COUNT, 50 if attack in ("fork", "rewrite") else 1):
        tampered = ATTACKS[attack](log.leaves, at, chance)
        nearest = next(size for size in log.heads if size > tampered.at)
        assert contradicts(log.heads[nearest], tampered, trees), (attack, at)
        figure("changes found", 1)
        if at % 50 == 0:
            assert contradicts(covering(log, tampered, chance), tampered, trees), (attack, at)
