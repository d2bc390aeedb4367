"""Who gets in, what they see, and what no other site, no prompt and no key name can do."""

import asyncio
import html
import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gateway_running import Running, gateway, models, serve_section
from made_traffic import call, passed
from page_running import (
    BUDGETS,
    Answered,
    Browser,
    config,
    made_key,
    now,
    page,
    put,
    token_in,
    watched,
)

from farthing.traces.base import CallError
from farthing_gateway.admin.routes import routes
from farthing_gateway.admin.view import HEADERS, MOST_FORM_BYTES
from farthing_gateway.storage.keys import open_keys

PLANTED = "PLANTED-prompt-8161"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><b hx-get=/x>{{ 77777*777 }}"
REQUEST = "0123456789abcdef0123456789abcdef"
GET = [
    one.path.replace("{id}", REQUEST).replace("{name}", "page.css")
    for one in routes()
    if one.methods and "GET" in one.methods
]
ADMIN_ONLY = ["/admin/keys"]
POST = [one.path for one in routes() if one.methods and "POST" in one.methods]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A page whose traffic, keys and alarms have planted and hostile texts."""
    folder = tmp_path_factory.mktemp("page")
    where = str(folder / "gateway.db")
    put(where, planted(PLANTED + HOSTILE), later=(planted_call(PLANTED + HOSTILE),))
    made_key(where, "owner-key", "admin")
    text = config().replace("Say A or B.", f"System {PLANTED}").replace('bundle = "bundle"', "")
    watching = watched(now())
    watching.rung[0] = replace(watching.rung[0], says=HOSTILE, signal=HOSTILE, closed_by=HOSTILE)
    watching.promises[1] = replace(watching.promises[1], group=HOSTILE, mode=HOSTILE)
    watching.log[0] = replace(watching.log[0], says=HOSTILE, by=HOSTILE)
    with page(folder, text, watching) as found:
        yield found


def planted(text: str) -> Any:
    """Return a request with a text wherever a client or a model may put one."""
    failed = msgspec.structs.replace(call("tiny"), error=CallError("refused", text))
    calls = [planted_call(text), failed]
    one = passed(REQUEST, at=now() - timedelta(minutes=1), question=text, calls=calls)
    message = {"role": "user", "content": [{"type": "text", "text": text}], "name": text}
    trace = msgspec.structs.replace(one.trace, gold=[text])
    return replace(one, messages=[message], trace=trace, policy="letters", key="fedcba98")


def planted_call(text: str) -> Any:
    """Return a call whose answer and reply have a text."""
    return call("large", answer=text, text=text + " and more")


def opened(running: Running, *scopes: Any) -> tuple[Browser, str]:
    """Return a browser that is logged in, and its key."""
    name = f"{'-'.join(scopes)}-{time.monotonic_ns()}"
    secret = made_key(str(running.folder / "gateway.db"), name, *scopes)
    browser = Browser(running)
    assert browser.login(secret).status == 303
    return browser, secret


def test_without_a_session_there_is_nothing_but_the_form(running: Running) -> None:
    for path in GET:
        reply = Browser(running).get(path)
        if path.startswith(("/admin/login", "/admin/static")):
            assert reply.status == 200
        else:
            assert (reply.status, reply.headers["Location"]) == (303, "/admin/login"), path
            assert reply.body == b""
    for path in set(POST) - {"/admin/login"}:
        assert Browser(running).post(path, {}).headers["Location"] == "/admin/login"
    polled = Browser(running).get("/admin/requests/rows", HX_Request="true")
    assert (polled.status, polled.headers["HX-Redirect"]) == (401, "/admin/login")


def test_every_page_has_the_headers_that_keep_it_to_itself(running: Running) -> None:
    browser, _ = opened(running, "admin")
    for path in [*GET, "/admin/requests/gone"]:
        for reply in (browser.get(path), Browser(running).get(path)):
            for name, value in HEADERS.items():
                if name == "Cache-Control" and "static" in path:
                    assert "immutable" in reply.headers[name]
                else:
                    assert reply.headers[name] == value, (path, name)
    policy = HEADERS["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'self'")


def test_what_a_key_opens(running: Running) -> None:
    where = str(running.folder / "gateway.db")
    assert Browser(running).login(made_key(where, "caller", "call")).status == 403
    reader, _ = opened(running, "read")
    admin, _ = opened(running, "admin")
    for path in GET:
        refused = path in ADMIN_ONLY
        shown = {"/admin/login": 303, "/admin/{rest:path}": 404}.get(path, 200)
        assert reader.get(path).status == (403 if refused else shown), path
        assert admin.get(path).status == shown, path
    token = token_in(reader.get("/admin").text)
    for path in ("/admin/keys", "/admin/keys/revoke", "/admin/alarms/close"):
        assert reader.post(path, {"token": token, "id": "a1", "name": "x"}).status == 403
    assert "/admin/keys" not in reader.get("/admin").text
    assert "alarms/close" not in reader.get("/admin/alarms").text


def test_no_key_and_no_prompt_is_on_a_page_of_who_may_see_figures(running: Running) -> None:
    reader, secret = opened(running, "read")
    for path in [*GET, *(f"{path}?policy=letters" for path in GET), "/admin/requests/gone"]:
        reply = reader.get(path)
        text = html.unescape(reply.text) + str(reply.headers)
        assert PLANTED not in text, path
        assert secret not in text, path
        assert "fk-" not in text.replace("fk-…", ""), path
        assert "owner-key" not in text, path
        assert "fedcba98" not in text, path


def test_an_admin_sees_prompts_and_no_key(running: Running) -> None:
    admin, secret = opened(running, "admin")
    texts = {path: html.unescape(admin.get(path).text) for path in GET}
    assert texts[f"/admin/requests/{REQUEST}"].count(PLANTED) >= 5
    assert PLANTED in texts["/admin/policies"]
    for path, text in texts.items():
        assert secret not in text, path
        assert "fk-" not in text.replace("fk-…", ""), path


class Parsed(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_what_anybody_wrote_is_text_on_every_page(running: Running) -> None:
    admin, _ = opened(running, "admin")
    wrong = admin.submit("/admin/keys", "/admin/keys", name=HOSTILE, models=HOSTILE, team=HOSTILE)
    assert wrong.status == 422
    replies = {path: admin.get(path) for path in GET}
    replies |= {path: admin.get(f"{path}?policy={quoted(HOSTILE)}&before={quoted(HOSTILE)}")
                for path in ("/admin/requests", "/admin/requests/rows")}  # fmt: skip
    replies |= {"made": wrong, "none": admin.get(f"/admin/requests/{quoted('<script>alert(3)')}")}
    shown = 0
    for path, reply in replies.items():
        if "static" in path:
            continue
        shown += "<script>alert(1)" in html.unescape(reply.text)
        for tag, attributes in Parsed(reply.text).tags:
            assert not any(name.startswith("on") for name in attributes), (path, tag)
            assert "style" not in attributes, (path, tag)
            assert tag != "style", path
            assert tag != "script" or str(attributes["src"]).startswith("/admin/static/"), path
            assert attributes.get("src") != "x", path
            assert attributes.get("hx-get") != "/x", path
            assert not str(attributes.get("href", "")).startswith("javascript:"), path
        assert "60432729" not in reply.text, path
    assert shown >= 5, "hostile texts were to be shown, as text"


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def test_a_form_from_elsewhere_does_nothing(running: Running) -> None:
    admin, _ = opened(running, "admin")
    token = token_in(admin.get("/admin/keys").text)
    fields = {"token": token, "name": "forged", "scope": "admin"}
    host = running.url.removeprefix("http://")
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://{host}.evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
    ):
        assert admin.post("/admin/keys", fields, **headers).status == 403, headers
        assert Browser(running).post("/admin/login", {"key": "x"}, **headers).status == 403
    for wrong in ("", "0" * 64, token[:-1]):
        assert admin.post("/admin/keys", fields | {"token": wrong}).status == 403
    other, _ = opened(running, "admin")
    theirs = token_in(other.get("/admin/keys").text)
    assert admin.post("/admin/keys", fields | {"token": theirs}).status == 403
    assert admin.post("/admin/keys", fields, Content_Type="text/plain").status == 415
    long = fields | {"team": "x" * MOST_FORM_BYTES}
    assert admin.post("/admin/keys", long).status == 413
    many = fields | {f"f{at}": "" for at in range(200)}
    assert admin.post("/admin/keys", many).status == 400
    names = {key.name for key in asyncio.run(known(running))}
    assert "forged" not in names
    assert admin.post("/admin/keys", fields, Sec_Fetch_Site="same-origin").status == 200


def test_a_form_that_says_not_where_from_is_refused(running: Running) -> None:
    admin, _ = opened(running, "admin")
    request = urllib.request.Request(running.url + "/admin/logout", b"token=x")
    request.add_header("Cookie", admin.cookie)
    assert running.send(request).status == 403
    assert admin.get("/admin").status == 200


async def known(running: Running) -> list[Any]:
    keys = await open_keys(str(running.folder / "gateway.db"))
    found = await keys.list()
    await keys.aclose()
    return found


def test_a_key_is_shown_once_and_ends_with_its_sessions(running: Running) -> None:
    admin, _ = opened(running, "admin")
    made = admin.submit(
        "/admin/keys", "/admin/keys", name="shop", scope="read", most="5", unit="usd", period="day"
    )
    (secret,) = re.findall(r"fk-[0-9a-f]{8}-[\w-]{43}", made.text)
    assert made.headers["Cache-Control"] == "no-store"
    again = admin.get("/admin/keys").text
    assert secret not in again
    assert "$5 a day" in again
    reader = Browser(running)
    assert reader.login(secret).status == 303
    assert reader.get("/admin").status == 200
    ended = admin.submit("/admin/keys", "/admin/keys/revoke", id=secret[3:11])
    assert ended.status == 303
    assert reader.get("/admin").status == 303
    assert Browser(running).login(secret).status == 403
    assert admin.submit("/admin/keys", "/admin/keys/revoke", id="no-such").status == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "shop key"},
        {"name": "fk-secret"},
        {"scope": ""},
        {"scope": "root"},
        {"most": "NaN"},
        {"most": "-1"},
        {"most": "1e400"},
        {"most": "1e30"},
        {"most": "5", "unit": "pounds"},
        {"most": "2.5", "unit": "calls"},
        {"days": "0"},
        {"days": "²"},
        {"days": "99999999999999"},
    ],
)
def test_a_key_that_cannot_be_is_refused_in_a_line(running: Running, wrong: dict[str, str]) -> None:
    admin, _ = opened(running, "admin")
    fields = {"name": "fine", "scope": "call"} | wrong
    reply = admin.submit("/admin/keys", "/admin/keys", **fields)
    assert reply.status == 422
    (said,) = re.findall(r'<p class="problem"[^>]*>([^<]*)</p>', reply.text)
    assert said.endswith(".")
    assert "fine" not in {key.name for key in asyncio.run(known(running))}


def test_the_cookie_is_for_this_page_alone(running: Running, tmp_path: Path) -> None:
    secret = made_key(str(running.folder / "gateway.db"), "cookies", "read")
    (cookie,) = Browser(running).login(secret).headers.get_all("Set-Cookie") or []
    assert re.fullmatch(r"farthing=[\w-]{43}; HttpOnly; Max-Age=43200; Path=/; SameSite=strict",
                        cookie)  # fmt: skip
    text = config() + "\n[page]\nhttps = true\n"
    with page(tmp_path, text.replace('bundle = "bundle"', "")) as secure:
        browser = Browser(secure)
        secret = made_key(str(tmp_path / "gateway.db"), "cookies", "read")
        (cookie,) = browser.login(secret).headers.get_all("Set-Cookie") or []
        assert cookie.startswith("__Host-farthing=")
        assert cookie.endswith("; SameSite=strict; Secure")
        assert browser.get("/admin").status == 200
        token = browser.cookie.partition("=")[2]
        assert Browser(secure, f"farthing={token}").get("/admin").status == 303


def test_https_is_believed_of_a_trusted_proxy(running: Running) -> None:
    secret = made_key(str(running.folder / "gateway.db"), "proxied", "read")
    fields = {"key": secret}
    browser = Browser(running)
    reply = browser.post("/admin/login", fields, X_Forwarded_Proto="https")
    assert "__Host-farthing=" in reply.headers["Set-Cookie"]
    assert "Secure" in reply.headers["Set-Cookie"]


def test_who_logs_out_is_out(running: Running) -> None:
    browser, _ = opened(running, "read")
    kept = browser.cookie
    out = browser.submit("/admin", "/admin/logout")
    assert (out.status, out.headers["Location"]) == (303, "/admin/login")
    assert browser.cookie == ""
    assert Browser(running, kept).get("/admin").status == 303


def test_another_session_begins_with_another_token(running: Running) -> None:
    browser, secret = opened(running, "read")
    first = browser.cookie
    assert Browser(running, "farthing=chosen-by-somebody").login(secret).status == 303
    browser.post("/admin/login", {"key": secret, "token": token_in(browser.get("/admin").text)})
    assert browser.cookie not in {first, ""}
    assert Browser(running, first).get("/admin").status == 303


def test_tries_are_limited(tmp_path: Path) -> None:
    with page(tmp_path, config().replace('bundle = "bundle"', "")) as one:
        secret = made_key(str(tmp_path / "gateway.db"), "right", "read")
        browser = Browser(one)
        wrong = f"{secret[:-4]}AAAA"
        assert [browser.login(wrong).status for _ in range(5)] == [403] * 5
        refused = browser.login(secret)
        assert refused.status == 429
        assert 0 < int(refused.headers["Retry-After"]) <= 60
        proxied = browser.post("/admin/login", {"key": secret}, X_Forwarded_For="192.0.2.1")
        assert proxied.status == 303


def test_a_wrong_key_is_neither_shown_nor_logged(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "fk-00000000-" + "Wrong" * 8 + "abc"
    reply = Browser(running).post("/admin/login", {"key": wrong}, X_Forwarded_For="192.0.2.7")
    assert reply.status == 403
    assert wrong not in reply.text + caplog.text
    assert "192.0.2.7" in caplog.text


def test_colours_lead_nowhere_else(running: Running) -> None:
    browser, _ = opened(running, "read")
    for back in ("https://evil.example/", "//evil.example", "/\\evil.example", "/admin/../x", "a"):
        reply = browser.submit("/admin", "/admin/theme", theme="dark", back=back)
        assert (reply.status, reply.headers["Location"]) == (303, "/admin"), back
    reply = browser.submit("/admin", "/admin/theme", theme="</html>", back="/admin/alarms?x=1")
    assert reply.headers["Location"] == "/admin/alarms?x=1"
    assert "farthing-theme=auto" in reply.headers["Set-Cookie"]


def test_nothing_is_served_without_keys_or_where_it_is_switched_off(tmp_path: Path) -> None:
    budgets = BUDGETS.replace("policy:letters", "all")
    without = serve_section() + models("http://127.0.0.1:9/v1") + budgets
    off = without.replace("keys = false", "keys = true") + "\n[page]\nenabled = false\n"
    for text in (without, off):
        with gateway(tmp_path, text) as one:
            for path in ("/admin", "/admin/login", "/admin/static/page.css"):
                assert one.get(path).status == 404
            assert json.loads(one.get("/admin").body)["error"]["code"] == "not_found"


def test_static_files_are_those_of_the_folder(running: Running) -> None:
    for name in ("../rendering.py", "..%2frendering.py", "README.md", "x", ".", "%00"):
        reply = Browser(running).get(f"/admin/static/{name}")
        # With a slash in it, it is the address of a page: who is not logged in is asked to.
        assert reply.status == (303 if "rendering" in name else 404), name
        assert "Keeps what" not in reply.text


def test_a_database_that_is_away_is_said_in_a_line(tmp_path: Path) -> None:
    import sqlite3  # noqa: PLC0415

    with page(tmp_path, config().replace('bundle = "bundle"', "")) as one:
        browser = Browser(one)
        browser.login(made_key(str(tmp_path / "gateway.db"), "owner", "admin"))
        with sqlite3.connect(tmp_path / "gateway.db") as connection:
            connection.execute("DROP TABLE traffic_hours")
        connection.close()
        reply: Answered = browser.get("/admin")
    assert reply.status == 503
    assert "does not answer" in reply.text
    assert "traffic_hours" not in reply.text
    assert "gateway.db" not in reply.text
