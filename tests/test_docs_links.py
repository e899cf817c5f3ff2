"""Every link of README.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and docs/ leads somewhere,
without MkDocs: to a file that is there, to a heading that is there, and, from a page of the site,
to a page of the site. Every page is in the menu, and every public name in the reference.
"""

import inspect
import re
import unicodedata
from importlib import import_module
from pathlib import Path

import secretballot as sb

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "docs"
TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
PAGES = [*(ROOT / name for name in TOP), *sorted(SITE.rglob("*.md"))]
LINK = re.compile(r"(?<!`)\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.MULTILINE)
OBJECT = re.compile(r"^::: (secretballot[\w.]*)$", re.MULTILINE)


def prose_of(page):
    """Return the text of a page without its fenced blocks, whose lines are no headings or links."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^ *```.*?^ *```\s*?$", "", text, flags=re.MULTILINE | re.DOTALL)


def words_of(heading):
    """Return a heading as it is shown: links, code marks and stress taken off."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]", "", shown)


def anchors_of(page):
    """Return the anchors of a page that are the same on the site and on a repository's pages."""
    shown = [words_of(heading) for heading in HEADING.findall(prose_of(page))]
    return {site_anchor(text) for text in shown} & {repository_anchor(text) for text in shown}


def site_anchor(text):
    """Return the anchor that Python-Markdown gives a heading."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def repository_anchor(text):
    """Return the anchor that the pages of a repository give a heading."""
    return re.sub(r"[^\w\s-]", "", text.strip().lower()).replace(" ", "-")


def links_of(page):
    """Yield path and anchor of every link of a page that leads into the repository."""
    for target in LINK.findall(prose_of(page)):
        if not re.match(r"https?:|mailto:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def test_links_lead_to_files_and_headings():
    for page, path, anchor in ((one, *link) for one in PAGES for link in links_of(one)):
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{page.name} links to {path}, which is no file"
        if page.is_relative_to(SITE):
            assert target.is_relative_to(SITE), f"{page.name} links to {path}, outside of the site"
        if anchor:
            assert anchor in anchors_of(target), f"{page.name} links to {path}#{anchor}: no heading"


def test_every_page_is_in_the_menu_and_every_entry_is_a_page():
    entries = re.findall(
        r"^ +- (?:[^:\n]+: )?([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    assert sorted(entries) == sorted(str(page.relative_to(SITE)) for page in SITE.rglob("*.md"))


def documented_names():
    """Return the paths of all objects that the pages of the reference take from docstrings."""
    pages = (SITE / "reference" / "api").glob("*.md")
    return {path for page in pages for path in OBJECT.findall(page.read_text())}


def object_at(path):
    """Return the module, or the attribute of a module, at a dotted path."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(import_module(module), name)


def test_the_reference_names_things_that_are_there_and_leaves_out_no_public_name():
    shown = [object_at(path) for path in sorted(documented_names())]
    things = {name: getattr(sb, name) for name in sb.__all__}
    for name in (name for name, thing in things.items() if not inspect.ismodule(thing)):
        assert any(getattr(sb, name) is thing for thing in shown), f"sb.{name} is on no page"


def test_pages_that_the_code_names_are_there():
    files = [
        path
        for top in ("src", "tests", "benchmarks", "campaigns", "tools")
        for path in (ROOT / top).rglob("*.py")
    ]
    for path in [ROOT / "Makefile", *files]:
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{path.name} names {name}"
