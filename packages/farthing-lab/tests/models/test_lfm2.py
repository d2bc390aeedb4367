"""Networks on numpy are held to the transformers library's own, weights and tokenizers to its."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Lfm2ForCausalLM

from farthing.errors import InputError
from farthing.models.base import Message, Prompt
from farthing.models.prices import PriceTable
from farthing_lab.models import generation
from farthing_lab.models.embedded import WEIGHTS, EmbeddedSettings, known
from farthing_lab.models.generation_rows import Generated, GenerationRow
from farthing_lab.models.lfm2 import Lfm2Network, as_they_end, is_lfm2
from farthing_lab.models.local import SymbolTokenizer, is_of_symbols
from farthing_lab.tasks.arithmetic import KINDS, Recipe, draw_of

FOLDERS = sorted(path.parent for path in WEIGHTS.glob("*/config.json"))
TEXTS = (
    "c=b*7+2;a=4;b=a*3+5;c?",
    "high:<<quote 0123abcd>>a=1;\n b=a*9 ; what?",
    "<reply>7</reply>large ünknown <pad>",
)


def questions(n: int) -> list[str]:
    recipes = [Recipe(kind, hops) for kind in KINDS for hops in range(1, 8)]
    drawn = draw_of("test", recipes, np.random.default_rng(3))
    return [next(drawn).text for _ in range(n)]


def on_numpy(folder: Path, rows: Sequence[GenerationRow]) -> list[Generated]:
    done = dict(as_they_end(Lfm2Network.read(folder), rows))
    return [done[number] for number in range(len(rows))]


@pytest.fixture(scope="module", params=["small", "controller"])
def folder(request: pytest.FixtureRequest) -> Path:
    return WEIGHTS / str(request.param)


def encoded(folder: Path, texts: Sequence[str]) -> list[list[int]]:
    tokenizer = SymbolTokenizer.read(folder)
    return [tokenizer.apply_chat_template([{"content": t}])["input_ids"] for t in texts]


@pytest.mark.slow
def test_texts_are_continued_as_the_library_does(folder: Path) -> None:
    rows = [
        GenerationRow(ids, 40 + 5 * k, ends=frozenset({1}), top_logprobs=3)
        for k, ids in enumerate(encoded(folder, questions(24)))
    ]
    theirs = generation.generate(AutoModelForCausalLM.from_pretrained(folder).eval(), rows)
    lengths = set()
    for mine, other in zip(on_numpy(folder, rows), theirs, strict=True):
        assert (mine.ids, mine.reason) == (other.ids, other.reason)
        np.testing.assert_allclose(mine.logprobs, other.logprobs, atol=1e-4)
        assert [next(k for k, _ in top) for top in mine.top] == list(mine.ids)
        likeliest = np.array([[p for _, p in top] for top in mine.top])
        np.testing.assert_allclose(likeliest, [[p for _, p in top] for top in other.top], atol=1e-3)
        lengths.add(len(mine.ids))
    assert len(lengths) > 5, "rows end at different times, and the others go on"


def test_a_wide_random_network_with_fewer_layers_agrees_too(tmp_path: Path) -> None:
    """The shipped ones might hide a wrong place behind a sharp answer; a random one does not."""
    config = AutoModelForCausalLM.from_pretrained(WEIGHTS / "small").config
    config.layer_types, config.num_hidden_layers = ["full_attention", "conv", "conv"], 3
    config.hidden_size, config.num_attention_heads, config.num_key_value_heads = 48, 3, 3
    config.conv_L_cache, config.initializer_range = 4, 0.3
    torch.manual_seed(0)
    network = Lfm2ForCausalLM(config).eval()
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5)
    network.save_pretrained(tmp_path)
    assert is_lfm2(tmp_path)
    rng = np.random.default_rng(1)
    rows = [GenerationRow([int(k) for k in rng.integers(0, 61, n)], 12) for n in (1, 9, 4)]
    theirs = generation.generate(network, rows)
    for mine, other in zip(on_numpy(tmp_path, rows), theirs, strict=True):
        assert mine.ids == other.ids
        np.testing.assert_allclose(mine.logprobs, other.logprobs, atol=2e-4)


@pytest.mark.slow
def test_draws_follow_the_distribution_and_repeat_with_their_seed(folder: Path) -> None:
    [ids] = encoded(folder, ["c=b*7+2;a=4;b=a*3+5;c?"])
    likely = on_numpy(folder, [GenerationRow(ids, 1, temperature=3.0, seed=0, top_logprobs=61)])
    p = np.zeros(61)
    for token, logprob in likely[0].top[0]:
        p[token] = np.exp(logprob / 3)
    p /= p.sum()
    n = 4_000
    rows = [GenerationRow(ids, 1, temperature=3.0, seed=seed) for seed in range(n)]
    drawn = np.bincount([one.ids[0] for one in on_numpy(folder, rows)], minlength=61)
    np.testing.assert_allclose(drawn / n, p, atol=5 * np.sqrt(p.max() / n))
    assert (drawn > 0).sum() > 5
    best = [GenerationRow(ids, 1, temperature=3.0, top_p=0.5, seed=seed) for seed in range(300)]
    seen = {one.ids[0] for one in on_numpy(folder, best)}
    order = np.argsort(-p)
    assert seen == set(order[: np.searchsorted(p[order].cumsum(), 0.5) + 1].tolist())
    assert on_numpy(folder, rows[:2]) == [on_numpy(folder, [row])[0] for row in rows[:2]]


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: path.name)
def test_every_shipped_folder_is_read_as_the_library_reads_it(path: Path) -> None:
    assert is_lfm2(path)
    assert is_of_symbols(path)
    mine, theirs = SymbolTokenizer.read(path), AutoTokenizer.from_pretrained(path)
    messages = [{"role": "system", "content": "low:"}, {"role": "user", "content": TEXTS[0]}]
    ids = mine.apply_chat_template(messages)["input_ids"]
    assert ids == theirs.apply_chat_template(messages, return_dict=True)["input_ids"]
    for text in TEXTS:
        numbers = mine.apply_chat_template([{"content": text}])["input_ids"]
        assert numbers == theirs(text)["input_ids"]
        assert mine.decode([*numbers, 1]) == theirs.decode([*numbers, 1])
        skipped = theirs.decode([*numbers, 1], skip_special_tokens=True)
        assert mine.decode([*numbers, 1], skip_special_tokens=True) == skipped


@pytest.mark.slow
def test_the_packages_models_answer_without_pytorch() -> None:
    program = f"""
