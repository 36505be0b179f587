"""What a task costs: Alongside beside the pools and runtimes from PyPI, in one run."""
