"""How fast networks of one size learn chains of sums: by architecture, and by optimizer.

    .venv/bin/python benchmarks/tiny_networks.py [--steps 240]

The loss, in nats a symbol, of the last eight steps before each line; one core, one seed.
"""

import argparse
import time
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from farthing_lab.lm import supervised
from farthing_lab.lm.make import CONTEXT, NETWORKS, draws, network
from farthing_lab.lm.supervised import TrainingCourse, TrainingProgress, train
from farthing_lab.lm.symbols import NUMBERS, PAD, SYMBOLS

SUMS = next(one for one in NETWORKS if one.name == "sums")
EVERY = 80


def llama(seed: int) -> Any:
    """Return three layers of Llama: as wide, and with three quarters of the parameters."""
    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(SYMBOLS),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=3,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            pad_token_id=NUMBERS[PAD],
        )
    )


def by_adam(of: Any, _: TrainingCourse) -> dict[str, torch.optim.Optimizer]:
    """Return AdamW for everything, in the place of Muon."""
    adam = torch.optim.AdamW(of.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.01)
    return {"muon": adam}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--steps", type=int, default=240)
    steps = arguments.parse_args().steps
    torch.set_num_threads(1)
    muon = supervised.optimizers_of
    for title, make, optimizers, rate in (
        ("LFM2, Muon", lambda: network(SUMS.size, 0), muon, 0.02),
        ("LFM2, AdamW", lambda: network(SUMS.size, 0), by_adam, 0.003),
        ("Llama, Muon", lambda: llama(0), muon, 0.02),
        ("Llama, AdamW", lambda: llama(0), by_adam, 0.003),
    ):
        supervised.optimizers_of = optimizers
        began = time.process_time()

        def say(done: TrainingProgress, title: str = title, began: float = began) -> None:
            if done.step % EVERY == 0:
                seconds = time.process_time() - began
                print(
                    f"{title}: {done.step} steps, {seconds:.0f} s, loss {done.loss:.3f}", flush=True
                )

        train(make(), draws(SUMS), TrainingCourse(steps, muon=rate), seed=2, watch=say)


if __name__ == "__main__":
    main()
