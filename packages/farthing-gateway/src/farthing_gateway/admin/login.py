"""In and out: the form that takes a key, the end of a session, colours, and what pages fetch."""

import logging

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from farthing_gateway.admin.rendering import static_file
from farthing_gateway.admin.sessions import LONGEST
from farthing_gateway.admin.view import (
    HOME,
    LOGIN,
    THEMES,
    NotShownError,
    View,
    clock,
    cookie_of,
    is_secure,
    local,
    protected,
    too_many,
)

LOG = logging.getLogger("farthing_gateway")
YEAR_S = 365 * 86_400
KEPT = f"public, max-age={YEAR_S}, immutable"


async def login(view: View) -> Response:
    """Show the form; whoever is logged in needs none."""
    if view.session is not None:
        return RedirectResponse(HOME, 303)
    return view.show("login.html", said="")


async def enter(view: View) -> Response:
    """Log somebody in who has a key with the scope `read` or `admin`."""
    pages, http = view.pages, view.http
    address = http.client.host if http.client else "unknown"
    wait_s = pages.attempts.wait_s(address, clock())
    if wait_s > 0:
        raise too_many(wait_s)
    pages.attempts.failed(address, clock())
    key = await pages.keys.find(view.form.get("key", "").strip())
    if key is None or not key.scopes & {"read", "admin"}:
        LOG.warning("somebody at %s failed to log in", address)
        if key is None:
            said = "This key opens nothing here: it is unknown, revoked or expired."
        else:
            said = "This key may ask models, but not see this page: it lacks the scope read."
        return view.show("login.html", 403, said=said)
    pages.attempts.succeeded(address)
    if view.session is not None:
        await pages.sessions.end(view.session.token)
    session = await pages.sessions.begin(key)
    response = RedirectResponse(HOME, 303)
    secure = is_secure(http)
    response.set_cookie(
        cookie_of(http),
        session.token,
        max_age=int(LONGEST.total_seconds()),
        path="/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )
    return response


async def leave(view: View) -> Response:
    """Log out."""
    await view.pages.sessions.end(view.by.token)
    response = RedirectResponse(LOGIN, 303)
    secure = is_secure(view.http)
    response.delete_cookie(
        cookie_of(view.http), path="/", secure=secure, httponly=True, samesite="strict"
    )
    response.headers["Clear-Site-Data"] = '"cache"'
    return response


async def theme(view: View) -> Response:
    """Choose light or dark, or leave it to the browser."""
    chosen = view.form.get("theme", "")
    response = RedirectResponse(local(view.form.get("back", HOME)), 303)
    response.set_cookie(
        "farthing-theme",
        chosen if chosen in THEMES else "auto",
        max_age=YEAR_S,
        path="/admin",
        secure=is_secure(view.http),
        httponly=True,
        samesite="strict",
    )
    return response


async def missing(view: View) -> Response:
    """Say that there is no such page; an address with a slash at its end is that without it."""
    path = view.http.url.path
    if path != path.rstrip("/"):
        return RedirectResponse(local(path.rstrip("/")), 303)
    raise NotShownError(404, "There is no such page.")


async def static(http: Request) -> Response:
    """Give a style sheet, a script or an icon; they are no secret."""
    found = static_file(http.path_params["name"])
    if found is None:
        return protected(Response("there is no such file", 404, media_type="text/plain"))
    body, kind = found
    return protected(Response(body, headers={"Cache-Control": KEPT}, media_type=kind))
