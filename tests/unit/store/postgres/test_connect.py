"""Database URLs are parsed, and invalid ones are refused without showing the password."""

import pytest

from qwed.store.postgres.connect import DatabaseUnreachableError, open_connection, parse_url
from qwed.store.postgres.connections import Connector
from qwed.store.postgres.health import health_of

TORN = {
    "in the host": "postgresql://qwed:a@SECRET@127.0.0.1:9/qwed",
    "in the second host": "postgresql://qwed:a@b,SECRET@127.0.0.1:9/qwed",
    "in an abstract socket": "postgresql://qwed:a@@SECRET@127.0.0.1:9/qwed",
    "in the port": "postgresql://qwed:a@b:SECRET@127.0.0.1:9/qwed",
    "in the name": "postgresql://qwed:a@b/SECRET@127.0.0.1:9/qwed",
    "in the name, by a slash": "postgresql://qwed:SECRET/a@127.0.0.1:9/qwed",
    "a bracket": "postgresql://qwed:a@[SECRET@127.0.0.1:9/qwed",
}


@pytest.mark.parametrize("where", TORN)
@pytest.mark.parametrize("look", [open_connection, health_of, Connector])
def test_a_password_that_is_not_encoded_is_not_repeated(look: object, where: str) -> None:
    assert callable(look)
    with pytest.raises(
        DatabaseUnreachableError, match=r"the database URL is invalid: .* %40 for an @ and %2F"
    ) as refused:
        look(TORN[where])
    assert "SECRET" not in str(refused.value)
    assert refused.value.__cause__ is None


WHOLE = {
    "postgresql://qwed:a%40b%2Fc@db.example:5433/qwed": ("db.example", "a@b/c"),
    "postgresql://user%40server:pw@db.example/qwed": ("db.example", "pw"),
    "postgresql://qwed@/qwed?host=/run/a@b": ("/run/a@b", None),
    "postgresql://qwed@%2Frun%2Fa%40b/qwed": ("/run/a@b", None),
    "postgresql://qwed@%40name/qwed": ("@name", None),
    "host=/run/a@b,@name,db.example dbname=qwed password=a@b": ("/run/a@b,@name,db.example", "a@b"),
}


@pytest.mark.parametrize("url", WHOLE)
def test_an_address_that_is_whole_is_taken_as_it_is(url: str) -> None:
    options = parse_url(url)
    assert (options["host"], options.get("password"), options["dbname"]) == (*WHOLE[url], "qwed")
