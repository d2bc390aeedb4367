"""Images in a request: the most input tokens that they count as, whatever their size.

OpenAI counts an image by its model's formula ("Images and vision", calculating costs). Its largest
value needs no size: an image is first scaled down. Tiles: a base, and so much for each tile of 512
pixels; at most 2,048 by 768 pixels, which are 8. Patches: one for each 32 by 32 pixels, at most
1,536, times the model's factor.
"""

import math
import re

_MOST_TILES = 8
_MOST_PATCHES = 1_536
_TILED = {
    "gpt-5": (70, 140),
    "gpt-5-chat": (70, 140),
    "gpt-4.1": (85, 170),
    "gpt-4o": (85, 170),
    "gpt-4-turbo": (85, 170),
    "gpt-4o-mini": (2_833, 5_667),
    "o1": (75, 150),
    "o1-pro": (75, 150),
    "o3": (75, 150),
}
"""Tokens of the base, which is all of an image at low detail, and of a tile."""
_PATCHED = {
    "gpt-5-mini": 1.62,
    "gpt-5-nano": 2.46,
    "gpt-4.1-mini": 1.62,
    "gpt-4.1-nano": 2.46,
    "o4-mini": 1.72,
}
_DATED = re.compile(r"-(?:\d{4}-\d{2}-\d{2}|latest)$")


def tokens_of_image(model: str, detail: str | None) -> int | None:
    """Return the most tokens that an image counts as; None where no formula is known.

    Args:
        model: the name that the provider knows it by, with or without a date.
        detail: `low`, `high`, or anything else for what the provider chooses.

    >>> tokens_of_image("gpt-4o-2024-08-06", None), tokens_of_image("gpt-4o", "low")
    (1445, 85)
    >>> tokens_of_image("gpt-4.1-nano", "high"), tokens_of_image("llava", None)
    (3779, None)
    """
    name = _DATED.sub("", model.rpartition("/")[2])
    if name in _PATCHED:
        return math.ceil(_MOST_PATCHES * _PATCHED[name])
    if name in _TILED:
        base, tile = _TILED[name]
        return base if detail == "low" else base + _MOST_TILES * tile
    return None
