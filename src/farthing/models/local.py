"""A model of the transformers library, run in this process, with log-probabilities."""

import asyncio
import threading
import time
from typing import Any

import msgspec

from farthing.errors import ContextTooLongError, InputError, MissingExtraError
from farthing.models.base import Completion, Finish, Prompt, TokenLogprob, Usage
from farthing.models.prices import Price, PriceTable, largest_cost_nano


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a local model, as a configuration file gives them."""

    model: str
    """What prices and traces call it."""
    path: str
    """Folder of the weights (safetensors), or their name on the Hugging Face Hub."""
    device: str = "cpu"
    """Where it runs: `cpu`, `cuda`, `cuda:1`, ..."""
    dtype: str = "auto"
    """Type of its numbers: `float32`, `bfloat16`, ...; `auto`: as they are stored."""
    timeout_s: float = 600.0
    """Most seconds of a call, after which it stops with what it has."""

    def price(self, prices: PriceTable) -> Price | None:
        """Return what the model costs; None where nothing says so."""
        return prices.find(self.model)

    def open(self, prices: PriceTable) -> "LocalModel":
        """Load the weights and return the model; its price is the user's own.

        Raises:
            InputError: there are no such weights.
            MissingExtraError: torch or transformers is absent.
        """
        transformers = _import_transformers()
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.path)
            network = transformers.AutoModelForCausalLM.from_pretrained(
                self.path, dtype=self.dtype, use_safetensors=True
            )
        except ImportError:  # torch, which transformers looks for only now
            raise MissingExtraError("running a local model", "lm") from None
        except (OSError, ValueError) as error:
            problem = str(error).splitlines()[0]
            raise InputError(f"the model '{self.path}' cannot be loaded: {problem}") from None
        return LocalModel(
            network.to(self.device),
            tokenizer,
            self.model,
            price=self.price(prices),
            timeout_s=self.timeout_s,
        )


class LocalModel:
    """Generates in a thread of its own, one prompt at a time; the event loop goes on.

    Sampling with a seed repeats itself; without one it draws from torch's own generator.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        name: str,
        *,
        price: Price | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        self._network = network.eval()
        self._tokenizer = tokenizer
        self._name = name
        self._price = price
        self._timeout_s = timeout_s
        self._turn = asyncio.Lock()

    @property
    def name(self) -> str:
        """Name of the model, as prices and traces call it."""
        return self._name

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; cancelling the task stops the generation at its next token.

        Raises:
            ContextTooLongError: prompt and answer do not fit the model's context.
        """
        async with self._turn:
            stop = threading.Event()
            work = asyncio.create_task(asyncio.to_thread(self._generate, prompt, stop))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                stop.set()
                await asyncio.wait([work])  # the next prompt needs the network to itself
                raise

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Return the most that one call with this prompt can cost, in nano-dollars.

        Raises:
            UnpricedModelError: the model has no price; the message gives the line to add.
        """
        return largest_cost_nano(self._price, self._name, prompt, self._timeout_s)

    async def aclose(self) -> None:
        """Let go of the weights."""
        self._network = None

    def _generate(self, prompt: Prompt, stop: threading.Event) -> Completion:
        import torch  # noqa: PLC0415 - an extra

        started = time.perf_counter()
        inputs = self._encode(prompt)
        length = inputs["input_ids"].shape[1]
        with torch.inference_mode(), torch.random.fork_rng(enabled=prompt.seed is not None):
            if prompt.seed is not None:
                torch.manual_seed(prompt.seed)
            done = self._network.generate(**inputs, **self._arguments(prompt, stop))
        tokens = done.sequences[0, length:].tolist()
        text, finish = self._decode(tokens, prompt)
        seconds = time.perf_counter() - started
        usage = Usage(length, len(tokens))
        return Completion(
            text=text,
            model=self._name,
            finish=finish,
            usage=usage,
            cost_nano=self._price.cost_nano(usage, seconds) if self._price else None,
            latency_s=seconds,
            logprobs=self._logprobs(tokens, done.logits, prompt.top_logprobs),
        )

    def _encode(self, prompt: Prompt) -> Any:
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        if self._tokenizer.chat_template:
            inputs = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
        else:
            lines = [f"{m.role}: {m.content}" for m in prompt.messages]
            inputs = self._tokenizer("\n".join([*lines, "assistant:"]), return_tensors="pt")
        length = inputs["input_ids"].shape[1]
        context = getattr(self._network.config, "max_position_embeddings", None)
        if context is not None and length + prompt.max_tokens > context:
            raise ContextTooLongError(
                f"model '{self._name}': {length} tokens and {prompt.max_tokens} to come do not fit "
                f"its context of {context}: shorten the prompt"
            )
        return inputs.to(self._network.device)

    def _arguments(self, prompt: Prompt, stop: threading.Event) -> dict[str, Any]:
        sampling: dict[str, Any] = {"do_sample": False}
        if prompt.temperature > 0:
            sampling = {
                "do_sample": True,
                "temperature": prompt.temperature,
                "top_p": prompt.top_p,
                "top_k": 0,
            }
        end = self._tokenizer.eos_token_id
        return sampling | {
            "max_new_tokens": prompt.max_tokens,
            "max_time": self._timeout_s,
            "pad_token_id": end if end is not None else 0,
            "stop_strings": list(prompt.stop) or None,
            "tokenizer": self._tokenizer if prompt.stop else None,
            "stopping_criteria": [
                lambda ids, _, **__: ids.new_full((len(ids),), stop.is_set()).bool()
            ],
            "return_dict_in_generate": True,
            "output_logits": prompt.top_logprobs > 0,
        }

    def _decode(self, tokens: list[int], prompt: Prompt) -> tuple[str, Finish]:
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        ends = [at for mark in prompt.stop if (at := text.find(mark)) >= 0]
        if ends:
            return text[: min(ends)], "stop"
        if len(tokens) >= prompt.max_tokens:
            return text, "length"
        return text, "stop" if self._ended(tokens) else "other"

    def _ended(self, tokens: list[int]) -> bool:
        ends = self._network.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends, self._tokenizer.eos_token_id]
        return bool(tokens) and tokens[-1] in ends

    def _logprobs(
        self, tokens: list[int], logits: tuple[Any, ...] | None, top: int
    ) -> tuple[TokenLogprob, ...]:
        """Read each token's log-probability off the model's own logits, before any sampling."""
        if logits is None:
            return ()
        out = []
        for token, row in zip(tokens, logits, strict=True):
            logprob = row[0].float().log_softmax(dim=-1)
            values, indices = logprob.topk(min(top, len(logprob)))
            best = tuple(
                (self._tokenizer.decode([i]), v)
                for i, v in zip(indices.tolist(), values.tolist(), strict=True)
            )
            out.append(TokenLogprob(self._tokenizer.decode([token]), logprob[token].item(), best))
        return tuple(out)


def _import_transformers() -> Any:
    try:
        import transformers  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        raise MissingExtraError("running a local model", "lm") from None
    return transformers
