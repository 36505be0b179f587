"""Lets `python -m apps.hmmer` run the application."""

import sys

from .run import main

if __name__ == "__main__":
    sys.exit(main())
