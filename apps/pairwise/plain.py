"""The same program without tasks, for the check: a loop over the groups."""

from __future__ import annotations

from . import app, data


def run(job: app.Job) -> app.Fit:
    """Align all reads."""
    with job.reads.open("rb") as file:
        groups = [app.places_of(job.genome, text) for text in data.groups(file, job.group)]
    return app.fit_of(job.genome, groups)
