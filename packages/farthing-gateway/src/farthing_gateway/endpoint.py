"""From a posted request to its reply: who asks, what, once, within which time, whole or as events.

A client that goes away cancels what is asked for it.
"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from farthing_gateway.apis.base import Api
from farthing_gateway.app_state import GatewayState
from farthing_gateway.auth import authenticate
from farthing_gateway.chat import Chat, JsonReply
from farthing_gateway.chat_request import read_request
from farthing_gateway.client_connection import read_body, unless_gone
from farthing_gateway.completions import replayed
from farthing_gateway.deadline import Deadline
from farthing_gateway.errors import ApiError, is_late, refusal, shutting_down, too_late
from farthing_gateway.event_stream import EVENTS, EventStream, RequestEnd
from farthing_gateway.idempotency import HEADER, claim
from farthing_gateway.request_context import RequestContext
from farthing_gateway.storage.ledger.base import Done

JSON = "application/json"


async def answer(gateway: GatewayState, http: Request, api: Api) -> Response:
    """Answer what is posted to an API; of a stream the first piece is known when this returns."""
    chat = gateway.chat
    traffic = None if chat.recorder is None else chat.recorder.traffic
    parent = http.headers.get("traceparent") if gateway.telemetry else None
    asked = RequestContext(traffic, chat.models, path=api.path, parent=parent)
    try:
        with asked.noting():
            return await _answer(gateway, http, api, asked)
    except ApiError as why:
        if gateway.telemetry is not None:
            gateway.telemetry.ended(asked, why.status)
        raise


async def _answer(
    gateway: GatewayState, http: Request, api: Api, asked: RequestContext
) -> Response:
    serve = gateway.config.serve
    asked.key = await authenticate(gateway.keys, http.headers, "call")
    asked.admitted = True
    body = await read_body(http, serve)
    asked.read = request = read_request(body, http.headers, api)
    asked.deadline = Deadline.within(
        min(serve.deadline_s, request.options.deadline or serve.deadline_s)
    )
    claimed = None
    if (once := http.headers.get(HEADER)) is not None:
        # Nobody else may run it until its deadline, and the time to write what it cost.
        lease_s = asked.deadline.seconds + serve.lease_s - serve.deadline_s
        found = await claim(gateway.ledger, asked.key, once, body, lease_s)
        if isinstance(found, Done):
            if gateway.telemetry is not None:
                gateway.telemetry.ended(asked, found.status)
            return _replay(found, stream=request.stream)
        claimed = found
    gateway.metrics.begin()
    ending = RequestEnd(asked, gateway.metrics, gateway.telemetry, claimed)
    reply = await _reply(gateway.chat, asked, http, ending)
    if isinstance(reply, EventStream):
        return reply
    await ending.end(200, reply.body)
    return Response(reply.body, 200, reply.receipt.headers(), media_type=JSON)


async def _reply(
    chat: Chat, asked: RequestContext, http: Request, ending: RequestEnd
) -> JsonReply | EventStream:
    waiting = None if ending.claimed is None else ending.claimed.waiting
    pieces = None
    try:
        async with asyncio.timeout(asked.deadline.left_s), unless_gone(http.receive):
            if not asked.request.stream:
                return await chat.whole(asked, waiting)
            pieces = chat.pieces(asked, waiting)
            first = await anext(pieces)
        return EventStream(asked, pieces, first, ending)
    except BaseException as error:  # noqa: BLE001 - raised again
        if pieces is not None:  # its first piece may have come as the time ran out
            await pieces.aclose()
        late = is_late(error, asked.deadline)
        why = too_late(asked.deadline.seconds) if late else error
        known = refusal(why) if isinstance(why, Exception) else shutting_down()
        await asyncio.shield(ending.end(known.status, None))
        raise why from None


def _replay(kept: Done, *, stream: bool) -> Response:
    kind = EVENTS if stream and kept.status == 200 else JSON
    headers = {"Idempotent-Replayed": "true", **replayed(kept.body)}
    return Response(kept.body, kept.status, headers, media_type=kind)
