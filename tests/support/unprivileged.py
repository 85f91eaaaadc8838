"""`qwed` without the power to write where file modes forbid it, which a process of the superuser otherwise has."""

import ctypes
import os
import sys

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def main() -> None:
    """Give the power up, and become the command."""
    libc = ctypes.CDLL(None)
    for power in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        # Whoever may not give it up never had it.
        libc.prctl(_PR_CAPBSET_DROP, power, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, "-m", "qwed.cli", *sys.argv[1:]])


if __name__ == "__main__":
    main()
