"""The networks of the embedded models: the architecture of LFM2, as small as it goes.

Short convolutions and attention take turns. A convolution tells each symbol what stands just before
it, so that attention finds a statement by its first symbol at once; a Llama of the same size spends
most of its training on that (`docs/log.md`).
"""

from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, Lfm2Config, Lfm2ForCausalLM

from farthing.lm.symbols import END, NUMBERS, PAD, SYMBOLS

CONTEXT = 512
"""Most symbols of prompt and answer together."""


@dataclass(frozen=True)
class Size:
    """How large a network is."""

    pairs: int
    """Of a convolution and an attention."""
    width: int
    heads: int = 4


def network(size: Size, seed: int) -> Any:
    """Return a network with random weights; equal seeds give equal weights."""
    config = Lfm2Config(
        vocab_size=len(SYMBOLS),
        hidden_size=size.width,
        intermediate_size=2 * size.width,
        block_auto_adjust_ff_dim=False,
        num_hidden_layers=2 * size.pairs,
        layer_types=["conv", "full_attention"] * size.pairs,
        conv_L_cache=3,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=NUMBERS[END],
        pad_token_id=NUMBERS[PAD],
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = Lfm2ForCausalLM(config)
    made.generation_config = GenerationConfig(eos_token_id=NUMBERS[END], pad_token_id=NUMBERS[PAD])
    return made
