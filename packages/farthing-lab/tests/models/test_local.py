"""A tiny random network, whose probabilities are computed a second way."""

import asyncio
import math
import time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from farthing.errors import BadRequestError, ContextTooLongError, InputError
from farthing.models.base import Completion, Message, Prompt
from farthing.models.prices import PriceTable, SecondPrice
from farthing_lab.models.local import LocalModel, LocalSettings


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
    ids = torch.tensor([model._encode(prompt)])
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


@pytest.mark.slow
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


def test_prompts_that_wait_together_are_answered_together_and_as_if_alone(
    model: LocalModel,
) -> None:
    prompts = [
        ask("Hi", max_tokens=20, top_logprobs=2),
        ask("Why " * 20, max_tokens=3, temperature=1.0, seed=4),
        ask("No", max_tokens=30, temperature=1.0, seed=3, stop=("\n", "a")),
        ask("x" * 500, max_tokens=20),
    ]

    async def together() -> list[Completion | BaseException]:
        return await asyncio.gather(*map(model.complete, prompts), return_exceptions=True)

    *found, refused = asyncio.run(together())
    assert isinstance(refused, ContextTooLongError)
    for prompt, done in zip(prompts, found, strict=False):
        assert isinstance(done, Completion)
        alone = answer(model, prompt)
        assert (done.text, done.finish, done.usage) == (alone.text, alone.finish, alone.usage)
        assert [t.token for t in done.logprobs] == [t.token for t in alone.logprobs]


def test_a_chat_template_that_refuses_a_prompt_harms_no_other(folder: Path) -> None:
    model = LocalSettings(model="tiny", path=str(folder)).open(PriceTable())
    model._tokenizer.chat_template = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system here') }}{% endif %}"
        "{{ messages[0]['content'] }}"
    )

    async def together() -> list[Completion | BaseException]:
        prompts = (Prompt((Message("system", "Hi"),)), ask("Hi", max_tokens=3))
        return await asyncio.gather(*map(model.complete, prompts), return_exceptions=True)

    refused, done = asyncio.run(together())
    assert isinstance(refused, BadRequestError)
    assert "no system here" in str(refused)
    assert isinstance(done, Completion)


def test_prompts_that_are_under_way_together_share_the_time_that_is_paid_for(
    model: LocalModel,
) -> None:
    async def together() -> list[Completion]:
        lengths = [5] * 8 + [100]
        return await asyncio.gather(*(model.complete(ask("Hi", max_tokens=n)) for n in lengths))

    *short, long = asyncio.run(together())
    costs = [done.cost_nano or 0 for done in (*short, long)]
    assert sum(costs) == pytest.approx(long.latency_s * 1_000_000, abs=len(costs))
    assert max(costs[:-1]) < costs[-1]
    assert max(done.latency_s for done in short) < long.latency_s, "answered when they ended"


@pytest.mark.slow
def test_cancelling_one_caller_leaves_the_others_of_its_batch(model: LocalModel) -> None:
    async def cancel() -> Completion:
        tasks = [
            asyncio.create_task(model.complete(ask(text, max_tokens=200))) for text in ("Hi", "No")
        ]
        await asyncio.sleep(0.05)
        tasks[0].cancel()
        done = await tasks[1]
        assert tasks[0].cancelled()
        return done

    assert asyncio.run(cancel()).text == answer(model, ask("No", max_tokens=200)).text


def test_a_call_that_takes_too_long_stops_with_what_it_has(folder: Path) -> None:
    settings = LocalSettings(model="tiny", path=str(folder), timeout_s=0.5)
    model = settings.open(PriceTable())
    model._network.register_forward_hook(lambda *_: time.sleep(0.2))
    done = answer(model, ask("Hi", max_tokens=400))
    assert done.finish == "other"
    assert 0 < done.usage.output_tokens < 400


def test_a_batch_holds_no_more_than_the_setting_says(folder: Path) -> None:
    model = LocalSettings(model="tiny", path=str(folder), batch=2).open(PriceTable())
    sizes: list[int] = []
    model._network.register_forward_hook(lambda _, __, out: sizes.append(len(out.logits)))

    async def together() -> None:
        await asyncio.gather(*(model.complete(ask("Hi", max_tokens=1)) for _ in range(5)))

    asyncio.run(together())
    assert sizes == [2, 2, 1]


async def _timed(work: Any) -> float:
    loop = asyncio.get_running_loop()
    started = loop.time()
    await work
    return loop.time() - started


def test_missing_weights_are_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be loaded"):
        LocalSettings(model="tiny", path=str(tmp_path)).open(PriceTable())


@pytest.mark.slow
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
