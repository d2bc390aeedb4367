"""The networks of the embedded models: Llama's architecture, as small as it goes."""

from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from farthing.lm.symbols import END, NUMBERS, PAD, SYMBOLS

CONTEXT = 512
"""Most symbols of prompt and answer together."""


@dataclass(frozen=True)
class Size:
    """How large a network is."""

    layers: int
    width: int
    heads: int = 4


def network(size: Size, seed: int) -> Any:
    """Return a network with random weights; equal seeds give equal weights."""
    config = LlamaConfig(
        vocab_size=len(SYMBOLS),
        hidden_size=size.width,
        intermediate_size=2 * size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=NUMBERS[END],
        pad_token_id=NUMBERS[PAD],
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = LlamaForCausalLM(config)
    made.generation_config = GenerationConfig(eos_token_id=NUMBERS[END], pad_token_id=NUMBERS[PAD])
    return made
