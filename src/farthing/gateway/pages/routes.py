"""The addresses of the administrator's page."""

from starlette.routing import Route

from farthing.gateway.pages import (
    entering,
    frontier,
    key_pages,
    live,
    overview,
    promises,
)
from farthing.gateway.pages.view import HOME, LOGIN, viewed


def routes() -> list[Route]:
    """Return the addresses; what opens them is in `app.state.pages`."""
    get, post = ["GET"], ["POST"]
    live_rows = viewed(live.rows, counts=False)
    return [
        Route(HOME, viewed(overview.overview), methods=get),
        Route(LOGIN, viewed(entering.login, None), methods=get),
        Route(LOGIN, viewed(entering.enter, None), methods=post),
        Route("/admin/logout", viewed(entering.leave), methods=post),
        Route("/admin/theme", viewed(entering.theme), methods=post),
        Route("/admin/static/{name}", entering.static, methods=get),
        Route("/admin/requests", viewed(live.requests), methods=get),
        Route("/admin/requests/rows", live_rows, methods=get),
        Route("/admin/requests/{id}", viewed(live.request), methods=get),
        Route("/admin/frontier", viewed(frontier.frontier), methods=get),
        Route("/admin/certificates", viewed(promises.certificates), methods=get),
        Route("/admin/policies", viewed(promises.policies), methods=get),
        Route("/admin/alarms", viewed(promises.alarms), methods=get),
        Route("/admin/alarms/close", viewed(promises.close, "admin"), methods=post),
        Route("/admin/keys", viewed(key_pages.keys, "admin"), methods=get),
        Route("/admin/keys", viewed(key_pages.make, "admin"), methods=post),
        Route("/admin/keys/revoke", viewed(key_pages.revoke, "admin"), methods=post),
        Route("/admin/{rest:path}", viewed(entering.missing), methods=get),
    ]
