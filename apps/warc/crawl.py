"""Crawls pages from a server on the loopback interface into a WARC file.

Breadth first from the listing of the folder, links in the order of the page. What is not HTML is
not followed, and a page that is there under several addresses is taken once. Pages are as they are
served: their sizes are those of the files.
"""

from __future__ import annotations

import hashlib
import http.client
import http.server
import io
import json
import os
import re
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

_LINK = re.compile(rb"""<a\s[^>]*?href\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
ANSWER_S_MAX = 60


class Archive(NamedTuple):
    """A WARC file, how many pages it holds, and how many bytes of HTML these are."""

    path: Path
    pages: int
    html_bytes: int


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; says nothing, and keeps connections open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the body of every answer waits 40 ms for its head

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def translate_path(self, path: str) -> str:
        """Return the file of a request; one that is not there for links out of the folder."""
        file = super().translate_path(path)
        root = os.path.realpath(self.directory)
        inside = os.path.commonpath([root, os.path.realpath(file)]) == root
        return file if inside else os.path.join(root, "outside")


class _Server(http.server.ThreadingHTTPServer):
    """Ends without waiting for connections that are still open."""

    daemon_threads = True
    block_on_close = False


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on a free port of the loopback interface; the address of its root."""

    def handler(*args: Any) -> _Handler:
        return _Handler(*args, directory=str(folder))

    with _Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


class Answer(NamedTuple):
    """What the server said."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def is_page(self) -> bool:
        """Whether it is a page of HTML."""
        kind = dict(self.headers).get("Content-type", "")
        return self.status == http.client.OK and kind.startswith("text/html")


def links(address: str, body: bytes) -> Iterator[str]:
    """Yield the addresses on the same server that a page links to, without fragments."""
    here = urlsplit(address)
    for match in _LINK.finditer(body):
        try:
            target = urldefrag(urljoin(address, match[1].decode("utf-8", "replace"))).url
            there = urlsplit(target)
        except ValueError:
            continue  # what stands there is no address
        if (there.scheme, there.netloc) == (here.scheme, here.netloc) and not there.query:
            yield target


def crawl(root: str, most: int) -> Iterator[tuple[str, Answer]]:
    """Yield at most so many pages below an address, and their addresses. Listings do not count."""
    connection = http.client.HTTPConnection(urlsplit(root).netloc, timeout=ANSWER_S_MAX)
    waiting, known = deque([root]), {unquote(root)}
    bodies: set[bytes] = set()
    try:
        while waiting and len(bodies) < most:
            address = waiting.popleft()
            answer = _get(connection, address)
            if not answer.is_page:
                continue
            if not address.endswith("/"):
                digest = hashlib.sha256(answer.body).digest()
                if digest in bodies:
                    continue
                bodies.add(digest)
                yield address, answer
            for link in links(address, answer.body):
                if unquote(link) not in known:
                    known.add(unquote(link))
                    waiting.append(link)
    finally:
        connection.close()


def _get(connection: http.client.HTTPConnection, address: str) -> Answer:
    try:
        connection.request("GET", urlsplit(address).path)
    except (http.client.InvalidURL, UnicodeEncodeError):
        return Answer(0, "a link that is no address", [], b"")
    got = connection.getresponse()
    return Answer(got.status, got.reason, got.getheaders(), got.read())


def write(folder: Path, path: Path, most: int, *, compressed: bool) -> Archive:
    """Crawl at most so many pages of a folder into a WARC file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    pages = html_bytes = 0
    try:
        with temporary.open("wb") as file, served(folder) as root:
            writer = WARCWriter(file, gzip=compressed)
            writer.write_record(writer.create_warcinfo_record(path.name, {"format": "WARC/1.0"}))
            for address, answer in crawl(root, most):
                writer.write_record(_record(writer, address, answer))
                pages, html_bytes = pages + 1, html_bytes + len(answer.body)
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
    made = Archive(path, pages, html_bytes)
    _notes(path).write_text(json.dumps({"pages": pages, "html_bytes": html_bytes}))
    return made


def _record(writer: Any, address: str, answer: Answer) -> Any:
    status = StatusAndHeaders(f"{answer.status} {answer.reason}", answer.headers, "HTTP/1.1")
    body = io.BytesIO(answer.body)  # with its length, or it is copied into a temporary file
    return writer.create_warc_record(
        address, "response", payload=body, length=len(answer.body), http_headers=status
    )


def find(folder: Path, path: Path, most: int, *, compressed: bool) -> Archive:
    """Return the archive at `path`, which is made if it is not there; see `write`."""
    if path.exists() and _notes(path).exists():
        return Archive(path, **json.loads(_notes(path).read_text()))
    return write(folder, path, most, compressed=compressed)


def _notes(path: Path) -> Path:
    return path.with_suffix(".json")
