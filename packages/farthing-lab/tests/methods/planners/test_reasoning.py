"""Trees of reasoning steps: what a line costs, how it ends, and that a search pays for all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from farthing_lab.lm.symbols import encode
from farthing_lab.methods.planners.base import Remaining
from farthing_lab.methods.planners.bavt import ValueTree
from farthing_lab.methods.planners.flare import LookAhead
from farthing_lab.methods.simulators.reasoning import (
    LINE_TOKENS,
    MOST_LINES,
    BatchedWriter,
    DraftText,
    Reasoning,
    Tariff,
    progress,
)

PROMPT = tuple(encode("a=4;a?"))


@dataclass(eq=False)
class Scripted:
    """Writes `a=4;`, then an answer; every third line is wrong, and the critic knows."""

    tokens: int = 0

    def line(
        self, prompt: Sequence[int], written: Sequence[int], temperature: float, seed: int
    ) -> tuple[tuple[int, ...], float]:
        wrong = seed % 3 == 0
        text = encode("<answer>")[0]
        if written and written[-1] == text:
            new = encode("4</answer>")
        elif not written:
            new = encode("a=5;" if wrong else "a=4;")
        else:
            new = encode("<answer>4</answer>")
        self.tokens += len(new)
        return tuple(new), 0.1 if wrong else 0.9


def test_a_line_costs_what_is_written_and_what_is_read() -> None:
    process = Reasoning(PROMPT, Scripted(), Tariff(read_nano=2, written_nano=3))
    step = process.step(process.begin, 0, np.random.default_rng(0))
    assert step.cost_nano == 2 * len(PROMPT) + 3 * len(step.state.ids)
    assert process.actions(process.begin)[0].largest_nano == 2 * len(PROMPT) + 3 * LINE_TOKENS
    assert step.state.answer == ""


def test_it_can_end_at_once_from_everywhere_and_must_after_too_many_lines() -> None:
    process, rng = Reasoning(PROMPT, Scripted()), np.random.default_rng(0)
    ended = process.step(process.begin, process.ending(process.begin), rng)
    assert ended.state.ended
    assert ended.state.answer == "4"
    assert ended.cost_nano <= process.actions(process.begin)[-1].largest_nano
    assert not process.actions(ended.state)
    long = DraftText(lines=MOST_LINES)
    assert [one.name for one in process.actions(long)] == ["end"]


@pytest.mark.parametrize("budget", [3, 27, 30, 80, 400])
def test_a_search_pays_for_all_that_is_written(budget: int) -> None:
    for planner in (ValueTree(critic=progress), LookAhead()):
        writer = Scripted()
        process = Reasoning(PROMPT, writer)
        found = planner.search(process, process.begin, Remaining(budget), np.random.default_rng(1))
        forced = sum(state.ids[-3:-2] == (encode("<answer>")[0],) for state, _ in found.ends)
        assert writer.tokens <= found.spent_nano <= writer.tokens + forced
        assert found.spent_nano <= budget
        assert found.state.answer == "4"


def test_the_score_is_that_of_the_least_likely_line() -> None:
    process = Reasoning(PROMPT, Scripted())
    assert process.score(DraftText(least=0.3)) == 0.3
    assert process.value(DraftText(least=0.3)) == 0.0
    assert process.value(DraftText(least=0.3, ended=True)) == 0.3


class Sharing(BatchedWriter):
    """Writes the seed that it is given, all that wait at once; breaks where a seed says so."""

    def _lines(self, asked: Sequence[Any]) -> list[tuple[tuple[int, ...], float]]:
        assert len(asked) == self.searching
        if any(one.seed < 0 for one in asked):
            raise MemoryError("no room")
        return [((one.seed,), 1.0) for one in asked]


def test_searches_that_share_a_network_get_each_their_own_line() -> None:
    def search(number: int, together: BatchedWriter) -> list[int]:
        lines = range(10 * number, 11 * number + 1)  # some end sooner than others
        return [together.line([0], [], 1.0, seed)[0][0] for seed in lines]

    together = Sharing(None)
    found = together.map(lambda number: search(number, together), 6)
    assert found == [list(range(10 * number, 11 * number + 1)) for number in range(6)]


def test_a_network_that_breaks_ends_all_searches() -> None:
    together = Sharing(None)
    with pytest.raises(MemoryError, match="no room"):
        together.map(lambda number: together.line([0], [], 1.0, number - 2), 4)
