"""Random bytes are handed out once: to one thread, and to one process."""

import os
import threading

from qwed.model.ids import random_bytes

THREADS, EACH = 8, 5_000


def test_no_two_threads_are_given_the_same() -> None:
    given: list[list[bytes]] = [[] for _ in range(THREADS)]
    together = threading.Barrier(THREADS)

    def take(mine: list[bytes]) -> None:
        together.wait()
        mine.extend(random_bytes() for _ in range(EACH))

    threads = [threading.Thread(target=take, args=(mine,)) for mine in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    every = [each for mine in given for each in mine]
    assert {len(each) for each in every} == {16}
    assert len(set(every)) == len(every) == THREADS * EACH


def test_a_child_is_given_nothing_that_its_parent_has_left() -> None:
    random_bytes()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, b"".join(random_bytes() for _ in range(300)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    of_child = {said[at : at + 16] for at in range(0, len(said), 16)}
    assert len(of_child) == 300
    assert of_child.isdisjoint(random_bytes() for _ in range(300))
