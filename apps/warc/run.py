"""The command: crawls an archive, runs the program lazily and eagerly, checks what it found."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from apps.common import command, release, release_command

from . import app, crawl, pages, plain

QUICK_PAGES = 200
ALL = 1_000_000
"""More pages than any archive here has."""


class Warc:
    """The application: so many pages of an archive."""

    name = "warc"
    consumers: Collection[str] = ("term_frequencies", "document_terms")
    final: Collection[str] = ("total", "weigh")

    def __init__(self, archive: crawl.Archive, most: int | None = None) -> None:
        self.archive = archive
        self.folder = archive.path.parent
        self.job = app.Job(archive.path, min(most or archive.pages, archive.pages))

    @cached_property
    def expected(self) -> app.Answer:
        """What the plain program finds."""
        return plain.run(self.job)

    def about(self) -> str:
        """Return what is computed."""
        archive = self.archive
        return (
            f"{self.job.pages:,} of the {archive.pages:,} pages in {archive.path.name} "
            f"({archive.path.stat().st_size / 1e6:.1f} MB, {archive.html_bytes / 1e6:.1f} MB of "
            "HTML): term frequencies and TF-IDF"
        )

    def run(self, way: str) -> release.Ran:
        """Run the program."""
        return app.run(self.job, way)

    def plain(self) -> app.Answer:
        """Return what the plain program finds."""
        return self.expected

    def fingerprint(self, answer: Any) -> str:
        """Return a hash of an answer."""
        listed = (answer.pages, sorted(answer.documents.items()))
        return hashlib.sha256(repr(listed).encode()).hexdigest()

    def check(self, answer: Any) -> str:
        """Compare an answer with the plain program's, exactly; empty: equal."""
        if len(answer.pages) != len(self.expected.pages):
            return f"{len(answer.pages)} pages, not {len(self.expected.pages)}"
        for ours, theirs in zip(answer.pages, self.expected.pages, strict=True):
            if ours != theirs:
                return f"the terms of {theirs.address}"
        return "" if answer.documents == self.expected.documents else "in how many pages a term is"

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write the terms of each page as text."""
        path = out / "terms.tsv"
        with path.open("w", encoding="utf-8") as file:
            for page in answer.pages:
                weights = "\t".join(f"{term} {weight:.4f}" for term, weight in page.terms)
                file.write(f"{page.address}\t{weights}\n")
        return [path]


def find_archive(
    cache: Path, folder: Path | None, most: int | None, *, compressed: bool
) -> crawl.Archive:
    """Return an archive of a folder's pages, or of the Debian packages', which is kept in `cache`.

    Raises PagesMissingError where there is no page.
    """
    suffix = "warc.gz" if compressed else "warc"
    if folder is None:
        source, name = pages.find(cache), f"debian-{most or 'all'}.{suffix}"
        archive = crawl.find(source, cache / "archives" / name, most or ALL, compressed=compressed)
    else:
        path = cache / "archives" / f"own.{suffix}"
        archive = crawl.write(folder, path, most or ALL, compressed=compressed)
    if not archive.pages:
        raise pages.PagesMissingError(f"no page of HTML was found in {folder or 'the packages'}")
    return archive


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m apps.warc",
        description="Crawl web pages into a WARC archive and find the terms that tell most about "
        "each, while the archive is read (eager) and when it has been read (lazy).",
    )
    release_command.add_common(parser, "warc")
    add = parser.add_argument
    add("--most", type=command.positive, metavar="N",
        help=f"crawl at most N pages (--quick: {QUICK_PAGES})")  # fmt: skip
    add("--pages", type=command.folder, metavar="FOLDER",
        help="crawl the HTML files of this folder; default: Debian's documentation packages "
        + ", ".join(pages.PACKAGES))  # fmt: skip
    add("--compressed", action="store_true", help="an archive that is compressed page by page")
    add("--cache", type=command.folder, default=pages.cache_folder(), metavar="FOLDER",
        help="where packages and archives are kept; default %(default)s")  # fmt: skip
    options = parser.parse_args(arguments)
    options.most = options.most or (QUICK_PAGES if options.quick else None)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if an answer differs, 2 if there are no pages."""
    options = parse(arguments)
    try:
        archive = find_archive(
            options.cache, options.pages, options.most, compressed=options.compressed
        )
    except pages.PagesMissingError as error:
        print(f"warc: {error}", file=sys.stderr)
        return 2
    return release_command.main(Warc(archive), options)
