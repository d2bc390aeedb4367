"""How many drawn mutations of promises, money and evidence the nearest tests let live.

    .venv/bin/python benchmarks/mutations.py [--seed 1] [--draw 60] [--processes 2]

`make mutations` is the same; it ends with 1 where more than three survive. A kind of mistake is
drawn first, then a place where it can be made, so that rare kinds come as often as numbers do. The
sources are copied, one place is changed, and pytest runs the nearest tests until the first failure:
the doctests of the file, those that are called after it, those that import it, those of its room.
What is left after the time limit counts as alive. Text is left out: messages, and functions that
return strings.

Some mutations change nothing that matters. They are listed with the others; a person decides.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
MOST_ALIVE = 3


@dataclass(frozen=True)
class Room:
    """Sources that are drawn from, and the tests that are nearest to all of them."""

    sources: tuple[str, ...]
    """Below `packages/*/src`, as `Path.glob` takes them."""
    tests: str
    """Below `packages/*/tests`, by how their names begin, in the order in which they run."""
    first: str = ""
    """Of them, those that run before any other: quick ones that hold many wires."""


ROOMS = (
    Room(
        ("farthing/promises/**/*.py",),
        "promises recommendation/test_levels_are_divided recommendation/test_promises "
        "recommendation/test_what_each recommendation/test_without_gold recommendation/test_copies",
        "recommendation/test_shares_of_delta",
    ),
    Room(
        ("farthing/recommendation/*.py",),
        "recommendation cli/test_costs cli/test_pipeline",
        "recommendation/test_shares_of_delta recommendation/test_wiring",
    ),
    Room(
        (
            "farthing/process/play.py",
            "farthing/process/replay.py",
            "farthing/process/operating_points.py",
        ),
        "process methods/test_lookahead methods/pools/test_agreement_cascade "
        "recommendation/test_missing_calls recommendation/test_selective_promise",
    ),
    Room(
        tuple(
            f"farthing/traces/{name}.py"
            for name in ("eligibility", "arrays", "copies", "fingerprint")
        ),
        "traces recommendation/test_missing_calls recommendation/test_copies test_bundle "
        "recommendation/test_wiring",
    ),
    Room(
        ("farthing/traces/importers/*.py",),
        "traces/test_import cli/test_import cli/test_costs cli/test_several_files",
    ),
    Room(
        ("farthing/money.py", "farthing/models/usage.py", "farthing/models/prices.py"),
        "models/test_prices models/test_dearest_tier models/test_providers gateway/test_spending "
        "runtime/test_unknown_costs",
    ),
    Room(
        tuple(f"farthing_gateway/{name}.py" for name in ("charging", "paid_call", "policy_reply")),
        "gateway/test_disputed gateway/test_spending gateway/test_limits_held "
        "gateway/test_policies gateway/test_fallbacks gateway/test_failed_requests "
        "gateway/test_upstream gateway/test_explanation gateway/test_output_limits "
        "gateway/test_figures_told gateway/test_money_wiring",
        "gateway/test_money_wiring gateway/test_upstream.py",
    ),
    Room(
        ("farthing_gateway/storage/ledger/*.py", "farthing/budgets/**/*.py"),
        "storage/ledger budgets gateway/test_spending",
    ),
)
LEFT_OUT = {"wording.py", "texts.py", "parallel.py", "postgres.py"}
"""Texts, processes, and what only a server of its own can test."""
OTHER_WAY = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
SWAPPED = (
    ("any", "all"), ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("floor", "ceil"),
    ("train", "prove"), ("train", "calibrate"), ("choose", "prove"), ("report", "prove"),
    ("input_tokens", "output_tokens"), ("lost", "won"), ("low", "high"), ("nano", "tokens"),
    ("epsilon", "delta"), ("correct", "answered"), ("recorded", "played"),
)  # fmt: skip
OTHER_NAMES = {one: other for pair in SWAPPED for one, other in (pair, pair[::-1])}


@dataclass(frozen=True)
class Mutant:
    """One wrong piece of code."""

    kind: str
    path: Path
    node: ast.AST
    """What is replaced."""
    wrong: str

    @property
    def change(self) -> tuple[str, str]:
        """Return the text before and after."""
        text = self.path.read_bytes()
        lines = text.splitlines(keepends=True)
        node = self.node
        first = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
        last = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
        wrong = f"({self.wrong})" if isinstance(node, ast.expr) else self.wrong
        return text.decode(), (text[:first] + wrong.encode() + text[last:]).decode()

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (ast.unparse(self.node), self.wrong))
        same = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b), 0)  # noqa: B905
        shown = slice(max(0, same - 60), same + 100)
        where = f"{self.path.relative_to(ROOT)}:{self.node.lineno} [{self.kind}]"
        return f"{where}\n    - {before[shown]}\n    + {after[shown]}"


@dataclass(frozen=True)
class Signature:
    """What a function or a record of the package takes."""

    types: tuple[str, ...]
    """Of what may be given by position."""
    optional: Mapping[str, str]
    """What may be left out, to its type."""


@cache
def signatures() -> Mapping[str, Signature]:
    """Return what everything of the package takes, by its name; of two of a name the last."""
    found = {}
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[node.name] = of_function(node.args)
            elif isinstance(node, ast.ClassDef):
                fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
                named = {ast.unparse(one.target): ast.unparse(one.annotation) for one in fields}
                optional = {ast.unparse(one.target) for one in fields if one.value}
                found[node.name] = Signature(
                    tuple(named.values()), {k: v for k, v in named.items() if k in optional}
                )
    return found


def of_function(args: ast.arguments) -> Signature:
    def typed(one: ast.arg) -> str:
        return ast.unparse(one.annotation) if one.annotation else ""

    own = [one for one in args.args if one.arg not in {"self", "cls"}]
    optional = own[len(own) - len(args.defaults) :] if args.defaults else []
    optional += [
        one for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default
    ]
    return Signature(tuple(map(typed, own)), {one.arg: typed(one) for one in optional})


def with_field(node: ast.AST, **fields: object) -> str:
    """Return the text of a node in which some fields are others."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return ast.unparse(other)


