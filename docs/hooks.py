"""Makes the site from the tree: pages in the order of index.md, API pages, links that stay inside.

MkDocs calls the functions `on_...`; `mkdocs.yml` names this file.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PACKAGES = {
    path.name: path
    for name in ("farthing", "farthing-gateway", "farthing-lab")
    for path in (ROOT / "packages" / name / "src" / name.replace("-", "_"),)
}
"""The folder of each package by the name that it is imported by, the core first."""
BESIDE = "repository"
"""Folder of the site that shows what lies outside `docs`."""
SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n)*)", re.MULTILINE)
"""A section of `index.md`: its title and its text."""
ENTRY = re.compile(r"^\* \[([^]]+)\]\(([^)#]+)\)", re.MULTILINE)
"""A line of a section that leads to a page: its title and path."""
REFERENCE = "Reference"
"""The section that the API pages stand in."""
TOP = "    options:\n      heading_level: 1\n"
"""Option of what gives a page its title."""
LINK = re.compile(r"^```.*?^```|\]\((?![a-z]+:)([^)\s#]+)(#[^)\s]*)?\)", re.MULTILINE | re.DOTALL)
"""A block of code, in which nothing is a link, or a link to a file: its path and anchor."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Order the pages: the sections of `index.md`, the rooms from the bottom up, the rest."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    api: list[Any] = ["api/index.md"]
    api += [{name: [f"api/{room}.md" for room in rooms(name)]} for name in PACKAGES]
    nav: list[Any] = ["index.md"]
    for section, text in SECTION.findall(index):
        pages: list[Any] = [{title: path} for title, path in ENTRY.findall(text)]
        nav.append({section: [*pages, {"API": api}] if section == REFERENCE else pages})
    config.nav = [*nav, {"Project": [uri(page) for page in sorted(ROOT.glob("*.md"))]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each room, and one for each file outside `docs` that a page leads to."""
    every = [room for name in PACKAGES for room in rooms(name)]
    pages = {"api/index.md": api_index()} | {f"api/{room}.md": api_page(room) for room in every}
    for place, text in pages.items():
        files.append(File.generated(config, place, content=text))
    for path in sorted(beside()):
        unlisted = InclusionLevel.UNDEFINED if path.parent == ROOT else InclusionLevel.NOT_IN_NAV
        if path.suffix == ".md":
            page = File.generated(config, uri(path), abs_src_path=str(path), inclusion=unlisted)
        else:
            page = File.generated(
                config, uri(path), content=shown(path), inclusion=InclusionLevel.NOT_IN_NAV
            )
        files.append(page)
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    """Let links to code lead to its API page, and links to other files to what shows them."""
    source = page.file.abs_src_path
    if source is None:
        return markdown

    def lead(target: Path, anchor: str) -> str:
        module = module_name(target)
        if module is not None:
            return f"][{module}]"
        return f"]({relpath(uri(target), dirname(page.file.src_uri) or '.')}{anchor})"

    return with_links(markdown, Path(source).resolve().parent, lead)


def rooms(package: str) -> list[str]:
    """Name the rooms of a package by their dotted names; itself stands for files beside them."""
    folders = {path.parent for path in PACKAGES[package].glob("*/*.py")}
    found = sorted(f"{package}.{folder.name}" for folder in folders if folder.name[0] != "_")
    return [package, *found]


def api_index() -> str:
    """Write the page that lists the rooms, each with the first line of its docstring."""
    lines = ["# API"]
    for package in PACKAGES:
        lines += ["", f"## {package}", ""]
        for room in rooms(package):
            (first, *_) = modules(room)
            said = ast.get_docstring(ast.parse(first.read_text(encoding="utf-8"))) or "?"
            lines.append(f"* [`{room}`]({room}.md): {said.splitlines()[0]}")
    return "\n".join(lines)


def api_page(room: str) -> str:
    """Write the page of a room: its docstring, then module by module."""
    first, *others = [module_name(path) for path in modules(room)]
    return "\n\n".join([f"::: {first}\n{TOP}", *(f"::: {name}" for name in others)])


def modules(room: str) -> list[Path]:
    """List the files of a room, its `__init__.py` first; of a package, those beside its rooms."""
    package, _, folder = room.partition(".")
    inside = PACKAGES[package]
    found = (inside / folder).rglob("*.py") if folder else inside.glob("*.py")
    return sorted(path for path in found if path.name != "__main__.py")


def module_name(path: Path) -> str | None:
    """Return the dotted name of a module or package of ours, None for all else."""
    inside = [one.parent for one in PACKAGES.values() if path.is_relative_to(one)]
    if not inside or not (path.suffix == ".py" or (path / "__init__.py").exists()):
        return None
    name = ".".join(path.relative_to(inside[0]).with_suffix("").parts)
    return name.removesuffix(".__init__")


def uri(path: Path) -> str:
    """Return where the site has the page of a file."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = f"{BESIDE}/{path.relative_to(ROOT).as_posix()}"
    return name if path.suffix == ".md" else f"{name}.md"


def beside() -> set[Path]:
    """Collect what pages lead to outside `docs`, and what those pages lead to."""
    found: set[Path] = set()
    waiting = [*DOCS.rglob("*.md"), *ROOT.glob("*.md")]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        if not path.is_relative_to(DOCS):
            found.add(path)
        if path.suffix == ".md":
            waiting += [to for to in linked(path) if not to.is_relative_to(DOCS)]
    return {path for path in found if module_name(path) is None and path.exists()}


def linked(page: Path) -> Iterator[Path]:
    """Yield the files that a page leads to."""
    found: list[Path] = []

    def note(target: Path, _: str) -> str:
        found.append(target)
        return ""

    with_links(page.read_text(encoding="utf-8"), page.parent, note)
    yield from found


def with_links(text: str, folder: Path, lead: Callable[[Path, str], str]) -> str:
    """Replace each link to a file, from its closing bracket on, by what `lead` makes of it."""

    def replaced(match: re.Match[str]) -> str:
        link, anchor = match.groups()
        return lead((folder / link).resolve(), anchor or "") if link else match[0]

    return LINK.sub(replaced, text)


def shown(path: Path) -> str:
    """Write a page that shows a file, or all files of a folder."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    parts = [f"# {path.relative_to(ROOT).as_posix()}"]
    for file in files:
        heading = [f"## {file.name}"] if path.is_dir() else []
        code = f"````{file.suffix[1:]}\n{file.read_text(encoding='utf-8')}\n````"
        parts += [*heading, code]
    return "\n\n".join(parts)
