"""Fixtures for tests of task programs: points where processes wait for each other.

Both hold only a path, so they can be arguments of tasks. No test needs to sleep.
"""

from alongside.testing.gate import Gate
from alongside.testing.mailbox import Mailbox

__all__ = ["Gate", "Mailbox"]
