r"""How many drawn mutations the tests that cover their lines let live.

    .venv/bin/python -m pytest tests/budgets tests/promises --cov --cov-context=test \
        --durations=0 --durations-min=0 -vv > durations.txt
    .venv/bin/python benchmarks/mutations.py durations.txt [--draw 150] [--seed 20261123]

needs cosmic-ray and pytest-cov, and tests of all rooms that are drawn from. Each room is drawn from
equally often. A place in it is drawn first, then one of the operators of cosmic-ray that apply
there: annotations, and operators that can only raise a TypeError, are left out. Code that runs at
import is covered by what covers anything in its file. Short tests that touch few files come first,
and none is begun that would pass the limit by its duration then.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from difflib import ndiff
from functools import cache
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
SOURCE = "src/farthing"
ROOMS = {
    "recommend": ("recommendation", "api"),
    "promises": ("promises",),
    "methods": ("methods",),
    "budgets": ("budgets", "storage/ledger"),
    "gateway": ("gateway",),
    "importers": ("traces/importers",),
}
ARITHMETIC = {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"}
IDENTITY = {"Is", "IsNot"}
Position = tuple[int, int]


@dataclass
class Mutant:
    """One drawn mutation, and what became of it."""

    room: str
    file: str
    line: int
    operator: str
    occurrence: int
    """Which of the operator's places in the file."""
    last_line: int
    change: list[str] = field(default_factory=list)
    outcome: str = ""
    """`killed`, `survived`, `timeout`, `uncovered`, or `invalid` if the tests did not run."""
    killer: str = ""
    reason: str = ""
    tests: int = 0
    covering: int = 0
    seconds: float = 0.0


def apt(operator: str) -> bool:
    """Return whether an operator puts something in a place that could be meant there."""
    family, *names = operator.partition("/")[2].split("_")
    if family in {"VariableReplacer", "VariableInserter"}:
        return False
    if family == "ReplaceBinaryOperator":
        return len(ARITHMETIC.intersection(names)) != 1
    if family == "ReplaceComparisonOperator":
        return len(IDENTITY.intersection(names)) != 1
    return True


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def span(node: ast.expr | ast.stmt) -> tuple[Position, Position]:
    return (
        (node.lineno, node.col_offset),
        (node.end_lineno or node.lineno, node.end_col_offset or 0),
    )


def annotations(tree: ast.Module) -> list[tuple[Position, Position]]:
    """Return where types are written, aliases at the top of a file among them."""
    types: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            types.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            types.append(node.returns)
    types += [
        s.value
        for s in tree.body
        if isinstance(s, ast.Assign)
        and isinstance(s.value, ast.BinOp)
        and isinstance(s.value.op, ast.BitOr)
    ]
    return [span(node) for node in types if node is not None]


