"""UCPVerifier against an oracle in integer minor units; every change by one unit is refused."""

import copy
import json
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from qwed.packs.result import CheckStatus
from qwed_ucp import UCPVerifier
from tests.support.campaign_table import Figure, campaign

FEW, ALL = 60, 10_000
DECIMALS = {"USD": 2, "EUR": 2, "GBP": 2, "JPY": 0, "KRW": 0, "KWD": 3, "TND": 3, "CLF": 4}
verifier = UCPVerifier()
Path = tuple[str | int, ...]


def text(units: int, decimals: int) -> str:
    digits = str(abs(units)).rjust(decimals + 1, "0")
    cut = len(digits) - decimals
    return ("-" if units < 0 else "") + digits[:cut] + (f".{digits[cut:]}" if decimals else "")


def written(units: int, decimals: int, random: Random) -> Any:
    plain = text(units, decimals)
    return random.choice([plain, float(plain) if units < 10**12 else plain, int(plain) if not decimals else plain])


def simple(random: Random) -> tuple[dict[str, Any], list[Path]]:
    """Return a valid checkout in major units, and the paths of its amounts."""
    currency = random.choice(list(DECIMALS))
    decimals = DECIMALS[currency]
    lines = [
        (random.randint(1, 20), random.randint(1, 10 ** random.choice([2, 4, 7]))) for _ in range(random.randint(1, 8))
    ]
    subtotal = sum(many * price for many, price in lines)
    rows = [("subtotal", subtotal), ("tax", random.randint(0, 9999)), ("fulfillment", random.randint(0, 2000))]
    rows += [("fee", random.randint(0, 500))] if random.random() < 0.5 else []
    rows += [("discount", random.randint(1, subtotal))] if random.random() < 0.5 else []
    total = sum(-amount if type_ == "discount" else amount for type_, amount in rows)
    rows.append(("total", total))
    members = {
        "currency": currency,
        "status": random.choice(["incomplete", "ready_for_complete", "completed", "failed", "cancelled"]),
        "line_items": [
            {"id": f"line {at}", "quantity": many, "price": written(price, decimals, random)}
            for at, (many, price) in enumerate(lines)
        ],
        "totals": [{"type": type_, "amount": written(amount, decimals, random)} for type_, amount in rows],
    }
    paths: list[Path] = [("line_items", at, "price") for at in range(len(lines))]
    paths += [("line_items", at, "quantity") for at in range(len(lines))]
    paths += [("totals", at, "amount") for at in range(len(rows))]
    return members, paths


def enveloped(random: Random) -> tuple[dict[str, Any], list[Path]]:
    """Return a valid UCP checkout in minor units, and the paths of its amounts."""
    lines: list[dict[str, Any]] = []
    allocations: list[dict[str, Any]] = []
    for at in range(random.randint(1, 6)):
        many, price = random.randint(1, 9), random.randint(2, 10**5)
        off = random.randint(1, many * price) if random.random() < 0.5 else 0
        if off:
            allocations.append({"path": f"$.line_items[{at}]", "amount": off})
        totals = [{"type": "subtotal", "amount": many * price}]
        totals += [{"type": "items_discount", "amount": -off}] if off else []
        totals.append({"type": "total", "amount": many * price - off})
        item = {"id": f"sku {at}", "title": "thing", "price": price}
        lines.append({"id": f"li_{at}", "item": item, "quantity": many, "totals": totals})
    subtotal = sum(each["item"]["price"] * each["quantity"] for each in lines)
    delivery = random.randint(0, 2000)
    rows: list[dict[str, Any]] = [{"type": "subtotal", "amount": subtotal}]
    taken = sum(int(each["amount"]) for each in allocations)
    rows += [{"type": "items_discount", "amount": -taken}] if taken else []
    rows += [{"type": "fulfillment", "amount": delivery}, {"type": "tax", "amount": random.randint(0, 999)}]
    rows.append({"type": "total", "amount": sum(each["amount"] for each in rows)})
    ids = [each["id"] for each in lines]
    option = {"id": "o", "title": "Standard", "totals": [{"type": "total", "amount": delivery}]}
    group = {"id": "g", "line_item_ids": ids, "options": [option], "selected_option_id": "o"}
    members: dict[str, Any] = {
        "ucp": {"version": "2026-04-08"},
        "id": "checkout",
        "status": "ready_for_complete",
        "currency": random.choice(list(DECIMALS)),
        "links": [],
        "line_items": lines,
        "fulfillment": {"methods": [{"id": "m", "type": "shipping", "line_item_ids": ids, "groups": [group]}]},
        "totals": rows,
    }
    paths: list[Path] = [("totals", at, "amount") for at in range(len(rows))]
    paths += [("line_items", at, "item", "price") for at in range(len(lines))]
    paths += [("line_items", at, "quantity") for at in range(len(lines))]
    paths += [
        ("line_items", at, "totals", row, "amount")
        for at in range(len(lines))
        for row in range(len(lines[at]["totals"]))
    ]
    paths.append(("fulfillment", "methods", 0, "groups", 0, "options", 0, "totals", 0, "amount"))
    if taken:
        applied = {"title": "sale", "amount": taken, "allocations": allocations}
        members["discounts"] = {"applied": [applied]}
        paths.append(("discounts", "applied", 0, "amount"))
        paths += [("discounts", "applied", 0, "allocations", at, "amount") for at in range(len(allocations))]
    return members, paths


def changed(members: dict[str, Any], path: Path, by: int, decimals: int) -> dict[str, Any]:
    """Return the checkout with one number changed by units of its last decimal."""
    found = copy.deepcopy(members)
    inner: Any = found
    for step in path[:-1]:
        inner = inner[step]
    last = path[-1]
    if last == "quantity" or decimals == 0:
        inner[last] = int(inner[last]) + by
    else:
        whole, _, rest = str(inner[last]).partition(".")
        units = int(whole + rest.ljust(decimals, "0")) + by
        inner[last] = text(units, decimals)
    return found


def mutations(members: dict[str, Any], paths: list[Path], decimals: int, random: Random) -> Iterator[dict[str, Any]]:
    for path in random.sample(paths, min(3, len(paths))):
        yield changed(members, path, random.choice([1, -1]), decimals)
    yield changed(members, random.choice(paths), random.choice([10, 100, 999]), decimals)


MADE = {"simple": simple, "enveloped": enveloped}


def compare(form: str, seed: int, count: int) -> int:
    random = Random(seed)
    refused = 0
    for _ in range(count):
        members, paths = MADE[form](random)
        decimals = DECIMALS[members["currency"]] if form == "simple" else 0
        given = json.dumps(members) if random.random() < 0.5 else members
        right = verifier.verify_checkout(given)
        assert right.status is CheckStatus.VERIFIED, (members, right.error)
        for wrong in mutations(members, paths, decimals, random):
            found = verifier.verify_checkout(wrong)
            assert found.status is CheckStatus.FAILED, (wrong, found)
            refused += 1
    return refused


@pytest.mark.parametrize("form", MADE)
def test_a_checkout_that_adds_up_is_verified_and_one_unit_anywhere_is_refused(form: str) -> None:
    assert compare(form, 1, FEW) == FEW * 4


@pytest.mark.drill
@campaign("packs", "checkouts against an oracle in minor units")
@pytest.mark.parametrize("form", MADE)
def test_ten_thousand_checkouts_are_judged_as_the_oracle_judges_them(form: str, figure: Figure) -> None:
    figure("refused", compare(form, 100, ALL))
    figure("verified", ALL)
