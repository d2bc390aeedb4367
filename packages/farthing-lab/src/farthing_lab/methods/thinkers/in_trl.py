"""Thinkers in TRL's `GRPOTrainer`: as a reward function, or in place of its advantages.

A thinker whose advantages compare rewards after the same prompt is a reward function, and TRL
compares; its deviation has 1e-4 added where ours has 1e-6. Any other, as one that asks at cuts and
judges each part of a thought, takes a trainer whose advantages are the thinker's own. Of a method
with modes, the comparison or the reward reads all thoughts on a question. So its prompts stand side
by side in the data set (`completions.told_rows`), which is not shuffled, and a batch has all of
them.

Written against TRL 1.16: reward functions are called with `prompts`, `completion_ids`,
`trainer_state` and the columns of the data set, and advantages may be [B, T].
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import AT_END, Rewarded, Thinker, part_of
from farthing_lab.methods.thinkers.completions import Completions, Reading, unknown


@dataclass(frozen=True)
class ThinkerReward:
    """A thinker's rewards, as one of the `reward_funcs`.

    Raises:
        InputError: the thinker has advantages that no reward stands for.
    """

    thinker: Rewarded
    reading: Reading

    def __post_init__(self) -> None:
        given: Any = self.thinker
        if not isinstance(given, Rewarded) or given.cuts != AT_END:
            name = type(given).__name__
            raise InputError(
                f"{name} is no reward of a whole thought; train with ThinkerAdvantages"
            )

    @property
    def __name__(self) -> str:
        return type(self.thinker).__name__

    def __call__(
        self, *, prompts: Sequence[Any], completion_ids: Sequence[Sequence[int]], **columns: Any
    ) -> list[float]:
        """Return what each completion is worth."""
        written = Completions.of(prompts, completion_ids, columns)
        progress = _progress(columns.get("trainer_state"))
        found = self.reading.thoughts(written, self.thinker, progress=progress)
        rewards: list[float] = self.thinker.reward(found).tolist()
        return rewards


class ThinkerAdvantages:
    """Stands before `GRPOTrainer` among the bases of a trainer, whose advantages are a thinker's.

        class Trainer(ThinkerAdvantages, GRPOTrainer): ...

    Its reward is whether the answer is right, for the log; what learns reads the advantages. A
    thought that did not end by a cut is closed there, and asked for its answer by the model.
    """

    def __init__(
        self,
        *given: Any,
        thinker: Thinker,
        reading: Reading,
        answer_tokens: int = 16,
        **named: Any,
    ) -> None:
        """Make the trainer; what is not named here goes to TRL's.

        Raises:
            InputError: a batch does not have all modes of its questions, or several processes
                share it.
        """
        super().__init__(*given, reward_funcs=[_Right(reading)], **named)  # type: ignore[call-arg]
        self.thinker, self.reading, self.answer_tokens = thinker, reading, answer_tokens
        _check(self, thinker)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        prompts = _rows(output["prompt_ids"], output["prompt_mask"])
        ids = _rows(output["completion_ids"], output["completion_mask"])
        columns = {name: [row[name] for row in inputs] for name in inputs[0]}
        written = Completions.of([row["prompt"] for row in inputs], ids, columns)
        given = self._given(prompts, written, output.get("ref_per_token_logps"))
        before = output["advantages"]
        output["advantages"] = torch.as_tensor(given, dtype=before.dtype, device=before.device)
        return output

    def _given(
        self, prompts: list[list[int]], written: Completions, reference: Tensor | None
    ) -> FloatArray:
        """Return the advantage of each token, [n, T]."""
        reading, cuts = self.reading, self.thinker.cuts

        def ask(places: Sequence[tuple[int, int]]) -> list[list[int]]:
            contexts = [
                [*prompts[row], *written.ids[row][:stop], *reading.ends] for row, stop in places
            ]
            return self._answers(contexts)

        def surprisal() -> FloatArray:  # of each thought with what ends it
            if reference is None:
                return unknown()
            nats, ends = -reference.double().cpu().numpy(), reading.lengths(written)
            stops = [
                min(len(ids), end + len(reading.ends))
                for ids, end in zip(written.ids, ends, strict=True)
            ]
            return np.array([row[:stop].sum() for row, stop in zip(nats, stops, strict=True)])

        found = reading.thoughts(
            written,
            self.thinker,
            right=reading.right_at(written, cuts, ask),
            surprisal=surprisal,
            progress=_progress(self.state),  # type: ignore[attr-defined]
        )
        width = max(map(len, written.ids), default=0)
        return over_tokens(self.thinker.advantage(found), cuts, reading, written, width)

    @torch.no_grad()
    def _answers(self, contexts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Draw an answer after each context, as TRL draws completions."""
        from trl.models.utils import unwrap_model_for_generation  # noqa: PLC0415 - an extra

        trainer: Any = self
        how = copy(trainer.generation_config)
        how.max_new_tokens = self.answer_tokens
        filled = self.reading.tokenizer.pad(
            {"input_ids": contexts}, padding_side="left", return_tensors="pt"
        )
        with unwrap_model_for_generation(trainer.model_wrapped, trainer.accelerator) as model:
            drawn = model.generate(**filled.to(model.device), generation_config=how)
        answers: list[list[int]] = drawn[:, filled["input_ids"].shape[1] :].tolist()
        return answers


@dataclass(frozen=True)
class _Right:
    reading: Reading
    __name__ = "right"

    def __call__(
        self, *, prompts: Sequence[Any], completion_ids: Sequence[Sequence[int]], **columns: Any
    ) -> list[float]:
        written = Completions.of(prompts, completion_ids, columns)
        pairs = zip(written.ids, written.gold, strict=True)
        return [float(self.reading.right(ids, gold)) for ids, gold in pairs]


def over_tokens(
    advantage: FloatArray,
    cuts: Sequence[float],
    reading: Reading,
    written: Completions,
    width: int,
) -> FloatArray:
    """Give each token the advantage of the first cut that it stands before, [n, S] to [n, width].

    What ends a thought, and the answer after it, have that of where the thought ended. What was
    written after the last cut of a thought that had not ended was not judged, and has 0.
    """
    parts, last = part_of(cuts, reading.cap), int(cuts[-1] * reading.cap)
    at = np.arange(width)
    found = np.zeros((len(written.ids), width))
    for row, (ids, length) in enumerate(zip(written.ids, reading.lengths(written), strict=True)):
        judged = len(ids) if length <= last else last
        found[row, :judged] = advantage[row, parts[np.minimum(at[:judged], length)]]
    return found


def _rows(ids: Tensor, mask: Tensor) -> list[list[int]]:
    return [row[kept.bool()].tolist() for row, kept in zip(ids, mask, strict=True)]


def _progress(state: Any) -> float:
    most = getattr(state, "max_steps", 0) or 0
    return state.global_step / most if most > 0 else 0.0


def _check(trainer: Any, thinker: Thinker) -> None:
    if trainer.accelerator.num_processes > 1:
        raise InputError("thinkers compare a whole batch; train in one process")
    modes, args = len(thinker.modes), trainer.args
    prompts = args.generation_batch_size // args.num_generations
    if modes > 1 and (args.shuffle_dataset or prompts % modes):
        raise InputError(
            f"{type(thinker).__name__} compares {modes} modes of a question; give "
            f"shuffle_dataset=False and a generation_batch_size of {modes} prompts, or a multiple"
        )
