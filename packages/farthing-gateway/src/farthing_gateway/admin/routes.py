"""The addresses of the administrator's page."""

from starlette.routing import Route

from farthing_gateway.admin import frontier, key_pages, live_requests, login, overview
from farthing_gateway.admin.view import HOME, LOGIN, page


def routes() -> list[Route]:
    """Return the addresses; what opens them is in `app.state.pages`."""
    get, post = ["GET"], ["POST"]
    live_rows = page(live_requests.rows, counts=False)
    return [
        Route(HOME, page(overview.overview), methods=get),
        Route(LOGIN, page(login.login, None), methods=get),
        Route(LOGIN, page(login.enter, None), methods=post),
        Route("/admin/logout", page(login.leave), methods=post),
        Route("/admin/theme", page(login.theme), methods=post),
        Route("/admin/static/{name}", login.static, methods=get),
        Route("/admin/requests", page(live_requests.requests), methods=get),
        Route("/admin/requests/rows", live_rows, methods=get),
        Route("/admin/requests/{id}", page(live_requests.request), methods=get),
        Route("/admin/frontier", page(frontier.frontier), methods=get),
        Route("/admin/certificates", page(overview.certificates), methods=get),
        Route("/admin/policies", page(overview.policies), methods=get),
        Route("/admin/alarms", page(overview.alarms), methods=get),
        Route("/admin/alarms/close", page(overview.close, "admin"), methods=post),
        Route("/admin/keys", page(key_pages.keys, "admin"), methods=get),
        Route("/admin/keys", page(key_pages.make, "admin"), methods=post),
        Route("/admin/keys/limits", page(key_pages.limit, "admin"), methods=post),
        Route("/admin/keys/revoke", page(key_pages.revoke, "admin"), methods=post),
        Route("/admin/{rest:path}", page(login.missing), methods=get),
    ]
