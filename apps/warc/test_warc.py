"""The application's promises: archives hold the pages, weights are right, both ways agree."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

import math
from pathlib import Path

import pytest

import alongside as al
from apps.common import release

from . import app, crawl, pages, plain, run, terms

PAGES = 150


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of PAGES pages in a chain, beside what a crawler leaves out."""
    folder = tmp_path / "site"
    (folder / "more").mkdir(parents=True)
    for at in range(PAGES):
        own = f"<p>page&eacute; number{'x' * (at % 40)} common " + "word " * (7 * at)
        after = f'<a class="n" href="/more/{at + 1}.html#top">next</a>'
        (folder / "more" / f"{at}.html").write_text(f"<html><body>{own}{after}</body></html>")
    (folder / "more" / "same.html").write_bytes((folder / "more" / "3.html").read_bytes())
    (folder / "note.txt").write_text("no page")
    (tmp_path / "secret.html").write_text("outside of the site")
    (folder / "link.html").symlink_to(tmp_path / "secret.html")
    return folder


@pytest.fixture
def archive(site: Path, tmp_path: Path) -> crawl.Archive:
    return crawl.write(site, tmp_path / "archives" / "site.warc", run.ALL, compressed=False)


def test_an_archive_holds_every_page_once_and_as_it_is(site: Path, archive: crawl.Archive) -> None:
    with archive.path.open("rb") as file:
        found = {page.address.rsplit("/", 1)[1]: page.html for page in app.pages_of(file, 1000)}
    assert found.pop("same.html", b"") in (b"", (site / "more" / "3.html").read_bytes())
    assert len(found) in (PAGES, PAGES - 1), "one of the two pages that are equal"
    assert archive.pages == PAGES
    for name, content in found.items():
        assert content == (site / "more" / name).read_bytes()


def test_a_crawl_ends_at_the_number_that_was_asked_for(site: Path, tmp_path: Path) -> None:
    made = crawl.write(site, tmp_path / "few.warc.gz", 5, compressed=True)
    with made.path.open("rb") as file:
        assert len(list(app.pages_of(file, 1000))) == made.pages == 5
    assert made.path.read_bytes()[:2] == b"\x1f\x8b"
    assert crawl.find(site / "not looked at", made.path, 9, compressed=True) == made


def test_links_lead_to_the_same_server_and_have_no_fragment() -> None:
    body = b"""<a href="b.html#c"> <a id=x href='http://other/d'> <A HREF=/e> <a href="f?q">
        <a href="http://[bad"> <area href="g">"""
    found = list(crawl.links("http://127.0.0.1:80/a/index.html", body))
    assert found == ["http://127.0.0.1:80/a/b.html", "http://127.0.0.1:80/e"]


def test_words_are_what_a_reader_sees() -> None:
    html = (
        "<style>p {x: y}</style><!-- no > --><p>Caf&eacute;s a <b>B2B</b> don't<script>z()</script>"
    )
    assert terms.words(terms.Page("", html.encode())) == ["cafés", "don"]


def test_weights_are_those_of_the_formula() -> None:
    made = [terms.Page(str(at), text) for at, text in enumerate((b"aa bb", b"aa cc cc", b"aa"))]
    having = terms.documents(terms.distinct(page) for page in made)
    assert having == {"aa": 3, "bb": 1, "cc": 1}
    weighed = terms.weigh(terms.frequencies(made[1]), len(made), having)
    assert weighed.terms == (("cc", 2 / 3 * math.log(3)), ("aa", 0.0))


def test_a_page_without_a_word_has_no_terms() -> None:
    empty = terms.Page("0", b"<br>")
    assert terms.weigh(terms.frequencies(empty), 1, {}) == terms.Weighed("0", ())


@pytest.mark.parametrize("way", release.WAYS)
def test_both_ways_find_what_the_plain_program_finds(archive: crawl.Archive, way: str) -> None:
    application = run.Warc(archive)
    with al.Session(workers=2):
        ran = application.run(way)
    assert application.check(ran.answer) == ""
    kinds = [span.kind for span in ran.spans]
    for kind in ("read", *application.consumers):
        assert kinds.count(kind) == PAGES
    assert kinds.count("total") == 1
    assert ran.total_s > 0


def test_eager_tasks_run_while_the_archive_is_read_and_lazy_ones_do_not(
    archive: crawl.Archive,
) -> None:
    application = run.Warc(archive)
    for way in release.WAYS:
        with al.Session(workers=2):
            spans = application.run(way).spans
        read_ns = max(span.end_ns for span in spans if span.kind == "read")
        first_ns = min(s.start_ns for s in spans if s.kind in application.consumers)
        assert (first_ns < read_ns) == (way == "eager")


@pytest.mark.parametrize("way", release.WAYS)
@pytest.mark.parametrize("most", [1, 7])
def test_only_the_first_pages_are_read_if_fewer_are_asked_for(
    archive: crawl.Archive, way: str, most: int
) -> None:
    application = run.Warc(archive, most)
    with al.Session(workers=1):
        ran = application.run(way)
    assert len(ran.answer.pages) == most
    assert application.check(ran.answer) == ""


def test_the_check_finds_what_is_not_equal(archive: crawl.Archive) -> None:
    application = run.Warc(archive, 9)
    right = plain.run(application.job)
    address, (first, *rest) = right.pages[4]
    changed = terms.Weighed(address, ((first[0], first[1] + 1e-12), *rest))
    wrong = [*right.pages[:4], changed, *right.pages[5:]]
    assert application.check(app.Answer(wrong, right.documents)) == f"the terms of {address}"
    assert application.check(app.Answer(right.pages[1:], right.documents)) == "8 pages, not 9"
    more = right.documents + right.documents
    assert application.check(app.Answer(right.pages, more)) == "in how many pages a term is"


def test_packages_that_cannot_be_had_are_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run.main(["--quick", "--cache", str(tmp_path), "--out", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert "'apache2-doc' cannot be had: there is no 'apt-get'" in told
    assert "--pages FOLDER" in told


def test_a_package_is_unpacked_whole_or_not_at_all(tmp_path: Path) -> None:
    bad = tmp_path / "bad_1_all.deb"
    bad.write_bytes(b"no package")
    with pytest.raises(pages.PagesMissingError, match="'bad' cannot be had"):
        pages.unpack(bad, tmp_path / "pages" / "bad")
    assert not list((tmp_path / "pages").iterdir())


def test_the_command_checks_both_ways(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = ["--pages", str(site), "--cache", str(tmp_path / "c"), "--out", str(tmp_path / "o")]
    assert run.main([*folders, "--check", "--layers", "disk", "--trace", str(tmp_path / "t")]) == 0
    printed = capsys.readouterr().out
    assert "check: 2 of 2 runs equal the plain run" in printed
    assert len((tmp_path / "o" / "terms.tsv").read_text().splitlines()) == PAGES
    assert len(list((tmp_path / "t").iterdir())) == 2


def test_a_folder_without_pages_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    folders = ["--pages", str(tmp_path / "empty"), "--cache", str(tmp_path / "c")]
    assert run.main([*folders, "--out", str(tmp_path / "o")]) == 2
    assert "no page of HTML was found" in capsys.readouterr().err
