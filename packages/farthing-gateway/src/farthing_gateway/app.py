"""The gateway as an ASGI application: its addresses, its keys, its beginning and its end."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

from farthing import __version__
from farthing.errors import StoreError
from farthing_gateway.admin.routes import routes as page_routes
from farthing_gateway.admin.state import opened_pages
from farthing_gateway.apis import APIS
from farthing_gateway.apis.base import Api
from farthing_gateway.apis.chat import CHAT
from farthing_gateway.app_state import GatewayState, open_gateway
from farthing_gateway.auth import authenticate
from farthing_gateway.bundles import ServedMode
from farthing_gateway.client_connection import go_on, gone, read_body
from farthing_gateway.config import ServeConfig
from farthing_gateway.endpoint import answer
from farthing_gateway.errors import ApiError, logged, refusal, shutting_down
from farthing_gateway.metrics import CONTENT_TYPE
from farthing_gateway.middleware import InFlightMiddleware, InFlightRequests
from farthing_gateway.monitoring.base import Watch
from farthing_gateway.monitoring.routes import described, take_feedback
from farthing_gateway.openapi import description
from farthing_gateway.policies import GatewayPolicy
from farthing_gateway.spending_report import all_accounts, all_limits, charged
from farthing_gateway.storage.keys import KeyRecord, Scope

LOG = logging.getLogger("farthing_gateway")
Endpoint = Callable[[Request], Awaitable[Response]]


def application(
    config: ServeConfig, *, watch: bool = False, watching: Watch | None = None
) -> Starlette:
    """Return the gateway of a configuration.

    Args:
        config: what is served.
        watch: whether bundles are read again when they change.
        watching: says on the page how promises are kept; None: the gateway's database.
    """
    under_way = InFlightRequests()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with open_gateway(config, watch=watch) as gateway:
            app.state.gateway = gateway
            async with contextlib.AsyncExitStack() as stack:
                if config.has_page:
                    app.state.pages = await stack.enter_async_context(
                        opened_pages(gateway, watching)
                    )
                yield
                await under_way.none()

    routes = [
        *(
            Route(f"/v1{api.path}", _Endpoint(partial(posted, api=api), api), methods=["POST"])
            for api in APIS
        ),
        Route("/v1/feedback", _Endpoint(feedback), methods=["POST"]),
        Route("/v1/watch", _Endpoint(watched), methods=["GET"]),
        Route("/v1/spending", _Endpoint(spending), methods=["GET"]),
        Route("/v1/models", _Endpoint(models), methods=["GET"]),
        Route("/v1/models/{name:path}", _Endpoint(model), methods=["GET"]),
        Route("/health", _Endpoint(health), methods=["GET"]),
        Route("/ready", _Endpoint(ready), methods=["GET"]),
        Route("/metrics", _Endpoint(metrics), methods=["GET"]),
        Route("/openapi.json", _Endpoint(openapi), methods=["GET"]),
        *(page_routes() if config.has_page else []),
    ]
    unexpected = {404: _no_such_address, 405: _no_such_method}
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(InFlightMiddleware, under_way)],
        exception_handlers=unexpected,
    )


async def posted(request: Request, api: Api) -> Response:
    """Answer what is posted to one of the APIs."""
    return await answer(gateway_of(request), request, api)


async def feedback(request: Request) -> Response:
    """Take what somebody says of a reply."""
    gateway, key = gateway_of(request), await admitted(request, "call")
    serve = gateway.config.serve
    body = await read_body(request, serve)
    noted = await take_feedback(gateway.grading, body, key, workers=serve.workers)
    return _json(noted.to_json())


async def watched(request: Request) -> Response:
    """Say how promises are kept, which alarms rang, and what decided since when."""
    gateway = gateway_of(request)
    await admitted(request, "read")
    return _json(await described(gateway.watch))


async def models(request: Request) -> Response:
    """List what can be asked for: upstream models, and a virtual one for each policy."""
    gateway, key = gateway_of(request), await admitted(request, "call", "read")
    names = gateway.chat.models_for(key)
    return _json({"object": "list", "data": [_described(gateway, name) for name in names]})


async def model(request: Request) -> Response:
    """Describe one model that the key may use."""
    gateway, key = gateway_of(request), await admitted(request, "call", "read")
    name = request.path_params["name"]
    gateway.chat.check_allowed(name, key)
    return _json(_described(gateway, name))


async def health(_: Request) -> Response:
    """Say that the process is there."""
    return _json({"status": "ok", "version": __version__})


async def ready(request: Request) -> Response:
    """Say whether requests can be answered: the database is there; who may read hears more."""
    gateway = gateway_of(request)
    await gateway.ledger.balances(["all"])
    if gateway.keys is not None and not await _may_read(request):
        return _json({"status": "ready"})
    policies = gateway.chat.policies
    bundles = {name: policy.certificates for name, policy in policies.items()}
    notes = [note for policy in policies.values() for note in policy.notes()]
    latency = {
        name: {"median_s": median, "p95_s": slow}
        for name, (median, slow) in gateway.metrics.quantiles().items()
    }
    said = {"status": "ready", "policies": bundles, "notes": notes, "latency": latency}
    return _json(said)


async def _may_read(request: Request) -> bool:
    try:
        return await admitted(request, "read") is not None
    except ApiError:
        return False


async def spending(request: Request) -> Response:
    """Say what was charged and what is left: of all, of all but other keys, or of the key alone.

    An admin's key sees all; one that may read what no single key spent, and its own.
    """
    gateway = gateway_of(request)
    key = await admitted(request, "call", "read")
    if key is not None and not key.scopes & {"read", "admin"}:
        return _json((await charged(gateway.ledger, [key.account], key.on_account)).to_json())
    keys = [] if key is None else [key]
    if gateway.keys is not None and key is not None and "admin" in key.scopes:
        keys = await gateway.keys.list()
    accounts = all_accounts(gateway.config, keys)
    limits = all_limits(gateway.config, keys, datetime.now(UTC))
    shown = [limit for limit in limits if limit.account in accounts]
    return _json((await charged(gateway.ledger, accounts, shown)).to_json())


async def metrics(request: Request) -> Response:
    """Give the figures for Prometheus."""
    gateway = gateway_of(request)
    await admitted(request, "read", "admin")
    try:
        found = await charged(
            gateway.ledger, all_accounts(gateway.config, ()), gateway.config.limits
        )
    except StoreError:  # the rest is worth having all the same
        found = None
    return Response(gateway.metrics.text(found), media_type=CONTENT_TYPE)


async def openapi(_: Request) -> Response:
    """Describe the addresses."""
    return _json(description())


def gateway_of(request: Request) -> GatewayState:
    """Return what the application was opened with."""
    gateway: GatewayState = request.app.state.gateway
    return gateway


async def admitted(request: Request, *scopes: Scope) -> KeyRecord | None:
    """Return the key of a request; None where none is needed."""
    return await authenticate(gateway_of(request).keys, request.headers, *scopes)


@dataclass(frozen=True)
class _Endpoint:
    """An address: what answers there, and in whose form it says what goes wrong."""

    respond: Endpoint
    api: Api = CHAT

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        reply = await self._answered(Request(scope, receive, send))
        await reply(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        try:
            return await self.respond(request)
        except ClientDisconnect:
            return refused(gone(), self.api)
        except asyncio.CancelledError:  # the server is out of patience as it ends
            go_on()
            return refused(shutting_down(), self.api)
        except Exception as error:  # noqa: BLE001 - else the server logs it with all its text
            logged(error)
            return refused(refusal(error), self.api)


def refused(why: ApiError, api: Api = CHAT) -> Response:
    """Return the reply of a refusal, in the form of an API."""
    return _json(api.problem(why), why.status, why.headers)


async def _no_such_address(request: Request, _: Exception) -> Response:
    said = f"there is nothing at {request.url.path:.100}; see /openapi.json"
    return refused(ApiError(404, said, code="not_found"))


async def _no_such_method(request: Request, error: Exception) -> Response:
    said = f"{request.method} means nothing at {request.url.path:.100}; see /openapi.json"
    allowed = getattr(error, "headers", None) or {}
    return refused(ApiError(405, said, code="method_not_allowed", headers=allowed))


def _described(gateway: GatewayState, name: str) -> dict[str, Any]:
    chat = gateway.chat
    found: dict[str, Any] = {"id": name, "object": "model", "created": 0, "owned_by": "farthing"}
    if name in chat.proxy.upstreams:
        price = chat.proxy.upstreams[name].price
        return found | {
            "farthing": {"kind": "model", "price": None if price is None else str(price)}
        }
    policy = chat.policies[name.removeprefix("farthing/")]
    modes = {mode: _promise(policy, one) for mode, one in policy.loaded.items()}
    return found | {"farthing": {"kind": "policy", "modes": modes}}


def _promise(policy: GatewayPolicy, one: ServedMode) -> str:
    if why := policy.why_over(one):
        return f"Nothing is promised: {why}."
    return str(one.certificate or "nothing is promised")


def _json(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    encoded = msgspec.json.encode(body)
    return Response(encoded, status, dict(headers or {}), media_type="application/json")
