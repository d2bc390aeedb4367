"""The site that `make docs` shows, built as `make check` builds it."""

import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import farthing
import farthing_gateway
import farthing_lab

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
FETCHED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("object", "data"),
}


class Html(HTMLParser):
    """The ids of a page, where its links lead, what a browser fetches for it, its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.text = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            if tag == "a" and name == "href" and value:
                self.links.append(value)
            if (tag, name) in FETCHED and value:
                self.fetched.append(value)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Html]:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path: Html(path) for path in folder.rglob("*.html")}


def page(site: dict[Path, Html], name: str) -> Html:
    (found,) = (html for path, html in site.items() if path.as_posix().endswith(name))
    return found


@pytest.mark.parametrize("package", [farthing, farthing_gateway, farthing_lab])
def test_each_room_has_a_page_with_all_of_its_modules(
    site: dict[Path, Html], package: ModuleType
) -> None:
    found = list(pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    names = [m.name for m in found if m.name != "farthing.__main__"]  # it runs the command line
    rooms = {m.name for m in found if m.ispkg and m.name.count(".") == 1}
    assert rooms
    for name in names:
        room = ".".join(name.split(".")[:2])
        assert name in page(site, f"/api/{room if room in rooms else package.__name__}.html").ids


def test_what_a_module_holds_is_on_the_page(site: dict[Path, Html]) -> None:
    html = page(site, "/api/farthing.html")
    assert {"farthing.errors.InputError", "farthing.errors.MissingExtraError"} <= html.ids
    assert not any(re.search(r"\._[a-z]", name) for name in html.ids)


def test_examples_are_shown_as_sessions(site: dict[Path, Html]) -> None:
    html = page(site, "/api/farthing.traces.html")
    assert ">>> Call(round=1" in html.text
    assert "<blockquote>" not in next(
        path.read_text() for path in site if path.as_posix().endswith("/api/farthing.traces.html")
    )


def test_every_link_leads_somewhere(site: dict[Path, Html]) -> None:
    dead = [
        f"{path.name}: {link}"
        for path, html in site.items()
        if path.name != "404.html"
        for link in html.links
        if "://" not in link and not leads(site, path, link)
    ]
    assert dead == []


def leads(site: dict[Path, Html], path: Path, link: str) -> bool:
    name, _, anchor = unquote(link).partition("#")
    target = (path.parent / name).resolve() if name else path
    if target.is_dir():
        target /= "index.html"
    at_top = not anchor or anchor == "__skip"
    return target.exists() if at_top else target in site and anchor in site[target].ids


def test_nothing_is_fetched_from_elsewhere(site: dict[Path, Html]) -> None:
    fetched = {url for html in site.values() for url in html.fetched}
    assert any(url.endswith(".css") for url in fetched)
    assert [url for url in fetched if re.match(r"[a-z]+:|//", url) and url[:5] != "data:"] == []
    folder = min(site, key=lambda path: len(path.parts)).parent
    styles = list(folder.rglob("*.css"))
    assert styles
    assert [
        s.name for s in styles if re.search(r"(url\(|@import)\W*(https?:)?//", s.read_text())
    ] == []


def test_the_pages_stand_in_the_order_of_the_index(site: dict[Path, Html]) -> None:
    index = (ROOT / "docs/index.md").read_text()
    titles = re.findall(r"^(?:## |\* \[)([^]\n]+)", index, re.MULTILINE)
    assert len(titles) > 10
    menu = (line.strip() for line in page(site, "/ccpo.html").text.splitlines())
    assert all(title in menu for title in titles)  # each is looked for after the one before
