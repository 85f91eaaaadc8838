"""`qwed` with small socket buffers: a client that does not read is noticed after kilobytes."""

import sys

from qwed.cli import main
from tests.support.listening import replace_bind

_BYTES = 4096

if __name__ == "__main__":
    replace_bind(_BYTES)
    sys.exit(main(sys.argv[1:]))
