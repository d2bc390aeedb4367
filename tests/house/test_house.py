"""What README and docs say about the house is true."""

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {
    name: ROOT / "packages" / name for name in ("farthing", "farthing-gateway", "farthing-lab")
}
CORE = PACKAGES["farthing"] / "src/farthing"
RULES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("packages/*/*.md"), *ROOT.glob("docs/**/*.md")])

ENTRY_POINTS = {
    (package, f"{group}:{name}"): target
    for package, folder in PACKAGES.items()
    for project in (tomllib.loads((folder / "pyproject.toml").read_text())["project"],)
    for group, points in {**project["entry-points"], "scripts": project.get("scripts", {})}.items()
    for name, target in points.items()
}


def rooms() -> set[str]:
    inside = {path.stem for path in CORE.iterdir() if path.suffix == ".py"}
    inside |= {path.name for path in CORE.iterdir() if any(path.glob("*.py"))}
    return inside - {"__init__", "__main__", "__pycache__"}


def test_the_map_names_every_room_and_no_other() -> None:
    section = (
        (ROOT / "docs/explanation/architecture.md")
        .read_text()
        .split("## Rooms")[1]
        .split("`plugins`, `money` and")[0]
    )
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == rooms()


def test_the_map_has_the_order_of_the_import_contract() -> None:
    section = (
        (ROOT / "docs/explanation/architecture.md")
        .read_text()
        .split("## Rooms")[1]
        .split("`plugins`, `money` and")[0]
    )
    layers: list[str] = RULES["importlinter"]["contracts"][1]["layers"]
    contract = [room for layer in layers for room in layer.split(" | ")]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == contract


@pytest.mark.parametrize("point", ENTRY_POINTS, ids="-".join)
def test_every_entry_point_loads(point: tuple[str, str]) -> None:
    module, attribute = ENTRY_POINTS[point].split(":")
    assert hasattr(import_module(module), attribute)


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_installed_is_what_the_project_file_registers(package: str) -> None:
    ours = distribution(package).entry_points
    installed = {f"{p.group}:{p.name}": p.value for p in ours if p.group.startswith("farthing.")}
    registered = {
        key: value
        for (where, key), value in ENTRY_POINTS.items()
        if where == package and not key.startswith("scripts:")
    }
    assert installed == registered, "install again: make --always-make setup"


@pytest.mark.parametrize("package", PACKAGES)
def test_tests_of_a_package_run_without_the_others(package: str) -> None:
    """They import the core and what is their own; helpers name no plug-in of another package."""
    others = PACKAGES.keys() - {"farthing", package}
    modules = {name.replace("-", "_") for name in others}
    helpers = {path.stem for name in others for path in PACKAGES[name].glob("tests/helpers/*.py")}
    plugins = {
        key.split(":")[1]
        for owner, key in ENTRY_POINTS
        if owner in others and key.startswith(("farthing.tasks:", "farthing.importers:"))
    }
    for path in PACKAGES[package].glob("tests/**/*.py"):
        text = path.read_text()
        imported = set(re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE))
        assert not imported & helpers, path
        assert not set(re.findall(r"\w+", text)) & modules, path
        assert "helpers" not in path.parts or not set(re.findall(r'"([\w-]+)"', text)) & plugins, (
            path
        )


TRAINS = """
heavy = {'torch', 'sklearn', 'scipy', 'pandas', 'matplotlib'}
print(*(heavy & {name.split('.')[0] for name in sys.modules}))
"""
"""Ends a program with what it has loaded that only training needs."""


def loaded_by(program: str) -> list[str]:
    return subprocess.check_output(
        [sys.executable, "-c", f"{program}\n{TRAINS}"], text=True
    ).split()


@pytest.mark.slow
@pytest.mark.parametrize(
    "room",
    [
        "farthing_gateway",
        "farthing_lab.methods.bandits",
        *(f"farthing.{room}" for room in ("runtime", "bundle", "process", "features", "traces")),
        "farthing.promises",
    ],
)
def test_what_serves_loads_nothing_that_only_training_needs(room: str) -> None:
    program = (
        f"import importlib, pkgutil, sys, {room} as room\n"
        "path = getattr(room, '__path__', [])\n"
        "for module in pkgutil.walk_packages(path, room.__name__ + '.'):\n"
        "    module.name.endswith('.env') or importlib.import_module(module.name)"
    )
    assert loaded_by(program) == []


@pytest.mark.slow
def test_no_card_and_no_policy_loads_anything_that_only_training_needs() -> None:
    """Learners import it where they use it; a fresh interpreter shows that nothing else does."""
    program = (
        "import sys\n"
        "from farthing.methods.cards import cards, policy_class, systems\n"
        "for card in cards():\n"
        "    policy_class(card.name)\n"
        "assert len(cards()) > 30 and 'farthing_lab.methods.ccpo.policy' in sys.modules\n"
        "assert len(systems()) > 10"
    )
    assert loaded_by(program) == []


def test_no_source_file_is_longer_than_800_lines() -> None:
    sources = [
        p
        for suffix in ("py", "sql", "html", "css")
        for p in ROOT.glob(f"packages/*/src/**/*.{suffix}")
    ]
    long = {str(p.relative_to(ROOT)): n for p in sources if (n := lines(p)) > 800}
    assert sources
    assert long == {}


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def drawn_tree() -> list[Path]:
    """Read the paths of the file tree in CONTRIBUTING; four columns are one level."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = re.findall(r"^([│ ]*)[├└]── (\S+)", page, re.MULTILINE)
    paths: list[Path] = []
    above: list[str] = []
    for indent, name in drawn:
        above = [*above[: len(indent) // 4], name.strip("/")]
        paths.append(ROOT.joinpath(*above))
    return paths


def test_the_drawn_tree_is_true() -> None:
    tree = drawn_tree()
    ignored = (ROOT / ".gitignore").read_text().split()
    top = {p for p in ROOT.iterdir() if not p.name.startswith(".") and f"{p.name}/" not in ignored}
    assert [p for p in tree if not p.exists()] == []
    assert top - set(tree) == set()


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_link_is_dead(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    for link in links:
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_lists_every_page_of_the_docs() -> None:
    index = (ROOT / "docs/index.md").read_text()
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert [page for page in pages - {"index.md"} if f"({page}" not in index] == []


def test_what_the_server_needs_is_locked_at_the_versions_that_the_checks_ran_with() -> None:
    pinned = dict(line.split("==") for line in _pins("constraints.txt"))
    locked = dict(line.split("==") for line in _pins("requirements/serve.txt"))
    assert {"aiohttp", "starlette", "uvicorn", "numpy", "asyncpg"} <= locked.keys()
    assert {name: pinned.get(name) for name in locked} == locked


def _pins(file: str) -> list[str]:
    lines = (ROOT / file).read_text().splitlines()
    return [
        line.removesuffix("\\").strip().lower().replace("_", "-")
        for line in lines
        if "==" in line and not line.startswith("#")
    ]
