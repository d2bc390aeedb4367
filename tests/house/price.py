"""What the code costs to live in, counted from its syntax trees.

`house.toml` keeps the figures, `test_price.py` holds the code to them, `make ratchet` lowers them.
"""

import ast
import gc
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "house.toml"
SHORT = 3
"""Statements up to which a private function with one caller would read better in its place."""
RECORDS = frozenset({"dataclass", "Struct", "NamedTuple"})
"""A decorator or base of one of these names makes a class a record."""
HEAD = """\
# What the code costs to live in: lines and statements (`ast.stmt` nodes) by room, and in total what
# makes a reader jump. Figures only fall; `make ratchet` writes smaller ones. Code that needs more
# takes it from another room in the same commit, or a commit of this file alone raises a figure and
# says why.
"""
Figures = dict[str, dict[str, int]]


@dataclass
class Module:
    """What is counted in one source file."""

    name: str
    """Its dotted name; a package goes by its folder's."""
    is_package: bool
    lines: int
    statements: int = 0
    records: list[str] = field(default_factory=list)
    imports: set[str] = field(default_factory=set)
    """Dotted names that it imports, those of attributes included."""
    helpers: list[str] = field(default_factory=list)
    """Its private functions of at most `SHORT` statements."""
    names: Counter[str] = field(default_factory=Counter)
    """How often it mentions each name."""
    calls: Counter[str] = field(default_factory=Counter)
    """How often it calls each name."""

    @property
    def room(self) -> str:
        """Its folder inside the distribution; a file beside the folders has none."""
        parts = self.name.split(".")
        return ".".join(parts[:2]) if len(parts) > 2 or self.is_package else parts[0]


def read(path: Path, source: Path) -> Module:
    """Count one file below the folder that is on the import path."""
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(source).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    module = Module(name, is_package, text.count("\n"))
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        _count(node, module)
        for value in node.__dict__.values():
            if type(value) is list:
                waiting += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                waiting.append(value)
    return module


def _count(node: ast.AST, module: Module) -> None:
    module.statements += isinstance(node, ast.stmt)
    if isinstance(node, ast.Name | ast.Attribute):
        module.names[_last_name(node)] += 1
    elif isinstance(node, ast.Call):
        module.calls[_last_name(node)] += 1
    elif isinstance(node, ast.ClassDef):
        if RECORDS & {_last_name(one) for one in [*node.decorator_list, *node.bases]}:
            module.records.append(node.name)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        body = node.body[1:] if ast.get_docstring(node, clean=False) else node.body
        if node.name.startswith("_") and len(body) <= SHORT:
            module.helpers.append(node.name)
    elif isinstance(node, ast.Import):
        module.imports |= {one.name for one in node.names}
    elif isinstance(node, ast.ImportFrom) and node.module:
        module.imports |= {f"{node.module}.{one.name}" for one in node.names}


def _last_name(node: ast.expr) -> str:
    while not isinstance(node, ast.Attribute | ast.Name):
        inner = getattr(node, "func", getattr(node, "value", None))
        if not isinstance(inner, ast.expr):
            return ""
        node = inner
    return node.attr if isinstance(node, ast.Attribute) else node.id


def measured(root: Path = ROOT) -> Figures:
    """Count everything that `house.toml` keeps."""
    gc.disable()  # millions of nodes live at once, none in a circle
    sources = [root / "src", *sorted(root.glob("packages/*/src"))]
    modules = [read(path, source) for source in sources for path in sorted(source.rglob("*.py"))]
    gc.enable()
    lines, statements, calls = Counter[str](), Counter[str](), Counter[str]()
    for module in modules:
        lines[module.room] += module.lines
        statements[module.room] += module.statements
        calls.update(module.calls)
    imports = imported(modules)
    importers = Counter(name for names in imports.values() for name in names)
    return {
        "lines": dict(sorted(lines.items())),
        "statements": dict(sorted(statements.items())),
        "total": {
            "records": sum(len(module.records) for module in modules),
            "records_built_once": sum(calls[r] == 1 for module in modules for r in module.records),
            "short_helpers_with_one_caller": sum(
                module.names[helper] == 1 for module in modules for helper in module.helpers
            ),
            "modules_with_one_importer": sum(
                importers[module.name] == 1 for module in modules if not module.is_package
            ),
            "circles": circles(imports),
        },
    }


def imported(modules: list[Module]) -> dict[str, set[str]]:
    """Return which modules of ours each one imports, at its top or late."""
    known = {module.name for module in modules}
    found = {}
    for module in modules:
        whole = {name if name in known else name.rpartition(".")[0] for name in module.imports}
        found[module.name] = whole & known
    return found


def circles(imports: dict[str, set[str]]) -> int:
    """Count the groups of modules that import one another.

    >>> circles({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()})
    1
    """
    place = {name: at for at, name in enumerate(imports)}
    edges = [(place[one], place[other]) for one, others in imports.items() for other in others]
    rows, columns = zip(*edges, strict=True)
    graph = csr_array(([1] * len(edges), (rows, columns)), shape=(len(place), len(place)))
    _, labels = connected_components(graph, connection="strong")
    return sum(size > 1 for size in Counter(labels.tolist()).values())


def risen(before: Figures, now: Figures) -> list[str]:
    """Say which figures rose; a room may take lines or statements that another gave up.

    >>> risen({"lines": {"a": 9, "b": 9}}, {"lines": {"a": 10, "b": 8}})
    []
    >>> risen({"lines": {"a": 9, "b": 9}}, {"lines": {"a": 10, "b": 9}})
    ['lines of a: 10, 1 more than house.toml allows']
    """
    said = []
    for kind, figures in now.items():
        old = before.get(kind, {})
        if kind != "total" and sum(figures.values()) <= sum(old.values()):
            continue
        more = {name: value - old.get(name, 0) for name, value in figures.items()}
        said += [
            f"{kind} of {name}: {figures[name]:,}, {by:,} more than house.toml allows"
            for name, by in more.items()
            if by > 0
        ]
    return said


def kept() -> Figures:
    """Read the figures that were written last."""
    return tomllib.loads(HOUSE.read_text(encoding="utf-8"))


def as_toml(figures: Figures) -> str:
    """Write figures as `house.toml` has them."""
    tables = (
        "\n".join([f"[{kind}]", *(f'"{name}" = {value}' for name, value in one.items())])
        for kind, one in figures.items()
    )
    return HEAD + "\n" + "\n\n".join(tables) + "\n"


if __name__ == "__main__":
    counted = measured()
    if problems := risen(kept(), counted):
        sys.exit("nothing is written: " + "; ".join(problems))
    HOUSE.write_text(as_toml(counted), encoding="utf-8")