def mistakes(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each mistake that can be made in a place."""
    yield from in_operators(node)
    yield from in_names(node)
    match node:
        case ast.Constant(value=bool(value)):
            yield "constant", str(not value)
        case ast.Constant(value=int(value)):
            yield "constant", str(value + 1 if value != 1 else 2)
        case ast.Constant(value=float(value)):
            yield "constant", str(2 * value or 1.0)
        case ast.Call():
            yield from in_call(node)
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "statement dropped", "pass"
        case ast.IfExp(body=body, orelse=orelse):
            yield "branch", ast.unparse(body)
            yield "branch", ast.unparse(orelse)


def in_call(node: ast.Call) -> Iterator[tuple[str, str]]:
    """Leave out what may be left out, and swap neighbours that may be taken for each other."""
    name = ast.unparse(node.func).rpartition(".")[2]
    known, words, args = signatures().get(name), node.keywords, node.args
    for i, one in enumerate(words):
        rest = [*words[:i], *words[i + 1 :]]
        if (
            one.arg
            and one.arg not in {"strict", "dtype"}
            and (known is None or one.arg in known.optional)
        ):
            yield "keyword dropped", with_field(node, keywords=rest)
        elif one.arg and known and "None" in known.optional.get(one.arg, ""):
            yield (
                "keyword None",
                with_field(node, keywords=[*rest, ast.keyword(one.arg, ast.Constant(None))]),
            )
    for i, pair in enumerate(pairwise(args)):
        alike = (
            len(set(known.types[i : i + 2])) == 1 if known else ast.unparse(node.func)[:3] == "np."
        )
        if alike and all(isinstance(one, ast.Name | ast.Attribute) for one in pair):
            yield (
                "arguments swapped",
                with_field(node, args=[*args[:i], *pair[::-1], *args[i + 2 :]]),
            )


def in_operators(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(ops=[op]):
            yield "comparison", with_field(node, ops=[OTHER_WAY[type(op)]()])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OTHER_WAY:
            yield "operator", with_field(node, op=OTHER_WAY[type(op)]())
            yield "operand dropped", ast.unparse(left)
            if not isinstance(op, ast.Sub | ast.Div):
                yield "operand dropped", ast.unparse(right)
        case ast.BoolOp(op=op, values=values):
            yield "and/or", with_field(node, op=OTHER_WAY[type(op)]())
            for i in range(len(values)):
                left = [*values[:i], *values[i + 1 :]]
                yield (
                    "condition dropped",
                    ast.unparse(left[0]) if len(left) == 1 else with_field(node, values=left),
                )
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield "not", ast.unparse(operand)
        case ast.If(test=test):
            yield "guard", f"if not ({ast.unparse(test)}):"


def in_names(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in OTHER_NAMES:
            yield "name", OTHER_NAMES[name]
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in OTHER_NAMES:
            yield "name", with_field(node, attr=OTHER_NAMES[name])


def places(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may be wrong below a node: no types, no decorators, no text."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params", "bases"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not is_text(child):
                yield child
                yield from places(child)


def is_text(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Assert():
            return True
        case ast.Call(func=ast.Name(id="PromiseOption")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="LOG"))):
            return True
        case ast.FunctionDef(returns=ast.Name(id="str") | ast.Constant(value="str")):
            return True
    return False


def mutants() -> list[Mutant]:
    """Return every mutation of the rooms."""
    found = []
    for path in sorted(
        {p for room in ROOMS for glob in room.sources for p in ROOT.glob(f"packages/*/src/{glob}")}
    ):
        if path.name in LEFT_OUT:
            continue
        for node in places(ast.parse(path.read_bytes())):
            found += [
                Mutant(kind, path, *pair)
                for kind, *pair in ((k, *cut(node, w)) for k, w in mistakes(node))
            ]
    return found


def cut(node: ast.AST, wrong: str) -> tuple[ast.AST, str]:
    """Of a guard replace the condition alone."""
    return (
        (node.test, f"not ({ast.unparse(node.test)})")
        if isinstance(node, ast.If)
        else (node, wrong)
    )


def drawn(n: int, seed: int) -> list[Mutant]:
    """Draw mutations: a room, a kind, a place."""
    rng, by_room = random.Random(seed), {}
    for one in mutants():
        by_room.setdefault(room_of(one.path), {}).setdefault(one.kind, []).append(one)
    found: list[Mutant] = []
    while len(found) < n:
        kinds = by_room[ROOMS[len(found) % len(ROOMS)]]
        one = rng.choice(kinds[rng.choice(sorted(kinds))])
        found += [] if one in found else [one]
    return found


@cache
def room_of(path: Path) -> Room:
    return next(
        r for r in ROOMS if any(path in ROOT.glob(f"packages/*/src/{one}") for one in r.sources)
    )


def nearest(path: Path) -> list[str]:
    """Return what runs for a file: its doctests, tests of its name, of its imports, of its room."""
    parts = path.relative_to(ROOT / "packages").with_suffix("").parts[2:]
    imports = (f"from {'.'.join(parts)} import", f"from {'.'.join(parts[:-1])} import {parts[-1]}")
    tests = {
        "/".join(path.relative_to(ROOT / "packages").parts[2:]): path
        for path in ROOT.glob("packages/*/tests/**/test_*.py")
    }
    room = room_of(path)
    near, quick = (
        [tests[key] for name in names.split() for key in sorted(tests) if key.startswith(name)]
        for names in (room.tests, room.first)
    )
    first = [test for test in near if any(text in test.read_text() for text in imports)]
    named = [test for test in near if parts[-1] in test.stem]
    order = dict.fromkeys([path, *quick, *named, *first, *near])
    return [one.relative_to(ROOT).as_posix() for one in order]


def run(tests: Sequence[str], tree: Path, limit: float) -> str:
    """Run tests in a copy of the tree; return what became of a mutant there."""
    command = [sys.executable, "-m", "pytest", "-qx", "-n0", "--tb=no", "-p", "no:cacheprovider"]
    command += ["-m", "not (soak or mutations or clients or simulations)"]
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, tree.glob("packages/*/src"))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    process = subprocess.Popen(
        [*command, *tests], cwd=tree, env=os.environ | environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "out of time"
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return (
        "alive"
        if process.returncode in {0, 5}
        else f"noticed by {failed[0] if failed else output[-300:]}"
    )


def copied(to: Path) -> Path:
    """Copy what git knows or would know of the tree, with what lies beside it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.check_output(command, cwd=ROOT, text=True).split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    shared = to.parent / "shared"
    if (ROOT.parent / "shared").exists() and not shared.exists():
        shared.symlink_to(ROOT.parent / "shared")
    return to


def judged(
    found: Sequence[Mutant], processes: int, limit: float
) -> Iterator[tuple[Mutant, str, float]]:
    """Yield each mutant with what became of it, and how many seconds that took."""
    with (
        TemporaryDirectory(prefix="mutations-") as folder,
        ThreadPoolExecutor(processes) as threads,
    ):
        trees: Queue[Path] = Queue()
        for i in range(processes):
            trees.put(copied(Path(folder) / str(i)))

        def one(mutant: Mutant) -> tuple[Mutant, str, float]:
            tree, began = trees.get(), time.monotonic()
            right, wrong = mutant.change
            place = tree / mutant.path.relative_to(ROOT)
            place.write_text(wrong)
            try:
                return mutant, run(nearest(mutant.path), tree, limit), time.monotonic() - began
            finally:
                place.write_text(right)
                trees.put(tree)

        yield from threads.map(one, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draw", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one mutant")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--only", default="", help="list without running: `list`; or a part of a path"
    )
    options = parser.parse_args()
    found = drawn(options.draw, options.seed)
    if options.only:
        found = [one for one in found if options.only in str(one.path) or options.only == "list"]
    alive = []
    for one, outcome, seconds in (
        () if options.only == "list" else judged(found, options.processes, options.limit)
    ):
        print(f"{seconds:5.0f} s  {one}\n    {outcome}", flush=True)
        alive += [one] if outcome in {"alive", "out of time"} else []
    print(*(found if options.only == "list" else alive), sep="\n")
    print(f"{len(alive)} of {len(found)} are alive, and {MOST_ALIVE} may be")
    sys.exit(len(alive) > MOST_ALIVE)


if __name__ == "__main__":
    main()
