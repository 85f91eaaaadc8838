"""A full cache drops the entry that was not used for the longest time."""

from qwed.model.lru_cache import LruCache


def test_setting_one_entry_too_many_drops_the_oldest() -> None:
    cache = LruCache(2, [("a", 1), ("b", 2), ("c", 3)])
    assert list(cache.items()) == [("b", 2), ("c", 3)]


def test_use_and_setting_count_as_use_and_get_does_not() -> None:
    cache = LruCache(3, [("a", 1), ("b", 2), ("c", 3)])
    cache["a"] = 10
    assert (cache.use("b"), cache.get("c"), cache.use("x")) == (2, 3, None)
    cache["d"] = 4
    assert list(cache) == ["a", "b", "d"]


def test_setdefault_and_update_are_bounded_too() -> None:
    cache: LruCache[str, int] = LruCache(1)
    assert (cache.setdefault("a", 1), cache.setdefault("a", 2), cache.setdefault("b", 3)) == (1, 1, 3)
    cache.update({"c": 4, "d": 5})
    assert dict(cache) == {"d": 5}
