"""What a provider's reply says, read out of its JSON: whole, or piece by piece."""

from typing import Any

import msgspec


class _ReplyMessage(msgspec.Struct, frozen=True):
    content: Any = None
    refusal: Any = None

    @property
    def text(self) -> str:
        said = self.content if isinstance(self.content, str) else self.refusal
        return said if isinstance(said, str) else ""


class _ReplyChoice(msgspec.Struct, frozen=True):
    index: int = 0
    message: _ReplyMessage = _ReplyMessage()
    delta: _ReplyMessage = _ReplyMessage()


class _ReplyBody(msgspec.Struct, frozen=True):
    choices: list[_ReplyChoice] = []
    usage: dict[str, Any] | None = None


_DECODER = msgspec.json.Decoder(_ReplyBody)


def text_in(body: bytes) -> str:
    """Return what the first choice of a reply says; nothing where it says no words.

    >>> text_in(b'{"choices": [{"index": 0, "message": {"content": "4"}}]}')
    '4'
    """
    return _first(body, whole=True)


def text_in_piece(data: bytes) -> str:
    """Return what a piece of a stream adds to the first choice.

    >>> text_in_piece(b'{"choices": [{"index": 0, "delta": {"content": "4"}}]}')
    '4'
    """
    return _first(data, whole=False)


def says_usage(data: bytes) -> bool:
    """Return whether a piece of a stream is the one at its end that says what was used.

    >>> says_usage(b'{"choices": [], "usage": {}}'), says_usage(b'{"choices": [], "usage": null}')
    (True, False)
    """
    try:
        body = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return body.usage is not None and not body.choices


def _first(body: bytes, *, whole: bool) -> str:
    try:
        choices = _DECODER.decode(body).choices
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    first = [one for one in choices if one.index == 0]
    return "".join((one.message if whole else one.delta).text for one in first)
