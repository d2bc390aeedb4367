"""Networks of the transformers library from a folder: whole weights, or an adapter on others.

An adapter (PEFT) is a few weights beside those of a base, which its `adapter_config.json` names: a
folder, a name on the Hugging Face Hub, or `smollm2`. Nothing is read but safetensors.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farthing_lab.models import smollm2

ADAPTER = "adapter_config.json"
"""Says that a folder holds an adapter, and of what base."""
_ADAPTER_WEIGHTS = "adapter_model.safetensors"


def folder_of(path: str) -> str:
    """Return where weights lie: `smollm2` has a folder of its own."""
    return str(smollm2.folder()) if path == smollm2.NAME else path


def load(path: str, dtype: str, device: str = "cpu") -> tuple[Any, Any]:
    """Return a network and its tokenizer, with type and device as `LocalSettings` has them.

    The path is a folder of the weights or of an adapter, their name on the Hub, or `smollm2`.
    """
    import safetensors  # noqa: PLC0415 - an extra, as is the next
    import transformers  # noqa: PLC0415

    kind: dict[str, Any] = {"dtype": dtype, "use_safetensors": True}
    with quiet(transformers):
        at = folder_of(path)
        base = _base(Path(at))
        tokenizer = transformers.AutoTokenizer.from_pretrained(at)
        models = transformers.AutoModelForCausalLM
        try:
            if base == smollm2.NAME:
                network = models.from_pretrained(folder_of(base), **kind)
                network.load_adapter(at)
            else:
                network = models.from_pretrained(at, **kind)
        except safetensors.SafetensorError as error:
            raise ValueError(f"the weights are damaged ({error}); copy them anew") from None
    try:
        network = network.to(device)
    except (RuntimeError, AssertionError) as error:
        problem = str(error).splitlines()[0]
        raise ValueError(f"device '{device}', where cpu or cuda may stand: {problem}") from None
    if network.device.type == "meta":
        raise ValueError("device 'meta' holds no numbers; give cpu or cuda")
    return network, tokenizer


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """Load without bars of progress and advice on faster kernels, which nobody asked for."""
    logging.getLogger("transformers.integrations.hub_kernels").setLevel(logging.ERROR)
    shown = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers.utils.logging.enable_progress_bar()


def _base(folder: Path) -> str | None:
    """Return the base of an adapter; None where a folder holds whole weights, or is none."""
    file = folder / ADAPTER
    if not file.is_file():
        return None
    if not (folder / _ADAPTER_WEIGHTS).is_file():
        raise OSError(f"there is no {_ADAPTER_WEIGHTS}")
    base: str | None = json.loads(file.read_text()).get("base_model_name_or_path")
    return base
