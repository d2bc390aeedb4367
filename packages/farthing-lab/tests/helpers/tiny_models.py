"""Folders of tiny random networks, of the same kind as those that ship."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import tokenizers
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SYMBOLS = ["<pad>", "<end>", "<unknown>", *"abcdefghijklmnopqrstuvwxyz0123456789=*+;:?!"]
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def write_weights(folder: Path, seed: int = 0) -> Path:
    """Write one network and its tokenizer: a symbol is a token, a message is its content."""
    words = tokenizers.models.WordLevel({s: k for k, s in enumerate(SYMBOLS)}, "<unknown>")
    tokenizer = tokenizers.Tokenizer(words)
    pattern = "|".join([*map(re.escape, SYMBOLS[:3]), "."])
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Split(
        tokenizers.Regex(pattern.replace(r"\<", "<").replace(r"\>", ">")), behavior="isolated"
    )
    tokenizer.decoder = tokenizers.decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<end>", pad_token="<pad>", unk_token="<unknown>"
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(SYMBOLS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=256,
        initializer_range=0.2,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def write_models(folder: Path, names: Sequence[str]) -> Path:
    """Write a folder of models, each dearer than the one before."""
    for seed, name in enumerate(names):
        write_weights(folder / name, seed)
    listed = [
        {
            "name": name,
            "meaning": f"random, number {at}",
            "input_per_million": 10.0**at,
            "output_per_million": 4 * 10.0**at,
            "parameters": 20_000,
        }
        for at, name in enumerate(names)
    ]
    (folder / "models.json").write_text(json.dumps(listed))
    return folder
