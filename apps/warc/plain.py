"""The same program without tasks, for the check: a loop over the pages, and one over its counts."""

from __future__ import annotations

from . import app, terms


def run(job: app.Job) -> app.Answer:
    """Weigh the terms of every page."""
    with job.archive.open("rb") as file:
        pages = list(app.pages_of(file, job.pages))
    documents = terms.documents(terms.distinct(page) for page in pages)
    counted = [terms.frequencies(page) for page in pages]
    weighed = [terms.weigh(page, len(pages), documents) for page in counted]
    return app.Answer(weighed, documents)
