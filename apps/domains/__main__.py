"""Lets `python -m apps.domains` run the application."""

import sys

from apps.common import start

if __name__ == "__main__":
    start.keep_to_one_processor()
    from .run import main

    sys.exit(main())
