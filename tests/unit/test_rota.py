"""Whoever was served stands behind everybody else, whatever waits."""

from hypothesis import given
from hypothesis import strategies as st

from qwed.rota import Rota


def served(rota: Rota[int]) -> list[int]:
    found = []
    while rota.waiting:
        found.append(rota.serve(next(iter(rota.waiting))))
    return found


def test_each_has_a_turn_and_the_items_of_one_stay_in_order() -> None:
    rota: Rota[int] = Rota()
    for who, item in (("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)):
        rota.put(who, item)
    assert served(rota) == [1, 4, 5, 2, 6, 3]


def test_what_is_put_back_comes_first() -> None:
    rota: Rota[int] = Rota()
    rota.put("a", 1)
    rota.put("b", 2)
    taken = rota.serve("a")
    rota.put_back("a", taken)
    assert served(rota) == [1, 2]


def test_what_is_given_back_comes_before_the_others_of_its_own_and_takes_no_turn_of_another() -> None:
    rota: Rota[int] = Rota()
    for who, item in (("a", 1), ("a", 2), ("a", 3), ("b", 4)):
        rota.put(who, item)
    taken = [rota.serve("a"), rota.serve("a")]
    rota.give_back("a", taken)
    assert served(rota) == [4, 1, 2, 3]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers())))
def test_nobody_waits_longer_than_a_round(items: list[tuple[str, int]]) -> None:
    rota: Rota[tuple[str, int]] = Rota()
    for number, (who, _) in enumerate(items):
        rota.put(who, (who, number))
    assert len(rota) == len(items)
    order = []
    while rota.waiting:
        order.append(rota.serve(next(iter(rota.waiting))))
    assert sorted(order) == sorted((who, number) for number, (who, _) in enumerate(items))
    for place, (who, _) in enumerate(order):
        others = {other for other, _ in order[place + 1 :] if other != who}
        following = [later for later, _ in order[place + 1 :]]
        if who in following:
            assert others >= set(following[: following.index(who)])
            assert len(set(following[: following.index(who)])) == following.index(who)


def test_what_is_taken_out_leaves_nobody_waiting() -> None:
    rota: Rota[int] = Rota()
    rota.put("a", 1)
    rota.remove("a", 1)
    assert (list(rota), list(rota.waiting), rota.count("a")) == ([], [], 0)
