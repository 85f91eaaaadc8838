"""Whom the clients of the tests trust: reading every authority there is takes longer than most tests do."""

import atexit
import os
import tempfile
from pathlib import Path

import certifi

_VARIABLE = "SSL_CERT_FILE"
_NAMED = "qwed-authority-"
_END = "-----END CERTIFICATE-----\n"


def trust_one() -> None:
    """One authority instead of all: every client reads them anew, and no test leaves this machine."""
    if _NAMED in os.environ.get(_VARIABLE, ""):
        # Whoever started this process has written it, and takes it away.
        return
    first = Path(certifi.where()).read_text().partition(_END)[0] + _END
    file, name = tempfile.mkstemp(prefix=_NAMED, suffix=".pem")
    with os.fdopen(file, "w") as written:
        written.write(first)
    atexit.register(os.unlink, name)
    os.environ[_VARIABLE] = name
