"""Process that hammers a cache: `python -m tests.property.cache_hammer <directory> <seed> <lookups>`.

Each value names the query it was stored for, so that an answer for another query or context is detected. It prints a
line when it starts, and its counts as JSON when it ends.
"""

import itertools
import json
import random
import sys
from typing import NamedTuple

from qwed_sdk.cache import CacheContext, VerificationCache

CONTEXTS = [
    CacheContext(*parts)
    for parts in itertools.product(("a", "ab"), ("b", "bc"), ("v1",), (None, "None", "null"), (None, "v1"))
]
"""Contexts that would be equal if their fields were concatenated, or if None were a text."""
SPELLINGS = [
    ["What is {n}+2?", "WHAT IS  {n}+2?", " what is {n}+2? "],
    ["x = x + {n}", "x  =  x + {n}"],
    ["X = x + {n}"],
    ["SELECT 'A' FROM t{n}", "select  'A' from t{n}"],
    ["SELECT 'a' FROM t{n}"],
    ["SELECT * FROM Users LIMIT {n}", "select * from Users\n limit {n}"],
    ["SELECT * FROM users LIMIT {n}"],
    ["if x:\n  f({n})\nelse: g"],
    ["if x:\n  f({n})\n  else: g"],
    ["print('{n}  a')"],
    ["print('{n} a')"],
]
BEGUN = "begun"
FIRST = 300


class CacheQuery(NamedTuple):
    """Query, its meaning and its context."""

    query: str
    meaning: str
    context: CacheContext

    @property
    def value(self) -> dict[str, str]:
        return {"meaning": self.meaning, "context": self.context.text}


def draw_query(chance: random.Random) -> CacheQuery:
    """Draw a query; some are frequent and some rare, so that entries are found and evicted."""
    number = int(7 * chance.random() ** 2)
    meaning = int(len(SPELLINGS) * chance.random())
    context = CONTEXTS[int(len(CONTEXTS) * chance.random() ** 2)]
    return CacheQuery(chance.choice(SPELLINGS[meaning]).format(n=number), f"{meaning} {number}", context)


def hammer(directory: str, seed: int, lookups: int) -> dict[str, int]:
    """Look up queries, and set the missing ones."""
    chance = random.Random(seed)
    tally = {"lookups": 0, "hits": 0, "crossed": 0}
    with VerificationCache(directory) as cache:
        for number in range(lookups):
            one = draw_query(chance)
            value = cache.get(one.query, one.context)
            tally["lookups"] += 1
            tally["hits"] += value is not None
            tally["crossed"] += value is not None and value != one.value
            if value is None:
                cache.set(one.query, one.value, one.context)
            if number == FIRST:
                print(BEGUN, flush=True)
    return tally


if __name__ == "__main__":
    print(json.dumps(hammer(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))), flush=True)
