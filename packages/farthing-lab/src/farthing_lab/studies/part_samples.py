"""What each part of a task comes to, with each model and each number of samples.

Each part was recorded as sample traces, a file a model. An option of a part is a model and a number
of samples, whose vote is the part's answer; the task is right if all its parts are.

Where files of all parts have the same ids, a task is a row through all of them, and what parts have
in common counts: the chance of a task is the product of its own parts' chances. Where they have
not, it is the product of the parts' means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from farthing.errors import ConfigError, InputError
from farthing.models.toml import convert, read_toml
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.assemble import load
from farthing.traces.grades.overlay import ungraded_questions
from farthing.traces.pool import leaders, sampled
from farthing_lab.methods.allocators.agent_tts import Space
from farthing_lab.methods.allocators.base import ItemBatch
from farthing_lab.studies.self_consistency import grades_by_answer, permuted
from farthing_lab.studies.study import WIDE, mean_and_half

LEAST = 1e-3
"""A part's chance counts as at least this where logarithms or quotients are taken."""
ORDERS = 20
"""Orders in which recorded samples are drawn."""
FEWEST = 4
"""Questions that a part has to have."""
Ids = NDArray[np.str_]


class _SampledPartSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: dict[str, str]
    """Model to its file of sample traces."""
    credit: float = 1.0
    """How much a mistake here weighs, beside the other parts."""


@dataclass(frozen=True)
class PipelinePart:
    """One part of a task, as it was recorded."""

    name: str
    models: Mapping[str, TraceArrays]
    """Sample traces of each model."""
    credit: float = 1.0


def read_parts(file: Path) -> tuple[PipelinePart, ...]:
    """Read a TOML file of parts and the traces that it names, which lie beside it."""
    tables = read_toml(file)
    if unknown := sorted(tables.keys() - {"parts"}):
        raise ConfigError(str(file), unknown[0], "there is no such section; use [parts.NAME]")
    sections = convert(tables.get("parts", {}), dict[str, _SampledPartSection], str(file), "parts")
    if len(sections) < 2:
        raise ConfigError(str(file), "parts", "a task has two parts or more; add [parts.NAME]")
    return tuple(
        PipelinePart(
            name, {m: load(file.parent / path) for m, path in one.models.items()}, one.credit
        )
        for name, one in sections.items()
    )


@dataclass(frozen=True)
class MeasuredParts:
    """What each option of each part comes to; m parts with K options at most, n tasks."""

    parts: tuple[str, ...]
    credit: FloatArray
    """[m]"""
    models: tuple[str, ...]
    model: IntArray
    """[m, K] who is asked."""
    samples: IntArray
    """[m, K] how often; 0 where a part has no such option."""
    right: tuple[FloatArray, ...]
    """Of each part [K, n] the chance that the vote is right, a task each."""
    cost_nano: tuple[FloatArray, ...]
    """Of each part [K, n] what its samples cost, a task each."""
    together: bool
    """Whether row i of all parts is the same task."""

    def label(self, part: int, option: int) -> str:
        times = int(self.samples[part, option])
        name = self.models[int(self.model[part, option])]
        return name if times == 1 else f"{name} x{times}"

    def space(self, batch: ItemBatch, budget_nano: int) -> Space:
        names = tuple(
            tuple(self.label(i, k) for k in range(batch.value.shape[1])) for i in range(len(batch))
        )
        return Space(batch, budget_nano, self.model, self.parts, names)

    def half(self, which: Literal["choose", "measure"], seed: int) -> "MeasuredParts":
        """Return half of the tasks, drawn at random: those to choose by, or those to measure on."""
        rows = []
        for right in self.right:
            order = np.random.default_rng(seed).permutation(right.shape[1])
            cut = (len(order) + 1) // 2
            rows.append(order[:cut] if which == "choose" else order[cut:])
        return replace(
            self,
            right=tuple(one[:, at] for one, at in zip(self.right, rows, strict=True)),
            cost_nano=tuple(one[:, at] for one, at in zip(self.cost_nano, rows, strict=True)),
        )

    def batch(self) -> ItemBatch:
        """Return parts as items; options are worth the mean chance of a right vote."""
        value = np.array([one.mean(axis=1) for one in self.right])
        mean = np.array([one.mean(axis=1) for one in self.cost_nano])
        most = np.array([one.max(axis=1) for one in self.cost_nano])
        expected = np.ceil(mean - 1e-6).astype(np.int64)
        return ItemBatch(
            value, expected, np.maximum(expected, most.astype(np.int64)), self.samples > 0
        )

    def tasks(self, choice: IntArray) -> FloatArray:
        """Return the chance that a task is right, [n] each, or [1] where rows are not the same."""
        rows = [one[k] for one, k in zip(self.right, choice.tolist(), strict=True)]
        product = np.prod(rows if self.together else [[one.mean()] for one in rows], axis=0)
        return np.asarray(product, dtype=np.float64)

    def interval(self, choice: IntArray) -> tuple[float, float]:
        each = self.tasks(choice)
        if self.together:
            return mean_and_half(each)
        rows = [one[k] for one, k in zip(self.right, choice.tolist(), strict=True)]
        relative = sum(
            float(one.var(ddof=1)) / len(one) / max(float(one.mean()), LEAST) ** 2 for one in rows
        )
        return float(each[0]), WIDE * float(each[0]) * relative**0.5


