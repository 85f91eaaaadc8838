"""Entry point of `python -m qwed.cli`."""

import sys

from qwed.cli import main

sys.exit(main())
