"""Terms of a page, and how much each of them tells: TF-IDF.

A term is a word of two letters or more, in lower case. With N pages, of which n have a term, its
weight in a page in which c of w words are it is (c / w) * log(N / n).
"""

from __future__ import annotations

import heapq
import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

TOP = 10
"""How many terms are given for a page."""

_MARKUP = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")


class Page(NamedTuple):
    """A page as it was crawled."""

    address: str
    html: bytes


class Frequencies(NamedTuple):
    """How often each term is in a page, and how many words the page has."""

    address: str
    counts: dict[str, int]
    words: int


class Weighed(NamedTuple):
    """The terms that tell most about a page, with their weights, the heaviest first."""

    address: str
    terms: tuple[tuple[str, float], ...]


def words(page: Page) -> list[str]:
    """Return the words that a reader of the page sees, in their order."""
    text = _MARKUP.sub(" ", page.html.decode("utf-8", "replace"))
    return _WORD.findall(html.unescape(text).lower())


def frequencies(page: Page) -> Frequencies:
    """Count the terms of a page."""
    listed = words(page)
    return Frequencies(page.address, dict(Counter(listed)), len(listed))


def distinct(page: Page) -> tuple[str, ...]:
    """Return the terms of a page, each once, sorted."""
    return tuple(sorted(set(words(page))))


def documents(found: Iterable[Iterable[str]]) -> Counter[str]:
    """Count in how many pages each term is."""
    counts: Counter[str] = Counter()
    for terms in found:
        counts.update(terms)
    return counts


def weigh(page: Frequencies, pages: int, having: Mapping[str, int]) -> Weighed:
    """Weigh the terms of a page; `having` says in how many of all pages each is."""
    weights = [
        (-count / page.words * math.log(pages / having[term]), term)
        for term, count in page.counts.items()
    ]
    heaviest = heapq.nsmallest(TOP, weights)
    return Weighed(page.address, tuple((term, -weight) for weight, term in heaviest))
