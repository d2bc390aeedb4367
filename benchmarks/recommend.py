"""What `recommend` costs, against every single method in hindsight, on recorded pools.

    .venv/bin/python benchmarks/recommend.py ../shared/data/traces [--draws 40] [--pooled]
        [--only NAME] [--table a|b|both] [--resume]

Parity with a strong model at confidence 0.9. Each draw withholds 500 test questions: nobody trains,
chooses or proves on them, and what is proved on the others is played on them afterwards. Questions
that a file marks to train do so, nine tenths of them anew each time; `--pooled` forgets the marks,
and 300 train. A method that proves nothing falls back to the strong model.

- Table (a): the same questions train and the same calibrate for all.
- Table (b): `recommend` is told who may train where the file marks it, and divides by itself. A
  rival has the cheaper of two divisions, by its mean over the draws: that of (a), and that of
  `recommend`, whose training questions train it while all others calibrate.

Rivals are the methods that were tried for one answer at commit 7f4138a, a list that stays. Each is
trained once a draw, and its points are then proved at every epsilon. The cheapest rival is the one
of the least mean cost over a cell's draws, which nobody knows beforehand.

Test parts of one pool overlap, so draws are not independent: errors of costs and ratios are those
over draws, for this pool. That of `kept` allows for the overlap; a binomial one would be too
narrow. Below 0 points what falls back promised nothing, and counts as kept.

A pool's cells go to the results once its draws are done, beside those of other runs. Each draw goes
to a file beside them as soon as it is played, and `--resume` goes on from there; nothing checks
that `recommend` is still the same. Rivals are trained once where both tables are asked for.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
from recommend_tables import OURS, Cell, figures, show, show_fixed, show_groups
from recordings import needed

from farthing.errors import UnprovedError
from farthing.methods.base import Dataset, Silent
from farthing.methods.pool import PoolPolicy
from farthing.process.operating_points import OperatingPoints
from farthing.promises.kinds.parity import Parity
from farthing.promises.paired import Paired, parity_point
from farthing.recommendation.bundle_run import run_bundle
from farthing.recommendation.metrics import stream
from farthing.recommendation.played import ReportingQuestions
from farthing.recommendation.recommend import recommend
from farthing.recommendation.splits import as_played
from farthing.traces.arrays import NO_SPLIT, SPLITS, IntArray, TraceArrays
from farthing.traces.assemble import load
from farthing.traces.fingerprint import seen_before
from farthing_lab.comparison.pools import (
    PER_THOUSAND,
    Fallback,
    Outcome,
    methods_of,
    parity,
    reference_model,
)

FILES = {
    "mmlu-nine-models": "gpt-4o",
    "medmcqa-nine-models": "gpt-4o",
    "zeroeval-ten-models": "gpt-4o-2024-08-06",
    "mmlupro-twelve-models": "gpt-4o-2024-05-13",
    "gym-seven-models": "claude-sonnet-4",
}
POOLED = ("mmlupro-twelve-models", "gym-seven-models")
"""Without marks, and large: part of a run with `--pooled`, or of one that names them."""
GROUPS = {
    "1 and 2 points": (Fraction(1, 100), Fraction(1, 50)),
    "0 points": (Fraction(0),),
    "-1 points": (Fraction(-1, 100),),
}
"""Which cells are averaged together."""
EPSILONS = tuple(sorted(epsilon for group in GROUPS.values() for epsilon in group))
DELTA = Fraction(1, 10)
TEST = 500
TRAIN = 300
REFERENCE = "the reference"
RIVALS = (
    "Pool gain",
    "FrugalGPT",
    "Agreement cascade",
    "AutoMix",
    "UCCI",
    "MiCP",
    "Conformal arbitrage",
    "Trust or Escalate",
    "RouteLLM (similarity)",
    "Best single model",
)
"""The labels of the methods of pools that were tried for one answer at 7f4138a."""
RESULTS = Path(__file__).parent / "results/recommend.json"

Outcomes = dict[str, Outcome]
"""By method."""
Tables = dict[str, dict[Fraction, Outcomes]]
"""What came of one draw, by table and epsilon; rivals of (b) as in the division of `recommend`."""


@dataclass(frozen=True)
class Draw:
    """Which questions train, calibrate and test."""

    train: IntArray
    calibrate: IntArray
    test: IntArray

    @property
    def known(self) -> IntArray:
        """The questions that do not test."""
        return np.sort(np.concatenate([self.train, self.calibrate]))

    def marked(self, traces: TraceArrays, *parts: IntArray) -> TraceArrays:
        """Return the questions that do not test, with the marks of `SPLITS` on these parts."""
        split = np.full(len(traces), NO_SPLIT, dtype=np.int8)
        for place, rows in enumerate(parts):
            split[rows] = place
        return replace(traces, split=split).take(self.known)


@dataclass(frozen=True)
class Pool:
    """Recorded questions, and how they are drawn from."""

    title: str
    traces: TraceArrays
    strong: str
    pooled: bool
    """Whether marks of the file count for nothing, or there are none."""

    @property
    def overlap(self) -> float:
        """Which share of a test part another has in common with it, on average."""
        marks = self.traces.split == SPLITS.index("train")
        return TEST / (len(marks) if self.pooled else int((~marks).sum()))

    def own_marks(self, draw: Draw, table: str) -> tuple[IntArray, ...]:
        """Return the parts that `recommend` is told of."""
        if table == "a":
            return draw.train, draw.calibrate
        return () if self.pooled else (draw.train,)


def draws(traces: TraceArrays, number: int, *, pooled: bool) -> Iterator[Draw]:
    """Draw the parts anew, within the marks unless they are forgotten."""
    marked = np.flatnonzero(traces.split == SPLITS.index("train"))
    for seed in range(number):
        rng = np.random.default_rng(seed)
        if marked.size and not pooled:
            train = rng.permutation(marked)[: int(0.9 * len(marked))]
            rest = rng.permutation(np.setdiff1d(np.arange(len(traces)), marked))
        else:
            train, rest = np.split(rng.permutation(len(traces)), [TRAIN])
        yield Draw(np.sort(train), np.sort(rest[TEST:]), np.sort(rest[:TEST]))


def rivals(
    pool: Pool, draw: Draw, seed: int, epsilons: Sequence[Fraction]
) -> dict[Fraction, Outcomes]:
    """Train every rival, and prove parity with each by itself."""
    rows = np.sort(np.concatenate([draw.calibrate, draw.test]))
    parts = np.searchsorted(rows, draw.calibrate), np.searchsorted(rows, draw.test)
    train, played = pool.traces.take(draw.train), pool.traces.take(rows)
    reference, learners = reference_model(played, pool.strong), methods_of(pool.strong)
    found: dict[Fraction, Outcomes] = {epsilon: {} for epsilon in epsilons}
    for label in RIVALS:
        policy = learners[label].fit(train, DELTA, seed, Silent()).policy
        assert isinstance(policy, PoolPolicy)
        points = policy.points(played)
        for epsilon in epsilons:
            tried = tested(points, reference, parts[0], epsilon)
            outcome = parity(tried, reference, parts, epsilon=epsilon, delta=DELTA)
            found[epsilon][label] = outcome
    return found


def tested(
    points: OperatingPoints, reference: Fallback, calibrate: IntArray, epsilon: Fraction
) -> OperatingPoints:
    """Return the points from the dearest down to the first that is not proved.

    Nothing below it counts, and a p-value of many questions takes up to a second.
    """
    right = reference.right[calibrate]
    for point in reversed(range(points.n_points)):
        one = points.cost_nano[calibrate, point, None], points.correct[calibrate, point, None]
        if parity_point(Paired(*one, right), epsilon, DELTA) is None:
            return points.keep(np.arange(point, points.n_points))
    return points


def ours(
    pool: Pool, draw: Draw, table: str, seed: int, epsilon: Fraction
) -> tuple[Outcome, Draw | None]:
    """Play on the test questions what `farthing recommend` finds; return its division too."""
    known = draw.marked(pool.traces, *pool.own_marks(draw, table))
    test = pool.traces.take(draw.test)
    reference = reference_model(test, pool.strong)
    try:
        found = recommend(Dataset("", known), Parity(pool.strong, epsilon, DELTA), seed=seed)
    except UnprovedError:
        return fallen_back(reference, epsilon), None
    bundle = found.bundle
    part = ReportingQuestions(test, as_played("the test questions", bundle, test))
    done = run_bundle(bundle, part, stream(bundle.kind, seed))
    margin = float(done.best_correct.mean()) - float(reference.right.mean()) + float(epsilon)
    cost = float(done.cost_nano.mean()) * PER_THOUSAND
    outcome = Outcome(cost, margin, found.name == f"always-{pool.strong}")
    marks = {"train": bundle.questions.get("train", frozenset())}
    trained = seen_before(known, marks)["train"]
    division = Draw(draw.known[trained], draw.known[~trained], draw.test)
    return outcome, division if trained.any() else None


def fallen_back(reference: Fallback, epsilon: Fraction) -> Outcome:
    """Return what comes of asking the reference for everything."""
    return Outcome(float(reference.cost_nano.mean()) * PER_THOUSAND, float(epsilon), fell_back=True)


def play(pool: Pool, draw: Draw, tables: Sequence[str], seed: int) -> Tables:
    """Return what every method comes to on one draw."""
    began = time.perf_counter()
    found: Tables = {"a": rivals(pool, draw, seed, EPSILONS)}
    test = reference_model(pool.traces.take(draw.test), pool.strong)
    for epsilon, outcomes in found["a"].items():
        outcomes[REFERENCE] = fallen_back(test, epsilon)
    spent = [f"rivals {time.perf_counter() - began:.1f} s"]
    for table in tables:
        began = time.perf_counter()
        divided: dict[Fraction, Draw] = {}
        own = found.setdefault(table, {epsilon: {} for epsilon in EPSILONS})
        for epsilon in EPSILONS:
            own[epsilon][OURS], division = ours(pool, draw, table, seed, epsilon)
            divided[epsilon] = division or draw
        spent.append(f"recommend ({table}) {time.perf_counter() - began:.1f} s")
        if table == "b":
            began = time.perf_counter()
            for epsilon, outcomes in in_its_division(pool, draw, divided, seed, found["a"]).items():
                own[epsilon] |= outcomes
            spent.append(f"rivals in its division {time.perf_counter() - began:.1f} s")
    print(f"{pool.title}: draw {seed + 1}: {', '.join(spent)}", file=sys.stderr, flush=True)
    return found


def in_its_division(
    pool: Pool,
    draw: Draw,
    divided: Mapping[Fraction, Draw],
    seed: int,
    before: dict[Fraction, Outcomes],
) -> dict[Fraction, Outcomes]:
    """Return what rivals come to where each epsilon's division trains them.

    Epsilons that share a division share the training; that of (a) is done before.
    """
    of: dict[bytes, list[Fraction]] = {}
    for epsilon, division in divided.items():
        of.setdefault(division.train.tobytes(), []).append(epsilon)
    found: dict[Fraction, Outcomes] = {}
    for train, epsilons in of.items():
        if train == draw.train.tobytes():
            found |= {e: {label: before[e][label] for label in RIVALS} for e in epsilons}
        else:
            found |= rivals(pool, divided[epsilons[0]], seed, epsilons)
    return found


def cell(found: Sequence[Tables], table: str, epsilon: Fraction) -> dict[str, list[Outcome]]:
    """Return each method's outcomes in the draws: a rival's in its cheaper division."""
    outcomes = {
        label: min(
            ([each[arm][epsilon][label] for each in found] for arm in sorted({"a", table})),
            key=lambda arm: float(np.mean([one.cost for one in arm])),
        )
        for label in RIVALS
    }
    return outcomes | {OURS: [each[table][epsilon][OURS] for each in found]}


def title_of(pool: str, strong: str, epsilon: Fraction, number: int, table: str) -> str:
    """Return the title of a cell in the results."""
    own = ", own division" if table == "b" else ""
    return f"{pool}: parity with {strong} minus {float(epsilon):g}, {number} draws{own}"


def cells_of(
    kept: Mapping[str, Cell], number: int, table: str, epsilons: Sequence[Fraction]
) -> dict[str, Cell]:
    """Return the cells of all pools at some epsilons, by title, as far as there are results."""
    titles = [
        title_of(name + marks, strong, epsilon, number, table)
        for name, strong in FILES.items()
        for marks in ("", ", pooled")
        for epsilon in epsilons
    ]
    return {title: kept[title] for title in titles if title in kept}


def played_before(file: Path) -> list[Tables]:
    """Return the draws that an earlier run got to, in their order."""
    return [
        {
            table: {
                Fraction(epsilon): {label: Outcome(*one) for label, one in each.items()}
                for epsilon, each in of.items()
            }
            for table, of in json.loads(line).items()
        }
        for line in (file.read_text().splitlines() if file.exists() else ())
    ]


def keep(file: Path, found: Tables) -> None:
    """Append a draw to its file."""
    told = {
        table: {
            str(epsilon): {label: astuple(one) for label, one in each.items()}
            for epsilon, each in of.items()
        }
        for table, of in found.items()
    }
    with file.open("a") as lines:
        lines.write(json.dumps(told) + "\n")


def play_all(pool: Pool, number: int, tables: Sequence[str], *, resume: bool) -> list[Tables]:
    """Return what every method comes to on each draw."""
    which = f"{pool.title.replace(', ', '-')}-{''.join(tables)}"
    file = RESULTS.with_name(f"{RESULTS.stem}-{which}.jsonl")
    if not resume:
        file.unlink(missing_ok=True)
    found = played_before(file)[:number]
    for seed, draw in enumerate(draws(pool.traces, number, pooled=pool.pooled)):
        if seed >= len(found):
            found.append(play(pool, draw, tables, seed))
            keep(file, found[seed])
    return found


def results() -> dict[str, Cell]:
    """Return what all runs so far came to."""
    found: dict[str, Cell] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    return found


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--draws", type=int, default=40)
    arguments.add_argument("--pooled", action="store_true")
    arguments.add_argument("--only", default="")
    arguments.add_argument("--table", choices=("a", "b", "both"), default="both")
    arguments.add_argument("--resume", action="store_true")
    given = arguments.parse_args()
    tables = ["a", "b"] if given.table == "both" else [given.table]
    names = [
        name
        for name in FILES
        if given.only in name and (given.pooled or given.only or name not in POOLED)
    ]
    needed(*(given.folder / f"{name}.jsonl.gz" for name in names))
    for name in names:
        strong, traces = FILES[name], load(given.folder / f"{name}.jsonl.gz")
        forgets = given.pooled or name in POOLED
        unmarked = not (traces.split == SPLITS.index("train")).any()
        titles = [name, f"{name}, pooled"]
        pool = Pool(titles[forgets], traces, strong, pooled=forgets or unmarked)
        found = play_all(pool, given.draws, tables, resume=given.resume)
        for table, epsilon in product(tables, EPSILONS):
            reference = [each["a"][epsilon][REFERENCE] for each in found]
            rows = figures(cell(found, table, epsilon), reference, pool.overlap)
            title = title_of(pool.title, strong, epsilon, given.draws, table)
            show(title, rows)
            kept = results()  # another run may have added to them
            if unmarked:  # the other title is of the same draws
                other = title_of(titles[not forgets], strong, epsilon, given.draws, table)
                kept.pop(other, None)
            RESULTS.write_text(json.dumps(kept | {title: rows}, indent=1) + "\n")
    for table in tables:
        groups = {
            group: cells_of(results(), given.draws, table, epsilons)
            for group, epsilons in GROUPS.items()
        }
        show_groups(f"Table ({table}), over cells of {given.draws} draws", groups)
        show_fixed(groups["1 and 2 points"])


if __name__ == "__main__":
    main()
