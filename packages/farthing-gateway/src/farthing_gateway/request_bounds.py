"""What of a request is sent to an endpoint, and the most that a try of it can take and cost.

A text is bounded by its bytes: no tokeniser makes more of it. Schemas count twice, since templates
write them anew, with spaces. Images count by the provider's formula or by `image_tokens`, and what
may have any length as the context window.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec

from farthing.models.base import Usage
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import Price, published_window
from farthing.models.thinking import thoughts_apart
from farthing_gateway.apis.base import Api
from farthing_gateway.apis.chat import CHAT
from farthing_gateway.priced_places import Place, places_in, without
from farthing_gateway.request_schema import RequestError
from farthing_gateway.upstream_base import Bound

WINDOW = 2**21
"""Tokens that a model may take in where neither its section nor its published price says it."""
TOKENS_PER_SCHEMAS = 1_024
"""Most tokens that a provider puts around tools and formats."""
_SCHEMAS = ("tools", "functions", "response_format")
_TIERS = ("service_tier", "serviceTier", "speed", "inference_geo")
"""Fields whose value is the tier that a price is of."""
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


@dataclass(frozen=True)
class RequestBounds:
    """What bounds the requests to one model."""

    name: str
    """What clients call it."""
    settings: OpenAISettings
    price: Price | None
    tiers: set[str]
    """Those that replies were served at, which a project may have where no request names one."""

    def sent(self, api: Api, asked: Mapping[str, Any]) -> "SentRequest":
        """Return what is sent of a request.

        Raises:
            RequestError: it has a price that could not be reserved.
        """
        rule, dropped, kept = self.settings.provider_tools, list[Place](), list[Place]()
        for one in places_in(asked):
            run = one.kind == "tool"
            if run and (rule == "drop" or (one.offline and rule == "refuse")):
                dropped.append(one)
            elif not (one.path[0] in self.settings.extra and one.kind in {"tool", "rate"}):
                self._check(one)
                kept.append(one)
        if dropped:
            asked = without(asked, [one.path for one in dropped])
            kept = [
                one for one in kept if not any(one.path[: len(d.path)] == d.path for d in dropped)
            ]
        body = msgspec.json.encode(asked)
        return SentRequest(self, api, asked, tuple(kept), body, tuple(map(str, dropped)))

    def _check(self, place: Place) -> None:
        if place.kind == "tool" and self.settings.provider_tools == "refuse":
            said = "is run by the provider and has a price of its own here"
        elif place.kind == "rate" and place.path[-1] not in _TIERS:
            said = "has a price of its own here"
        elif unpriced := self._unpriced(place):
            said = f"has a price of its own here, and nothing says that of {unpriced}"
        else:
            return
        raise RequestError(f"'{place}' {said}; leave it out", str(place.path[0]))

    def _unpriced(self, place: Place) -> str:
        takes = {
            "tool": Usage(1, 1, units=((place.unit, 1),)),
            "rate": Usage(1, 1, tier=place.what or "unknown"),
            "audio": Usage(1, 1, audio_input=1),
        }
        if self.price is None or place.kind not in takes:
            return ""
        return ", ".join(self.price.unpriced(takes[place.kind]))

    def check_window(self, place: Place) -> None:
        """Refuse input of any length where nothing bounds what it costs."""
        if self.known_window is None and self.price is not None:
            seconds = self.settings.timeout_s
            none, most = (self.price.largest_nano(Usage(n, 0), seconds) for n in (0, WINDOW))
            if most > none:
                raise RequestError(
                    f"'{place}' may be any number of tokens, and nothing says how many "
                    f"'{self.name}' takes in; give context_window in its section",
                    str(place.path[0]),
                )

    def image(self, detail: str) -> int | None:
        """Return the most tokens that an image counts as; None: nothing says that."""
        stated = self.settings.image_tokens
        return _tokens_of_image(self.settings.model, detail) if stated is None else stated

    @cached_property
    def known_window(self) -> int | None:
        """Most tokens that the model takes in; None: nobody says."""
        settings = self.settings
        if settings.context_window is not None:
            return settings.context_window
        provider, url = settings.price_provider, settings.url
        return published_window(settings.model, provider=provider, url=url)

    @property
    def window(self) -> int:
        """The same, or more than models take in."""
        return self.known_window or WINDOW


@dataclass(frozen=True)
class SentRequest:
    """A request as an endpoint is sent it."""

    bounds: RequestBounds
    api: Api
    """In whose form."""
    wanted: Mapping[str, Any]
    places: tuple[Place, ...]
    """Those with a price beside the tokens of a text."""
    body: bytes
    dropped: tuple[str, ...]
    """What was left out, by its place."""

    def most(self, template: int) -> Usage:
        """Return the most that a try can take; a provider may put `template` around messages."""
        return self._took(self._input(template), self.output())

    def bound(self, most: Usage) -> Bound:
        return replace(self._bound(most), claimed=self.claimed(), dropped=self.dropped)

    def claimed(self) -> Bound | None:
        if self.bounds.known_window is None:
            return None
        written = self.output(limited=False)
        return self._bound(self._took(self._times * self.bounds.window, written))

    def output(self, unlimited: int | None = None, *, limited: bool = True) -> int:
        """Return the most tokens of a reply; without a limit, of `unlimited` or the model's own."""
        settings, window = self.bounds.settings, self.bounds.window
        replies = self.api.replies(self.wanted)
        if not replies:
            return 0
        limit = self.wanted.get(settings.limit_name if self.api is CHAT else str(self.api.limit))
        if not (limited and isinstance(limit, int)):
            limit = unlimited or settings.max_output or window
        if self.api is not CHAT:  # its limit holds its thoughts
            return limit * replies
        thoughts = thoughts_apart(settings.speaks, self.wanted)
        apart = window if thoughts is None else thoughts
        predicted = self.wanted.get("prediction")
        # Tokens that were predicted and not used are paid for as output.
        refused = len(msgspec.json.encode(predicted)) if predicted else 0
        return (limit + apart + refused) * replies

    def _took(self, read: int, written: int) -> Usage:
        """Return so many tokens, as dear as the request can make them."""
        kinds = {one.kind for one in self.places}
        uses = {one.unit for one in self.places if one.kind == "tool"}
        return Usage(
            read,
            written,
            estimated=True,
            cache_writes=read if "cache" in kinds and "hour" not in kinds else 0,
            cache_writes_hour=read if "hour" in kinds else 0,
            audio_input=read if kinds & {"audio", "unknown", "tool"} else 0,
            units=tuple((name, self.bounds.settings.tool_uses) for name in sorted(uses)),
        )

    def _bound(self, most: Usage) -> Bound:
        price, seconds = self.bounds.price, self.bounds.settings.timeout_s
        tokens = most.input_tokens + most.output_tokens
        if price is None:
            return Bound(None, tokens)
        tiers = {None, *self.bounds.tiers, *(one.what for one in self.places if one.kind == "rate")}
        nano = max(price.largest_nano(replace(most, tier=one), seconds) for one in tiers)
        return Bound(nano, tokens)

    @property
    def _times(self) -> int:
        """How often the input is read: again after each use of what the provider runs."""
        return 1 + self.bounds.settings.tool_uses * any(one.kind == "tool" for one in self.places)

    def _input(self, template: int) -> int:
        images = [one for one in self.places if one.kind == "image"]
        seen = [self.bounds.image(one.what) for one in images]
        opaque = [one for one in self.places if one.kind in {"unknown", "audio", "tool"}]
        opaque += [one for one, tokens in zip(images, seen, strict=True) if tokens is None]
        if opaque:
            self.bounds.check_window(opaque[0])
            return self._times * self.bounds.window
        schemas = [self.wanted[name] for name in _SCHEMAS if self.wanted.get(name)]
        again = len(msgspec.json.encode(schemas)) + TOKENS_PER_SCHEMAS if schemas else 0
        pictured = sum(len(msgspec.json.encode(one.shown)) for one in images)
        return len(self.body) - pictured + template + again + sum(filter(None, seen))


def _tokens_of_image(model: str, detail: str | None) -> int | None:
    """Return the most tokens that an image counts as; None where no formula is known.

    OpenAI counts an image by its model's formula ("Images and vision", calculating costs). Its
    largest value needs no size: an image is first scaled down. Tiles: a base, and so much for each
    tile of 512 pixels; at most 2,048 by 768 pixels, which are 8. Patches: one for each 32 by 32
    pixels, at most 1,536, times the model's factor.

    Args:
        model: the name that the provider knows it by, with or without a date.
        detail: `low`, `high`, or anything else for what the provider chooses.

    >>> _tokens_of_image("gpt-4o-2024-08-06", None), _tokens_of_image("gpt-4o", "low")
    (1445, 85)
    >>> _tokens_of_image("gpt-4.1-nano", "high"), _tokens_of_image("llava", None)
    (3779, None)
    """
    name = _DATED.sub("", model.rpartition("/")[2])
    if name in _PATCHED:
        return math.ceil(_MOST_PATCHES * _PATCHED[name])
    if name in _TILED:
        base, tile = _TILED[name]
        return base if detail == "low" else base + _MOST_TILES * tile
    return None
