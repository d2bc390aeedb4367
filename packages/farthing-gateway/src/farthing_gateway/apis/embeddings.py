"""OpenAI's embeddings: texts in, vectors out; nothing is said, so that no policy decides."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from farthing.errors import BadRequestError
from farthing.models.usage import read_usage
from farthing_gateway.apis.base import Api, ReadReply
from farthing_gateway.apis.chat import ChatReader, Model


class EmbeddingsBody(msgspec.Struct):
    """What is checked of a request for embeddings."""

    model: Model
    input: str | Annotated[list[Any], Meta(min_length=1, title="a list of texts or tokens")]
    dimensions: Annotated[int, Meta(ge=1)] | None = None


class _Reply(msgspec.Struct, frozen=True):
    data: Annotated[list[msgspec.Raw], Meta(min_length=1)]
    usage: dict[str, Any] | None = None
    model: str | None = None


_REPLY = msgspec.json.Decoder(_Reply)


class Embeddings(Api):
    """`POST /v1/embeddings`."""

    name: ClassVar = "embeddings"
    path: ClassVar = "/embeddings"
    body: ClassVar = EmbeddingsBody
    limit: ClassVar = None
    is_chat: ClassVar = False

    def to_chat(self, body: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Return its texts as a message, for those who read what was asked; it is no chat."""
        given = body["input"]
        some = given if isinstance(given, list) else [given]
        texts = [one for one in some if isinstance(one, str)]
        said = "\n".join(texts) if texts else msgspec.json.encode(given).decode()
        return {"model": body["model"], "messages": [{"role": "user", "content": said}]}, "input"

    def replies(self, _: Mapping[str, Any]) -> int:
        return 0

    def read(self, body: bytes) -> ReadReply:
        found = _REPLY.decode(body)
        return ReadReply(read_usage({"completion_tokens": 0, **(found.usage or {})}), found.model)

    def reader(self) -> ChatReader:
        """Refuse: embeddings do not come in pieces."""
        raise BadRequestError("embeddings do not come in pieces")

    def text(self, _: bytes) -> str:
        return ""


EMBEDDINGS = Embeddings()
