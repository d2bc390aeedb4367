"""`farthing try --judge`: what a judge costs, says, and how it errs."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from farthing.cli.console import remark
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.runtime.judged import JudgedReplay
    from farthing.runtime.replay import Again, Replay
    from farthing.runtime.tried import Tried

AGAIN = 0.05
"""Share of the sample on which the reference is asked again, and a judge's error is measured."""


def elsewhere(replay: "Replay") -> int:
    """Return how many logged answers are compared with those of other requests."""
    return max(1, round(AGAIN * len(replay.sample)))


def judged_before(path: Path, judged: "JudgedReplay | None") -> None:
    """Refuse another judge than the one whose verdicts a store has."""
    from farthing.runtime.tried import recall
    from farthing.traces.store import Store

    if not path.is_file():
        return
    with Store.read(path) as store:
        tried, verdicts = recall(store), store.graded()
    before, now = tried and tried.judge, judged and judged.name
    if before is not None and before != now and verdicts:
        raise InputError(
            f"{path}: {before} judged the answers that are there; give --judge with it again, or "
            "another --store"
        )


def judge(judged: "JudgedReplay", again: "Again | None", path: Path, cap_nano: int) -> None:
    """Have a judge compare all answers, and say how it errs where that can be told."""
    from farthing.runtime.tried import judged_whole
    from farthing.traces.store import Store

    unread = judged.judge(path, cap_nano)
    with Store.open(path) as store:
        judged_whole(store)
    found = judged.errors(again, elsewhere(judged.replay), path, cap_nano)
    name, role = judged.name, judged.replay.role
    if unread:
        remark(
            f"{name} said neither yes nor no {unread:,} times; whether those answers are the same "
            "is unknown, and a proof counts them at worst"
        )
    same, n = found.again
    if n:
        remark(f"{name} calls {role}'s second answers the same on {_share(same, n)}")
    same, n = found.others
    if n:
        remark(f"{name} calls answers to other requests the same on {_share(same, n)}")
    remark("how it errs on answers that are nearly the same only people can say: read some")


def loss() -> Fraction:
    """Return the share that may be called another answer, where nobody says."""
    from farthing.runtime.judged import LOSS

    return LOSS


def meaning(tried: "Tried") -> str:
    """Say what is right where a judge said so."""
    return f"note: right means that {tried.judge} calls it the same as {tried.reference}'s answer"


def _share(same: int, n: int) -> str:
    from farthing.promises.statistics.binomial import binomial_interval

    low, high = binomial_interval(same, n, 0.05)
    return f"{same} of {n} ({same / n:.1%}, 95 % interval {low:.1%} to {high:.1%})"
