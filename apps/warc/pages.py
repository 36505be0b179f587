"""Gets real web pages: the HTML documentation of Debian packages, unpacked into a cache folder.

Packages are fetched with `apt-get download`, which installs nothing and needs no rights, and
unpacked with `dpkg-deb`. What is in the cache is not fetched again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

PACKAGES = ("apache2-doc", "python-django-doc", "sqlite3-doc", "debian-policy")
"""About 2,300 pages, 74 MB: manuals in many languages, generated indexes, hand-written pages."""

FETCH_S_MAX = 300
UNPACK_S_MAX = 120


class PagesMissingError(Exception):
    """There are no pages to crawl; the text says what to do."""


def cache_folder() -> Path:
    """Return where pages and archives are kept, outside of the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "alongside" / "warc"


def find(cache: Path, packages: Sequence[str] = PACKAGES) -> Path:
    """Return the folder of the unpacked packages, after fetching those that are not there.

    Raises PagesMissingError where a package cannot be had.
    """
    folder = cache / "pages"
    for package in packages:
        if not (folder / package).is_dir():
            unpack(_fetch(package, cache), folder / package)
    return folder


def _fetch(package: str, cache: Path) -> Path:
    """Fetch a package into the cache; where its file is."""
    cache.mkdir(parents=True, exist_ok=True)
    _do(("apt-get", "download", "--quiet", package), cache, FETCH_S_MAX, package)
    return max(cache.glob(f"{package}_*.deb"), key=lambda path: path.stat().st_mtime)


def unpack(file: Path, folder: Path) -> None:
    """Unpack a package, whole or not at all, and remove its file."""
    package = file.name.partition("_")[0]
    temporary = folder.with_name(f"{folder.name}.{os.getpid()}")
    temporary.mkdir(parents=True)
    try:
        command = ("dpkg-deb", "--extract", str(file), str(temporary))
        _do(command, file.parent, UNPACK_S_MAX, package)
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    file.unlink()


def _do(command: Sequence[str], where: Path, seconds: float, package: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=where, capture_output=True, text=True, timeout=seconds, check=False
        )
    except FileNotFoundError:
        reason = f"there is no {command[0]!r} on this machine"
    except subprocess.TimeoutExpired:
        reason = f"{command[0]!r} took longer than {seconds:g} s"
    else:
        if done.returncode == 0:
            return
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    raise PagesMissingError(
        f"the pages of the Debian package {package!r} cannot be had: {reason}. On Debian run "
        f'"apt-get update" first; elsewhere name a folder of HTML files with --pages FOLDER'
    )
