"""`qwed` without the root capability to write where file modes forbid it."""

import ctypes
import os
import sys

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2


def main() -> None:
    """Drop the capability, and run the command."""
    libc = ctypes.CDLL(None)
    for power in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        # A process that may not drop the capability never had it.
        libc.prctl(_PR_CAPBSET_DROP, power, 0, 0, 0)
    os.execv(sys.executable, [sys.executable, "-m", "qwed.cli", *sys.argv[1:]])


if __name__ == "__main__":
    main()
