"""Trust store of the test clients: loading every certificate authority takes longer than most tests."""

import atexit
import os
import tempfile
from pathlib import Path

import certifi

_VARIABLE = "SSL_CERT_FILE"
_NAMED = "qwed-authority-"
_END = "-----END CERTIFICATE-----\n"


def trust_one_authority() -> None:
    """Trust one authority: every client loads the store again, and no test leaves this machine."""
    if _NAMED in os.environ.get(_VARIABLE, ""):
        # The parent process has written the file, and removes it.
        return
    first = Path(certifi.where()).read_text().partition(_END)[0] + _END
    file, name = tempfile.mkstemp(prefix=_NAMED, suffix=".pem")
    with os.fdopen(file, "w") as written:
        written.write(first)
    atexit.register(os.unlink, name)
    os.environ[_VARIABLE] = name
