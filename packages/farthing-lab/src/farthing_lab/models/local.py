"""A language model run in this process, with log-probabilities.

It is of the transformers library, or one of the package's own, which need numpy alone.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec
from jinja2.sandbox import ImmutableSandboxedEnvironment

from farthing.errors import (
    BadRequestError,
    ContextTooLongError,
    InputError,
    MissingExtraError,
    ModelError,
)
from farthing.models.base import Completion, Finish, Prompt, TokenLogprob, Usage
from farthing.models.prices import Price, PriceTable, largest_cost_nano
from farthing_lab.models import lfm2, smollm2
from farthing_lab.models.generation_rows import Generated, GenerationRow, Reason
from farthing_lab.models.lfm2 import Lfm2Network, is_lfm2
from farthing_lab.models.weights import load


@dataclass(frozen=True)
class SymbolTokenizer:
    """Reads and writes symbols by their numbers."""

    numbers: Mapping[str, int]
    unknown: int
    """The number of what is no symbol."""
    special: frozenset[int]
    """Numbers that `decode` can leave out: filling, and the end."""
    eos_token_id: int
    chat_template: str
    symbol: re.Pattern[str]
    not_read: re.Pattern[str]

    @classmethod
    def read(cls, folder: Path) -> "SymbolTokenizer":
        """Read the tokenizer of a folder of weights.

        Raises:
            ValueError: it is of another kind.
        """
        told: Any = json.loads(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
        names = json.loads(folder.joinpath("tokenizer_config.json").read_text(encoding="utf-8"))
        template = folder.joinpath("chat_template.jinja").read_text(encoding="utf-8")
        try:
            numbers = told["model"]["vocab"]
            return cls(
                numbers=numbers,
                unknown=numbers[told["model"]["unk_token"]],
                special=frozenset(each["id"] for each in told["added_tokens"] if each["special"]),
                eos_token_id=numbers[names["eos_token"]],
                chat_template=template,
                symbol=re.compile(told["pre_tokenizer"]["pattern"]["Regex"]),
                not_read=re.compile(told["normalizer"]["pattern"]["Regex"]),
            )
        except (KeyError, TypeError) as lacking:
            problem = f"{folder}/tokenizer.json: no tokenizer of symbols (it lacks {lacking})"
            raise ValueError(problem) from None

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, str]], **_: bool
    ) -> dict[str, list[int]]:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        text = environment.from_string(self.chat_template).render(messages=messages)
        return {"input_ids": self.encode(text)}

    def encode(self, text: str, **_: bool) -> list[int]:
        read = self.not_read.sub("", text)
        return [self.numbers.get(symbol, self.unknown) for symbol in self.symbol.findall(read)]

    def get_vocab(self) -> Mapping[str, int]:
        return self.numbers

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        left_out: frozenset[int] = self.special if skip_special_tokens else frozenset()
        return "".join(self._symbols[number] for number in ids if number not in left_out)

    @cached_property
    def _symbols(self) -> dict[int, str]:
        return {number: symbol for symbol, number in self.numbers.items()}


def is_of_symbols(folder: Path) -> bool:
    """Return whether a folder's tokenizer is one of symbols."""
    try:
        told: Any = json.loads(folder.joinpath("tokenizer.json").read_text(encoding="utf-8"))
        return bool(told["model"]["type"] == "WordLevel" and told["normalizer"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


Asked = TypeVar("Asked")
Answered = TypeVar("Answered")


class BatchedJob(Generic[Asked, Answered]):
    """Something that was asked, and what waits for its answer."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.given_up = False
        """Whoever asked waits no longer: the worker need not finish it."""
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Answered] = self._loop.create_future()

    def resolve(self, answer: Answered) -> None:
        """Hand over the answer, from any thread; a second one counts for nothing."""
        self._loop.call_soon_threadsafe(self._settle, lambda: self.answer.set_result(answer))

    def fail(self, error: Exception) -> None:
        self._loop.call_soon_threadsafe(self._settle, lambda: self.answer.set_exception(error))

    def _settle(self, settle: Callable[[], None]) -> None:
        if not self.answer.done():
            settle()


class Batching(Generic[Asked, Answered]):
    """Calls `work` in a thread, with one batch after another, in the order of arrival.

    Args:
        work: resolves each job of a batch, one by one as it has them; what it raises fails those
            that are left. It looks at `given_up` now and then.
        most: jobs in a batch at most.
    """

    def __init__(
        self, work: Callable[[Sequence[BatchedJob[Asked, Answered]]], None], most: int
    ) -> None:
        self._work = work
        self._most = most
        self._waiting: list[BatchedJob[Asked, Answered]] = []
        self._worker: asyncio.Task[None] | None = None

    async def ask(self, what: Asked) -> Answered:
        """Wait for a place in a batch, and for the answer; cancelling gives up this job alone."""
        job: BatchedJob[Asked, Answered] = BatchedJob(what)
        self._waiting.append(job)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._serve())
        try:
            return await job.answer
        finally:
            job.given_up = True

    async def aclose(self) -> None:
        if self._worker is not None and not self._worker.done():
            await asyncio.wait([self._worker])

    async def _serve(self) -> None:
        # All who ask at one moment have come before this task first runs.
        while waiting := [job for job in self._waiting if not job.given_up]:
            batch, self._waiting = waiting[: self._most], waiting[self._most :]
            try:
                await asyncio.to_thread(self._work, batch)
            except Exception as error:  # noqa: BLE001 - those who asked get it
                for job in batch:
                    job.fail(error)
            finally:
                for job in batch:
                    job.given_up = True


BATCH = 64
"""Prompts that are answered together, at most."""
_MARGIN = 4
"""Tokens to read before a stop text: the first of a few may read differently than within a text."""


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a local model, as a configuration file gives them."""

    paths: ClassVar = ("path",)
    carried: ClassVar = (smollm2.NAME,)

    model: str
    """What prices and traces call it."""
    path: str
    """Folder of the weights (safetensors) or of an adapter, a name on the Hub, or `smollm2`."""
    device: str = "cpu"
    """Where it runs: `cpu`, `cuda`, `cuda:1`, ..."""
    dtype: str = "auto"
    """Type of its numbers: `float32`, `bfloat16`, ...; `auto`: as they are stored."""
    timeout_s: float = 600.0
    """Most seconds of a call, after which it stops with what it has."""
    batch: Annotated[int, msgspec.Meta(ge=1)] = BATCH
    """Most prompts that are answered together."""

    def price(self, prices: PriceTable) -> Price | None:
        return prices.find(self.model)

    def open(self, prices: PriceTable) -> "LocalModel":
        """Load the weights and return the model; its price is the user's own.

        On a processor the package's own kind of network runs on numpy; any other wants PyTorch.
        """
        try:
            network, tokenizer = self._loaded()
        except ImportError:  # torch, which transformers looks for only when it loads
            raise MissingExtraError("running a local model", "lm", "farthing-lab") from None
        except (OSError, ValueError) as error:
            problem = str(error).splitlines()[0]
            raise InputError(f"the model '{self.path}' cannot be loaded: {problem}") from None
        return LocalModel(
            network,
            tokenizer,
            self.model,
            price=self.price(prices),
            timeout_s=self.timeout_s,
            batch=self.batch,
        )

    def _loaded(self) -> tuple[Any, Any]:
        folder = Path(self.path)
        plain = self.device == "cpu" and self.dtype in {"auto", "float32"}
        if plain and is_lfm2(folder) and is_of_symbols(folder):
            return Lfm2Network.read(folder), SymbolTokenizer.read(folder)
        return load(self.path, self.dtype, self.device)


CLOSES = ("</think>", "<answer>")
"""What ends a thought, in the models that think aloud; the second is that of the embedded ones."""


class LocalModel:
    """Generates in a thread of its own; prompts that come meanwhile go together in the next batch.

    A prompt's answer does not depend on what it shares a batch with. Sampling with a seed repeats
    itself; without one it draws from torch's own generator. Where time is paid for, prompts that
    are under way together share it.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        name: str,
        *,
        price: Price | None = None,
        timeout_s: float = 600.0,
        batch: int = BATCH,
    ) -> None:
        self._network = network
        self._tokenizer = tokenizer
        self._name = name
        self._price = price
        self._timeout_s = timeout_s
        self._batches: Batching[Prompt, Completion] = Batching(self._answer, batch)
        self._ends = ends_of(network, tokenizer)
        symbols = tokenizer.get_vocab()
        self.closes_thought = next((close for close in CLOSES if close in symbols), None)
        """The text that ends its thoughts; None: it does not think aloud."""
        if isinstance(network, Lfm2Network):
            self._context: int | None = network.context
        else:
            network.eval()
            self._context = getattr(network.config, "max_position_embeddings", None)

    @property
    def name(self) -> str:
        return self._name

    @property
    def context(self) -> int | None:
        """Most tokens of prompt and answer together; None where the weights name no limit."""
        return self._context

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task stops its generation at the next token.

        Where the assistant spoke last, the completion goes on from there.
        """
        return await self._batches.ask(prompt)

    def tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def largest_cost_nano(self, prompt: Prompt) -> int:
        return largest_cost_nano(self._price, self._name, prompt, self._timeout_s)

    async def aclose(self) -> None:
        await self._batches.aclose()
        self._network = None

    def _answer(self, jobs: Sequence[BatchedJob[Prompt, Completion]]) -> None:
        """Answer a batch; every prompt as soon as it has ended."""
        started = last = time.perf_counter()
        asked = self._rows(jobs, started + self._timeout_s)
        paid_s = 0.0
        ended = self._continued([row for _, row in asked])
        for before, (number, done) in enumerate(ended):
            now = time.perf_counter()
            paid_s += (now - last) / (len(asked) - before)
            last = now
            job, row = asked[number]
            usage = Usage(len(row.ids), len(done.ids))
            text = self._tokenizer.decode(done.ids, skip_special_tokens=True)
            text, finish = finished(text, done.reason, job.asked.stop)
            answer = Completion(
                text=text,
                model=self._name,
                finish=finish,
                usage=usage,
                cost_nano=self._price.cost_nano(usage, paid_s) if self._price else None,
                reading_nano=self._price.cost_nano(usage.read(), 0.0) if self._price else None,
                latency_s=now - started,
                logprobs=self._logprobs(done) if job.asked.top_logprobs else (),
            )
            job.resolve(answer)

    def _continued(self, rows: Sequence[GenerationRow]) -> Iterator[tuple[int, Generated]]:
        if isinstance(self._network, Lfm2Network):
            return lfm2.as_they_end(self._network, rows)
        from farthing_lab.models.generation import as_they_end  # noqa: PLC0415 - torch is an extra

        return as_they_end(self._network, rows)

    def _rows(
        self, jobs: Sequence[BatchedJob[Prompt, Completion]], deadline: float
    ) -> list[tuple[BatchedJob[Prompt, Completion], GenerationRow]]:
        """Return the jobs that can be answered, each with its row; the others fail."""
        asked = []
        for job in jobs:
            prompt = job.asked
            try:
                row = GenerationRow(
                    ids=self._encode(prompt),
                    max_tokens=prompt.max_tokens,
                    temperature=prompt.temperature,
                    top_p=prompt.top_p,
                    seed=prompt.seed,
                    ends=self._ends,
                    stop=self._stop(job, deadline),
                    top_logprobs=prompt.top_logprobs,
                )
            except ModelError as error:
                job.fail(error)
            except Exception as error:  # noqa: BLE001 - a chat template may raise what it likes
                job.fail(BadRequestError(f"model '{self._name}' cannot read the prompt: {error}"))
            else:
                asked.append((job, row))
        return asked

    def _stop(
        self, job: BatchedJob[Prompt, Completion], deadline: float
    ) -> Callable[[Sequence[int]], bool]:
        marks = job.asked.stop
        # A token is at least a byte, so that a text of n bytes is within the last n tokens.
        tail = max((len(mark.encode()) for mark in marks), default=0) + _MARGIN

        def stop(taken: Sequence[int]) -> bool:
            if job.given_up or time.perf_counter() > deadline:
                return True
            if not marks:
                return False
            text = self._tokenizer.decode(taken[-tail:], skip_special_tokens=True)
            return any(mark in text for mark in marks)

        return stop

    def _encode(self, prompt: Prompt) -> list[int]:
        begun = prompt.messages[-1].content if prompt.messages[-1].role == "assistant" else ""
        asked = prompt.messages[:-1] if begun and len(prompt.messages) > 1 else prompt.messages
        messages = [{"role": m.role, "content": m.content} for m in asked]
        if self._tokenizer.chat_template:
            inputs = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_dict=True
            )
        else:
            lines = [f"{m.role}: {m.content}" for m in asked]
            inputs = self._tokenizer("\n".join([*lines, "assistant:"]))
        ids: list[int] = inputs["input_ids"]
        if asked is not prompt.messages:
            ids = [*ids, *self._tokenizer.encode(begun, add_special_tokens=False)]
        if self._context is not None and len(ids) + prompt.max_tokens > self._context:
            raise ContextTooLongError(
                f"model '{self._name}': {len(ids)} tokens and {prompt.max_tokens} to come do not "
                f"fit its context of {self._context}: shorten the prompt"
            )
        return ids

    def _logprobs(self, done: Generated) -> tuple[TokenLogprob, ...]:
        return tuple(
            TokenLogprob(
                self._tokenizer.decode([token]),
                logprob,
                tuple((self._tokenizer.decode([other]), value) for other, value in top),
            )
            for token, logprob, top in zip(done.ids, done.logprobs, done.top, strict=True)
        )


def finished(text: str, reason: Reason, marks: Sequence[str]) -> tuple[str, Finish]:
    """Return a generated text without the first of the marks that it stops at, and why it ended.

    >>> finished("so <answer>1</answer>", "stop", ["</answer>"]), finished("so", "length", [])
    (('so <answer>1', 'stop'), ('so', 'length'))
    """
    ends = [at for mark in marks if (at := text.find(mark)) >= 0]
    if ends:
        return text[: min(ends)], "stop"
    return text, "stop" if reason == "end" else "length" if reason == "length" else "other"


def ends_of(network: Any, tokenizer: Any) -> frozenset[int]:
    """Return the tokens that end an answer, as weights and tokenizer say."""
    said = None if isinstance(network, Lfm2Network) else network.generation_config.eos_token_id
    ends = [*(said if isinstance(said, list) else [said]), tokenizer.eos_token_id]
    return frozenset(end for end in ends if end is not None)
