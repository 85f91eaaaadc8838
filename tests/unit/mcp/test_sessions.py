"""Registry of HTTP sessions: limits per caller, and the session to evict."""

from qwed_mcp.sessions import MAX_CALLERS, Sessions


def test_the_session_that_was_not_used_for_longest_goes_first() -> None:
    sessions = Sessions(max_per_caller=2)
    sessions.add("me", "a")
    assert sessions.session_to_evict("me") is None
    sessions.add("me", "b")
    assert sessions.session_to_evict("me") == "a"
    with sessions.in_use("me", "a"):
        pass
    assert sessions.session_to_evict("me") == "b"
    assert sessions.session_to_evict("you") is None


def test_a_session_that_somebody_waits_on_stays_as_long_as_there_is_another() -> None:
    sessions = Sessions(max_per_caller=2)
    sessions.add("me", "a")
    sessions.add("me", "b")
    with sessions.in_use("me", "b"), sessions.in_use("me", "a"):
        assert sessions.session_to_evict("me") == "b"
        sessions.remove("me", "b")
        sessions.add("me", "c")
        assert sessions.session_to_evict("me") == "c"


def test_a_session_of_another_caller_is_neither_used_nor_ended() -> None:
    sessions = Sessions(max_per_caller=1)
    sessions.add("me", "a")
    with sessions.in_use("you", "a"):
        sessions.remove("you", "a")
    assert sessions.session_to_evict("me") == "a"
    sessions.remove("me", "a")
    assert sessions.session_to_evict("me") is None


def test_callers_are_not_remembered_without_end() -> None:
    sessions = Sessions(max_per_caller=1)
    for number in range(MAX_CALLERS + 1):
        sessions.add(str(number), "a")
    assert sessions.session_to_evict("0") is None
    assert sessions.session_to_evict(str(MAX_CALLERS)) == "a"
