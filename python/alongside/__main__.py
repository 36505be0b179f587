"""`python -m alongside`: the same as the command `alongside`."""

import sys

from alongside.cli import main

if __name__ == "__main__":
    sys.exit(main())