import asyncio, sys
for name in ("torch", "transformers", "tokenizers"):
    sys.modules[name] = None
from farthing.models.base import Message, Prompt
from farthing_lab.models.embedded import EmbeddedSettings
from farthing.models.prices import PriceTable
model = EmbeddedSettings(model="large").open(PriceTable())
prompt = Prompt((Message("user", {TEXTS[0]!r}),), max_tokens=100, stop=("</answer>",))
print(asyncio.run(model.complete(prompt)).text)
"""
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said.strip().endswith("<answer>1"), said


def test_a_prompt_that_does_not_fit_is_refused() -> None:
    model = EmbeddedSettings(model=known()[0].name).open(PriceTable())
    prompt = Prompt((Message("user", "a=4;" * 300),), max_tokens=100)
    with pytest.raises(Exception, match="do not fit its context of 512"):
        asyncio.run(model.complete(prompt))


def test_other_networks_are_left_to_the_library(tmp_path: Path) -> None:
    assert not is_lfm2(tmp_path)
    assert not is_of_symbols(tmp_path)
    config: dict[str, Any] = json.loads((WEIGHTS / "small/config.json").read_text())
    for field, value in (("conv_bias", True), ("num_key_value_heads", 2), ("model_type", "llama")):
        (tmp_path / "config.json").write_text(json.dumps(config | {field: value}))
        assert not is_lfm2(tmp_path), field


def test_damaged_weights_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    (tmp_path / "models.json").write_bytes((WEIGHTS / "models.json").read_bytes())
    for file in (WEIGHTS / "small").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:1_000])
    with pytest.raises(InputError, match=r"small' cannot be loaded: the weights are damaged"):
        EmbeddedSettings(model="small", folder=str(tmp_path)).open(PriceTable())
