"""Sessions of the protocol over HTTP: who has how many, and which one goes."""

from qwed_mcp.sessions import MAX_CALLERS, Sessions


def test_the_session_that_was_not_used_for_longest_goes_first() -> None:
    sessions = Sessions(most=2)
    sessions.opened("me", "a")
    assert sessions.too_many("me") is None
    sessions.opened("me", "b")
    assert sessions.too_many("me") == "a"
    with sessions.used("me", "a"):
        pass
    assert sessions.too_many("me") == "b"
    assert sessions.too_many("you") is None


def test_a_session_that_somebody_waits_on_stays_as_long_as_there_is_another() -> None:
    sessions = Sessions(most=2)
    sessions.opened("me", "a")
    sessions.opened("me", "b")
    with sessions.used("me", "b"), sessions.used("me", "a"):
        assert sessions.too_many("me") == "b"
        sessions.ended("me", "b")
        sessions.opened("me", "c")
        assert sessions.too_many("me") == "c"


def test_a_session_of_another_caller_is_neither_used_nor_ended() -> None:
    sessions = Sessions(most=1)
    sessions.opened("me", "a")
    with sessions.used("you", "a"):
        sessions.ended("you", "a")
    assert sessions.too_many("me") == "a"
    sessions.ended("me", "a")
    assert sessions.too_many("me") is None


def test_callers_are_not_remembered_without_end() -> None:
    sessions = Sessions(most=1)
    for number in range(MAX_CALLERS + 1):
        sessions.opened(str(number), "a")
    assert sessions.too_many("0") is None
    assert sessions.too_many(str(MAX_CALLERS)) == "a"
