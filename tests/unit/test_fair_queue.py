"""An owner that was served goes to the end of the queue."""

from hypothesis import given
from hypothesis import strategies as st

from qwed.fair_queue import FairQueue


def pop_all(queue: FairQueue[int]) -> list[int]:
    items = []
    while queue.owners:
        items.append(queue.pop(next(iter(queue.owners))))
    return items


def test_each_has_a_turn_and_the_items_of_one_stay_in_order() -> None:
    queue: FairQueue[int] = FairQueue()
    for owner, item in (("a", 1), ("a", 2), ("a", 3), ("b", 4), ("c", 5), ("b", 6)):
        queue.put(owner, item)
    assert pop_all(queue) == [1, 4, 5, 2, 6, 3]


def test_an_item_requeued_first_comes_first() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.put("a", 1)
    queue.put("b", 2)
    popped = queue.pop("a")
    queue.requeue_first("a", popped)
    assert pop_all(queue) == [1, 2]


def test_requeued_items_come_first_of_their_owner_and_keep_the_order_of_owners() -> None:
    queue: FairQueue[int] = FairQueue()
    for owner, item in (("a", 1), ("a", 2), ("a", 3), ("b", 4)):
        queue.put(owner, item)
    popped = [queue.pop("a"), queue.pop("a")]
    queue.requeue("a", popped)
    assert pop_all(queue) == [4, 1, 2, 3]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers())))
def test_no_owner_waits_longer_than_one_round(items: list[tuple[str, int]]) -> None:
    queue: FairQueue[tuple[str, int]] = FairQueue()
    for number, (owner, _) in enumerate(items):
        queue.put(owner, (owner, number))
    assert len(queue) == len(items)
    order = []
    while queue.owners:
        order.append(queue.pop(next(iter(queue.owners))))
    assert sorted(order) == sorted((owner, number) for number, (owner, _) in enumerate(items))
    for position, (owner, _) in enumerate(order):
        others = {other for other, _ in order[position + 1 :] if other != owner}
        following = [later for later, _ in order[position + 1 :]]
        if owner in following:
            assert others >= set(following[: following.index(owner)])
            assert len(set(following[: following.index(owner)])) == following.index(owner)


def test_a_removed_item_leaves_no_owner_waiting() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.put("a", 1)
    queue.remove("a", 1)
    assert (list(queue), list(queue.owners), queue.count("a")) == ([], [], 0)
