"""``python -m lrn``: the same as ``lrn``."""

import sys

from lrn.cli import main

if __name__ == "__main__":
    sys.exit(main())