def measure(parts: Sequence[PipelinePart], *, orders: int = ORDERS, seed: int = 0) -> MeasuredParts:
    """Return what votes of recorded samples come to, drawn in many orders."""
    models = tuple(dict.fromkeys(name for part in parts for name in part.models))
    if lacking := [part.name for part in parts if not part.models]:
        raise InputError(f"{lacking[0]}: it names no model; name a file of sample traces of each")
    shared = shared_ids(parts)
    width = sum(max(p.models[m].horizon if m in p.models else 0 for p in parts) for m in models)
    model = np.zeros((len(parts), width), dtype=np.int64)
    samples = np.zeros_like(model)
    rights, costs = [], []
    for i, part in enumerate(parts):
        rows = shared
        if not shared.size:
            own = set.intersection(*(set(one.ids.tolist()) for one in part.models.values()))
            if len(own) < FEWEST:
                raise InputError(
                    f"{part.name}: its models have {len(own)} questions in common; "
                    f"give {FEWEST} or more"
                )
            rows = np.array(sorted(own))
        right, cost = np.zeros((width, len(rows))), np.zeros((width, len(rows)))
        at = 0
        for number, name in enumerate(models):
            if name not in part.models:
                continue
            arrays = in_rows(part, name, rows)
            share, paid = _votes(arrays, orders, seed)
            end = at + len(share)
            model[i, at:end], samples[i, at:end] = number, np.arange(1, len(share) + 1)
            right[at:end], cost[at:end] = share, paid
            at = end
        rights.append(right)
        costs.append(cost)
    credit = np.array([part.credit for part in parts])
    names = tuple(part.name for part in parts)
    return MeasuredParts(
        names, credit, models, model, samples, tuple(rights), tuple(costs), bool(shared.size)
    )


def shared_ids(parts: Sequence[PipelinePart]) -> Ids:
    """Return the ids that all files have; none where that is fewer than half of any."""
    sets = [set(one.ids.tolist()) for part in parts for one in part.models.values()]
    common = set.intersection(*sets)
    enough = len(common) >= FEWEST and 2 * len(common) >= max(map(len, sets))
    return np.array(sorted(common) if enough else [], dtype=np.str_)


def in_rows(part: PipelinePart, model: str, ids: Ids) -> TraceArrays:
    """Return a model's samples of these questions, in this order, checked."""
    arrays = part.models[model]
    place = {one: at for at, one in enumerate(arrays.ids.tolist())}
    taken = arrays.take(np.array([place[one] for one in ids.tolist()]))
    if ungraded_questions(taken).any():
        raise InputError(f"{part.name}, {model}: not graded; record `gold` or `correct`")
    if not taken.complete.all():
        raise InputError(f"{part.name}, {model}: some questions lack samples; record as many each")
    return taken


def _votes(arrays: TraceArrays, orders: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the chance that a vote of 1 to K samples is right, and its cost: two of [K, n]."""
    answer, right, cost = _samples(arrays)
    n, most = answer.shape
    rng, share = np.random.default_rng(seed), np.zeros((most, n))
    graded = grades_by_answer(answer, right > 0)
    for _ in range(orders):
        lead = leaders(np.take_along_axis(answer, permuted(rng, answer.shape), 1))
        share += graded[np.arange(n)[:, None], lead].T
    paid = np.arange(1, most + 1)[:, None] * cost.mean(axis=1)[None, :]
    return share / orders, paid


def _samples(arrays: TraceArrays) -> tuple[IntArray, FloatArray, IntArray]:
    """Return answers, grades and costs, [n, K]; one sample a question will do here."""
    if arrays.horizon == 1 and arrays.n_roles == 1:
        answer = arrays.answer[:, :, 0].astype(np.int64)
        return answer, arrays.correct[:, :, 0].astype(float), arrays.cost_nano[:, :, 0]
    answer, right, cost = sampled(arrays)
    return answer, right.astype(float), cost


def logarithmic(batch: ItemBatch) -> ItemBatch:
    """Return the batch whose values add up as the logarithms of chances do, within 0 and 1.

    The largest sum is the largest product, so that a knapsack finds the likeliest whole task.
    """
    value = 1.0 - np.log(np.maximum(batch.value, LEAST)) / np.log(LEAST)
    return ItemBatch(
        np.clip(value, 0.0, 1.0), batch.expected_nano, batch.largest_nano, batch.offered
    )
