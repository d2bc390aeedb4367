"""A tiny random network, whose probabilities are computed a second way."""

import asyncio
import math
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from farthing.errors import ContextTooLongError, InputError
from farthing.models.base import Completion, Message, Prompt
from farthing.models.local import LocalModel, LocalSettings
from farthing.models.prices import PriceTable, SecondPrice

pytestmark = pytest.mark.extras("transformers")


def ask(text: str, **wanted: Any) -> Prompt:
    return Prompt((Message("user", text),), **wanted)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of weights: two layers, random, over a vocabulary of single bytes."""
    transformers, tokenizers = import_module("transformers"), import_module("tokenizers")
    folder = tmp_path_factory.mktemp("tiny")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: k for k, letter in enumerate([*letters, "<end>"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=512,
        bos_token_id=None,
        eos_token_id=vocabulary["<end>"],
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> LocalModel:
    prices = PriceTable({"tiny": SecondPrice(Decimal("0.001"))})
    return LocalSettings(model="tiny", path=str(folder)).open(prices)


def answer(model: LocalModel, prompt: Prompt) -> Completion:
    return asyncio.run(model.complete(prompt))


def test_log_probabilities_are_those_of_a_single_pass(model: LocalModel) -> None:
    prompt = ask("Hi", max_tokens=8, top_logprobs=3)
    done = answer(model, prompt)
    assert len(done.logprobs) == done.usage.output_tokens == 8
    ids = model._encode(prompt)["input_ids"]
    for token in done.logprobs:
        with torch.inference_mode():
            row = model._network(ids).logits[0, -1].double()
        best = int(row.argmax())
        assert token.logprob == pytest.approx(float(row[best] - row.logsumexp(0)), abs=1e-4)
        assert token.top[0] == (token.token, token.logprob)
        assert [p for _, p in token.top] == sorted((p for _, p in token.top), reverse=True)
        ids = torch.cat([ids, torch.tensor([[best]])], dim=1)
    assert sum(math.exp(p) for _, p in done.logprobs[0].top) < 1


def test_a_call_is_priced_by_the_second(model: LocalModel) -> None:
    done = answer(model, ask("Hi", max_tokens=4))
    assert done.cost_nano == math.ceil(done.latency_s * 1_000_000)
    assert model.largest_cost_nano(ask("Hi")) == 600_000_000


def test_sampling_repeats_itself_with_a_seed(model: LocalModel) -> None:
    texts = [
        answer(model, ask("Hi", max_tokens=12, temperature=1.0, seed=seed)).text
        for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_a_stop_text_ends_the_answer_and_is_no_part_of_it(model: LocalModel) -> None:
    wanted: dict[str, Any] = {"max_tokens": 60, "temperature": 1.0, "seed": 3}
    whole = answer(model, ask("Hi", **wanted))
    assert whole.finish == "length"
    mark = next(letter for letter in whole.text if letter.isascii())
    short = answer(model, ask("Hi", **wanted, stop=(mark,)))
    assert short.finish == "stop"
    assert short.text == whole.text[: whole.text.find(mark)]
    assert short.usage.output_tokens < 60


def test_a_prompt_that_does_not_fit_is_refused(model: LocalModel) -> None:
    with pytest.raises(ContextTooLongError, match="context of 512"):
        answer(model, ask("x" * 500, max_tokens=20))


def test_cancelling_stops_the_generation(model: LocalModel) -> None:
    async def cancel() -> None:
        task = asyncio.create_task(model.complete(ask("Hi", max_tokens=450)))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.complete(ask("Hi", max_tokens=1))

    whole = answer(model, ask("Hi", max_tokens=450)).latency_s
    started = asyncio.run(_timed(cancel()))
    assert started < whole


async def _timed(work: Any) -> float:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await work
    return loop.time() - started


def test_missing_weights_are_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be loaded"):
        LocalSettings(model="tiny", path=str(tmp_path)).open(PriceTable())


@pytest.mark.extras("peft")
@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")  # between the two libraries
def test_an_adapter_answers_as_the_weights_that_it_is_merged_into(
    model: LocalModel, folder: Path, tmp_path: Path
) -> None:
    transformers, peft = import_module("transformers"), import_module("peft")
    torch.manual_seed(1)
    lora = peft.LoraConfig(init_lora_weights=False, target_modules="all-linear")
    base = transformers.AutoModelForCausalLM.from_pretrained(folder)
    tuned = peft.get_peft_model(base, lora)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tuned.save_pretrained(tmp_path / "adapter")
    tuned.merge_and_unload().save_pretrained(tmp_path / "merged")
    answers = [answer(model, ask("Hi", max_tokens=8, top_logprobs=1))]
    for name in ("adapter", "merged"):
        tokenizer.save_pretrained(tmp_path / name)
        opened = LocalSettings(model="tiny", path=str(tmp_path / name)).open(PriceTable())
        answers.append(answer(opened, ask("Hi", max_tokens=8, top_logprobs=1)))
    first = [done.logprobs[0].logprob for done in answers]
    assert answers[1].text == answers[2].text
    assert first[1] == pytest.approx(first[2], abs=1e-5)
    assert abs(first[1] - first[0]) > 1e-2
