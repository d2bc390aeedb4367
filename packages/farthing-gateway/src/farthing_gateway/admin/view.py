"""One view of a page: who looks, what was sent, and what is shown; nothing is shown unchecked."""

import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from farthing.errors import InputError, StoreError
from farthing_gateway.admin.sessions import Session
from farthing_gateway.admin.state import Pages
from farthing_gateway.errors import logged

HOME, LOGIN = "/admin", "/admin/login"
MOST_FORM_BYTES = 16_384
THEMES = ("auto", "light", "dark")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""`no-referrer` would have browsers send forms without saying where from."""

Right = Literal["read", "admin"]
Form = Mapping[str, str]


@dataclass
class NotShownError(InputError):
    """A page that is not shown, and why."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class View:
    """Somebody looks at a page."""

    http: Request
    pages: Pages
    session: Session | None
    form: Form = field(default_factory=dict)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def by(self) -> Session:
        """Who looks; a page without login has nobody."""
        if self.session is None:
            raise NotShownError(401, "log in first")
        return self.session

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """Fill a template."""
        query = self.http.url.query
        filled = self.pages.templates.get_template(template).render(
            session=self.session,
            is_admin=self.session is not None and self.session.is_admin,
            form_token="" if self.session is None else self.session.form_token,
            theme=theme_of(self.http),
            path=self.http.url.path,
            here=self.http.url.path + (f"?{query}" if query else ""),
            now=self.now,
            **values,
        )
        return Response(filled, status, media_type="text/html; charset=utf-8")


Endpoint = Callable[[View], Awaitable[Response]]


def page(
    endpoint: Endpoint, right: Right | None = "read", *, counts: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """Return an address that shows a page to who may see it.

    Args:
        endpoint: shows it.
        right: the scope that its key needs, where `admin` has all; None: no login.
        counts: whether looking keeps the session alive.
    """

    async def answered(http: Request) -> Response:
        pages: Pages = http.app.state.pages
        view = View(http, pages, None)
        try:
            token = http.cookies.get(cookie_of(http), "")
            session = await pages.sessions.find(token, counts=counts) if token else None
            view = View(http, pages, session)
            if right is not None and session is None:
                return protected(_to_login(http))
            _check_right(view, right)
            if http.method == "POST":
                view = View(http, pages, session, await _form(http))
                _check_token(view)
            return protected(await endpoint(view))
        except Exception as error:  # noqa: BLE001 - else the server shows or logs all its text
            return protected(_failed(view, error))

    return answered


def protected(response: Response) -> Response:
    """Add the headers that keep a page to itself."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def local(path: str, instead: str = HOME) -> str:
    """Return a path of the page, or another in the place of what leads elsewhere.

    >>> local("/admin/keys"), local("//evil.example"), local("/admin/../x"), local("/adminx")
    ('/admin/keys', '/admin', '/admin', '/admin')
    """
    parts = urlsplit(path.replace("\\", "/"))
    inside = parts.path == HOME or parts.path.startswith(f"{HOME}/")
    plain = not parts.scheme and not parts.netloc and ".." not in parts.path
    return path if inside and plain and path.isprintable() else instead


def is_secure(http: Request) -> bool:
    """Return whether the browser came by https."""
    pages: Pages = http.app.state.pages
    return pages.gateway.config.page.https or http.url.scheme == "https"


def cookie_of(http: Request) -> str:
    """Return the name of the session's cookie: over https one that no other host can set."""
    return "__Host-farthing" if is_secure(http) else "farthing"


def theme_of(http: Request) -> str:
    """Return which colours somebody chose."""
    chosen = http.cookies.get("farthing-theme", "auto")
    return chosen if chosen in THEMES else "auto"


async def _form(http: Request) -> Form:
    if not _same_site(http):
        raise NotShownError(403, "This came from another site. Open the page itself and try again.")
    kind = http.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise NotShownError(415, "This is no form of this page.")
    body = b""
    async for part in http.stream():
        body += part
        if len(body) > MOST_FORM_BYTES:
            raise NotShownError(413, "That is too long.")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        raise NotShownError(400, "The form cannot be read.") from None
    form: dict[str, str] = {}
    for name, value in pairs:
        form[name] = f"{form[name]} {value}" if name in form else value
    return form


def _same_site(http: Request) -> bool:
    """Return whether a form was sent from this page: browsers say so, and scripts cannot lie."""
    fetched = http.headers.get("sec-fetch-site")
    if fetched is not None and fetched != "same-origin":
        return False
    origin = http.headers.get("origin")
    if origin is None:
        return fetched is not None
    return bool(origin != "null" and urlsplit(origin).netloc == http.headers.get("host"))


def _check_right(view: View, right: Right | None) -> None:
    if right == "admin" and not view.by.is_admin:
        raise NotShownError(403, "Your key may see figures alone. This needs an admin key.")


def _check_token(view: View) -> None:
    """Refuse a form that is not of this session; one without login has nothing to steal."""
    if view.session is not None and not view.session.sent_by_us(view.form.get("token", "")):
        raise NotShownError(403, "This form is of another session. Open the page again.")


def _to_login(http: Request) -> Response:
    if "hx-request" in http.headers:
        return Response(status_code=401, headers={"HX-Redirect": LOGIN})
    return RedirectResponse(LOGIN, 303)


def _failed(view: View, error: Exception) -> Response:
    logged(error)
    headers: Mapping[str, str] = {}
    if isinstance(error, NotShownError):
        status, headers = error.status, error.headers
        said = str(error)
    elif isinstance(error, StoreError):
        status, said = 503, "The gateway's database does not answer. Try again in a moment."
    elif isinstance(error, InputError):
        status, said = 422, f"{error}."
    else:
        status, said = 500, f"Unexpected {type(error).__name__}; the server's log says more."
    response = view.show("error.html", status, code=status, said=said)
    response.headers.update(headers)
    return response


def too_many(wait_s: float) -> NotShownError:
    """Return the refusal of a try to log in, of too many."""
    wait = str(max(1, math.ceil(wait_s)))
    said = f"Too many failed tries to log in. Try again in {wait} s."
    return NotShownError(429, said, {"Retry-After": wait})


def clock() -> float:
    """Return seconds that setting the date does not move."""
    return time.monotonic()
