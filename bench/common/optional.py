"""Packages that a contender needs and this machine may not have."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

NOT_INSTALLED = "not installed"


def installed(package: str) -> bool:
    """Whether `package` can be imported here; nothing is imported."""
    return find_spec(package) is not None


def load(package: str) -> Any:
    """The module `package`, untyped: peers are optional, so nothing is known of them statically."""
    return importlib.import_module(package)