def operations(tree: ast.Module) -> list[tuple[Position, Position]]:
    """Return where two operands are joined; the stars of arguments are none."""
    return [
        (span(node.left)[1], span(node.right)[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
    ]


def places(room: str, path: Path) -> Iterator[list[Mutant]]:
    """Yield the mutants of each place of a file: one family of operators on one piece of code."""
    types, joined = annotations(parsed(path)), operations(parsed(path))
    nodes = list(ast_nodes(get_ast(path.read_text())))
    by_place: dict[tuple[str, Position, Position], list[Mutant]] = {}
    for operator in sorted(filter(apt, operator_names())):
        instance = get_operator(operator)()
        positions = (p for node in nodes for p in instance.mutation_positions(node))
        for occurrence, (start, end) in enumerate(positions):
            if any(first <= start and end <= last for first, last in types):
                continue
            if "BinaryOperator" in operator and not any(a <= start < b for a, b in joined):
                continue
            file = path.relative_to(ROOT).as_posix()
            mutant = Mutant(room, file, start[0], operator, occurrence, end[0])
            by_place.setdefault((operator.split("_")[0], start, end), []).append(mutant)
    yield from by_place.values()


def drawn(n: int, seed: int) -> tuple[list[Mutant], dict[str, int]]:
    """Draw mutants, equally many of each room, and count the rooms' places."""
    rng = random.Random(seed)
    mutants, sizes = [], {}
    for room, folders in ROOMS.items():
        files = sorted(p for f in folders for p in (ROOT / SOURCE / f).rglob("*.py"))
        found = [place for path in files for place in places(room, path)]
        sizes[room] = len(found)
        mutants += [rng.choice(place) for place in rng.sample(found, n // len(ROOMS))]
    return mutants, sizes


def runs_at_import(path: Path, line: int) -> bool:
    """Return whether a line is in no function's body: a default, a decorator, a field."""
    return not any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
        for node in ast.walk(parsed(path))
    )


def statement_lines(path: Path, first: int, last: int) -> range:
    """Return the lines of the smallest statement that has these lines, without its body."""
    best = range(first, last + 1)
    shortest = None
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.stmt) or not node.lineno <= first <= (node.end_lineno or 0):
            continue
        body = getattr(node, "body", None)
        end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        if last <= max(end, node.lineno) and (shortest is None or end - node.lineno < shortest):
            shortest, best = end - node.lineno, range(node.lineno, end + 1)
    return best


class Covering:
    """Which tests touch which lines, and how long they take."""

    def __init__(self, database: Path, logs: Sequence[Path]) -> None:
        self._data = CoverageData(str(database))
        self._data.read()
        self.seconds: dict[str, float] = {}
        failed = set()
        for line in (line for log in logs for line in log.read_text().splitlines()):
            if took := re.match(r"([\d.]+)s (?:setup|call|teardown) +(\S.*)", line):
                self.seconds[took[2]] = self.seconds.get(took[2], 0.0) + float(took[1])
            elif wrong := re.match(r"(?:FAILED|ERROR) (\S+::.+?)(?: - |$)", line):
                failed.add(wrong[1])
        self.seconds = {t: s for t, s in self.seconds.items() if t not in failed}
        breadth: dict[str, int] = {}
        query = "SELECT context, count(*) FROM line_bits, context ON context_id = id GROUP BY id"
        for context, files in sqlite3.connect(database).execute(query):
            test = context.rpartition("|")[0]
            breadth[test] = max(breadth.get(test, 0), files)
        self.cost = {t: breadth.get(t, 0) * (s + 0.05) for t, s in self.seconds.items()}
        self._in_file: dict[str, list[str]] = {}
        for test in self.seconds:
            self._in_file.setdefault(test.split("::")[0], []).append(test)

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that touch a mutant's line, short ones of little else first."""
        path = ROOT / mutant.file
        lines = self._data.contexts_by_lineno(str(path))
        if runs_at_import(path, mutant.line):
            tests = self._named(lines, lines)
        else:
            tests = self._named(lines, range(mutant.line, mutant.last_line + 1)) or self._named(
                lines, statement_lines(path, mutant.line, mutant.last_line)
            )
        return sorted(tests, key=lambda test: (self.cost[test], test))

    def _named(self, contexts: dict[int, list[str]], lines: object) -> set[str]:
        """What runs in a fixture is covered by all tests of the file, which may share it."""
        tests: set[str] = set()
        for context in {c for line in lines for c in contexts.get(line, ()) if c}:
            test, _, phase = context.rpartition("|")
            tests.update(self._in_file.get(test.split("::")[0], ()) if phase == "setup" else {test})
        return tests & self.seconds.keys()


@dataclass(frozen=True)
class Run:
    """What pytest said."""

    outcome: str
    killer: str = ""
    reason: str = ""


def run(tests: Sequence[str], tree: Path, limit: float, *more: str) -> Run:
    """Run tests in a copy of the tree."""
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    paths = [str(tree / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(p for p in paths if p and Path(p) != ROOT / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "400",
    }
    process = subprocess.Popen(
        [*command, *more, *tests],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Run("timeout")
    return verdict(process.returncode, output)


def verdict(status: int, output: str) -> Run:
    if status == 0:
        return Run("survived")
    wrong = [re.match(r"(?:FAILED|ERROR) (.+?)(?: - (.*))?$", x) for x in output.splitlines()]
    named = [(match[1], match[2] or "") for match in wrong if match]
    if status in {1, 2} and named:
        return Run("killed", *named[0])
    if "while loading conftest" in output:
        return Run("killed", "conftest", output.strip().splitlines()[-1][:300])
    return Run("invalid", reason=output[-1_500:])


def copied(to: Path) -> Path:
    """Copy what git knows or would know of the tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.check_output(command, cwd=ROOT, text=True).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


def judge(mutant: Mutant, covering: Covering, tree: Path, limit: float) -> None:
    """Break one line in a copy, run what covers it, and mend it."""
    right = (ROOT / mutant.file).read_text()
    wrong = mutate_code(right, get_operator(mutant.operator)(), mutant.occurrence)
    lines = ndiff(right.splitlines(), wrong.splitlines())
    mutant.change = [line for line in lines if line[0] in "+-"]
    tests = covering.of(mutant)
    mutant.covering = len(tests)
    chosen, total = [], 0.0
    for test in tests:
        total += covering.seconds[test]
        if total > limit and chosen:
            break
        chosen.append(test)
    mutant.tests = len(chosen)
    if not chosen:
        mutant.outcome = "uncovered"
        return
    began = time.monotonic()
    (tree / mutant.file).write_text(wrong)
    try:
        found = run(chosen, tree, limit, "-x")
    finally:
        (tree / mutant.file).write_text(right)
    mutant.seconds = round(time.monotonic() - began, 1)
    mutant.outcome, mutant.killer, mutant.reason = found.outcome, found.killer, found.reason


def judged(
    mutants: Sequence[Mutant], covering: Covering, processes: int, limit: float
) -> Iterator[Mutant]:
    """Judge mutants, and yield each when it is done, then those that a broken test had killed."""
    with TemporaryDirectory(prefix="mutations-") as folder, ThreadPoolExecutor(processes) as pool:
        trees: Queue[Path] = Queue()
        for i in range(processes):
            trees.put(copied(Path(folder) / str(i)))

        def one(mutant: Mutant) -> Mutant:
            tree = trees.get()
            try:
                judge(mutant, covering, tree, limit)
            finally:
                trees.put(tree)
            return mutant

        yield from pool.map(one, mutants)
        killers = {m.killer for m in mutants if m.outcome == "killed" and "::" in m.killer}
        while killers and (broken := run(sorted(killers), trees.queue[0], 600, "-x")).killer:
            print(f"fails without a mutation: {broken.killer}: {broken.reason}", flush=True)
            covering.seconds.pop(broken.killer)
            killers.discard(broken.killer)
            yield from pool.map(one, [m for m in mutants if m.killer == broken.killer])


def summary(mutants: Sequence[Mutant], sizes: dict[str, int]) -> str:
    outcomes = ("killed", "survived", "timeout", "uncovered", "invalid")
    lines = [f"| room | places | drawn | {' | '.join(outcomes)} |"]
    for room in ROOMS:
        mine = [m.outcome for m in mutants if m.room == room]
        counts = " | ".join(str(mine.count(outcome)) for outcome in outcomes)
        lines.append(f"| {room} | {sizes.get(room, '')} | {len(mine)} | {counts} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("durations", type=Path, nargs="+", help="what pytest printed")
    parser.add_argument("--coverage", type=Path, default=Path(".coverage"))
    parser.add_argument("--draw", type=int, default=150)
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one mutant")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--again", type=Path, help="a table, of which what lives is judged again")
    parser.add_argument("--out", type=Path, default=Path("mutations.json"))
    options = parser.parse_args()
    sizes: dict[str, int] = {}
    if options.again:
        mutants = [Mutant(**row) for row in json.loads(options.again.read_text())]
    else:
        mutants, sizes = drawn(options.draw, options.seed)
    covering = Covering(options.coverage, options.durations)
    due = [mutant for mutant in mutants if mutant.outcome != "killed"]
    for mutant in judged(due, covering, options.processes, options.limit):
        print(f"{mutant.outcome} {mutant.file}:{mutant.line} {mutant.operator}", flush=True)
        options.out.write_text(json.dumps([asdict(m) for m in mutants], indent=1) + "\n")
    print(summary(mutants, sizes))


if __name__ == "__main__":
    main()
