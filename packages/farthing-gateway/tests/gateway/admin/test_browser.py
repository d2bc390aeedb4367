"""The page in a real browser: Debian's Chromium, driven by Playwright."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from chromium_running import MARKS, PAGES, Watched, login
from gateway_running import Running
from made_traffic import passed
from page_running import config, made_key, now, page, put, traffic
from playwright.sync_api import Browser, Page, expect

LIVE_MS = 8_000

pytestmark = MARKS


@pytest.fixture
def window(chromium: Browser, running: Running, owner: str) -> Iterator[Watched]:
    """A window that is logged in; nothing may fail in it, or be asked of another host."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    found = Watched(context.new_page(), running.url)
    found.note()
    login(found, owner)
    yield found
    assert found.errors == []
    assert found.elsewhere == []
    context.close()


def test_who_is_logged_in_sees_every_page_and_logs_out(window: Watched) -> None:
    for path in PAGES:
        window.go(path)
        current = window.page.locator("nav[aria-label=Pages] [aria-current=page]")
        expect(current).to_have_count(1)
        expect(window.page.get_by_role("heading", level=1)).to_have_text(current.inner_text())
    window.page.get_by_role("button", name="Log out").click()
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()
    window.go("/requests")
    expect(window.page.get_by_role("heading", name="Log in")).to_be_visible()


def test_new_requests_come_by_themselves_unless_paused(window: Watched, running: Running) -> None:
    where = str(running.folder / "gateway.db")
    window.go("/requests")
    first, second = (f"{kind}{'0' * 31}" for kind in "ab")
    put(where, passed(first, at=now() + timedelta(minutes=1)))
    row = window.page.locator(f"#r-{first}")
    expect(row).to_be_visible(timeout=LIVE_MS)
    row.focus()
    put(where, passed("c" + "0" * 31, at=now() + timedelta(minutes=2)))
    expect(window.page.locator("#r-c" + "0" * 31)).to_be_visible(timeout=LIVE_MS)
    expect(row).to_be_focused()
    pause = window.page.get_by_role("button", name="Pause")
    pause.click()
    go_on = window.page.get_by_role("button", name="Go on")
    expect(go_on).to_be_visible()
    put(where, passed(second, at=now() + timedelta(minutes=3)))
    window.page.wait_for_timeout(3_000)
    expect(window.page.locator(f"#r-{second}")).to_have_count(0)
    go_on.click()
    expect(pause).to_be_visible()
    expect(window.page.locator(f"#r-{second}")).to_be_visible(timeout=LIVE_MS)


def test_a_request_is_opened_and_its_reply_unfolded(window: Watched, running: Running) -> None:
    one = replace(passed("d" * 32, at=now()), policy="letters", mode="default")
    put(str(running.folder / "gateway.db"), one)
    window.go(f"/requests/{one.id}")
    expect(window.page.get_by_role("heading", name="Step by step")).to_be_visible()
    expect(window.page.get_by_text("2 + 2?")).to_be_visible()
    window.page.get_by_role("link", name="← Requests").click()
    window.page.get_by_label("Policy").select_option("support")
    window.page.get_by_role("button", name="Show", exact=True).click()
    expect(window.page).to_have_url(re.compile("policy=support"))


def test_a_key_is_made_and_revoked_by_the_keyboard_alone(window: Watched) -> None:
    page = window.page
    window.go("/keys")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    assert page.get_by_role("link", name="Skip to content").bounding_box()["y"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    reach(page, "Name")
    page.keyboard.type("by-hand")
    reach(page, "read: see figures on this page")
    page.keyboard.press("Space")
    reach(page, "Amount")
    page.keyboard.type("2.50")
    reach(page, "Make the key")
    assert outline(page) >= 2, "what has the focus is to be seen"
    page.keyboard.press("Enter")
    expect(page.locator("#secret")).to_have_text(re.compile(r"fk-[0-9a-f]{8}-[\w-]{43}"))
    row = page.get_by_role("row").filter(has_text="by-hand")
    expect(row).to_contain_text("call, read")
    expect(row).to_contain_text("$2.5 a day")
    reach(page, "Revoke by-hand")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Revoke by-hand")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 key revoked or expired")).to_be_visible()
    reach(page, "1 key revoked or expired")
    page.keyboard.press("Enter")
    expect(page.get_by_role("listitem").filter(has_text="by-hand")).to_contain_text("revoked")
    reach(page, "Log out")


def test_a_range_a_limit_and_a_search_are_reached_by_the_keyboard_alone(window: Watched) -> None:
    page = window.page
    window.go("")
    reach(page, "30 days")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"range=30-days$"))
    for name in ("From", "To", "Show"):
        reach(page, name)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"from=[0-9-]+&to=[0-9-]+$"))
    window.go("/keys")
    reach(page, "Change the limits of shop")
    page.keyboard.press("Enter")
    reach(page, "Dollars a day")
    page.keyboard.press("Control+A")
    page.keyboard.type("7.5")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row").filter(has_text="shop")).to_contain_text("$7.5 a day")
    window.go("/requests")
    reach(page, "Text or id")
    page.keyboard.type("no answer within the deadline")
    page.keyboard.press("Enter")
    expect(page.locator("#rows tbody tr").first).to_contain_text("failed 504")
    assert page.locator("#rows tbody tr").count() == 10


def reach(page: Page, name: str) -> None:
    """Press Tab until something of this name has the focus: nothing traps it."""
    named = """() => { const on = document.activeElement;
        return (on.labels?.[0]?.innerText ?? on.textContent).trim().split("\\n")[0]; }"""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate(named) == name:
            return
    raise AssertionError(f"{name} cannot be reached by the keyboard")


def outline(page: Page) -> float:
    return float(page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_the_switch(
    chromium: Browser, running: Running, owner: str, scheme: str
) -> None:
    context = chromium.new_context(color_scheme=scheme)  # type: ignore[arg-type]
    window = Watched(context.new_page(), running.url)
    window.note()
    login(window, owner)
    assert (brightness(window.page) > 0.5) == (scheme == "light")
    other = {"light": "Dark", "dark": "Light"}[scheme]
    choose(window.page, other)
    assert (brightness(window.page) > 0.5) == (scheme == "dark")
    for path in PAGES:
        window.go(path)
        assert (brightness(window.page) > 0.5) == (scheme == "dark"), path
        assert faint(window.page) == [], path
    choose(window.page, "As the system")
    assert (brightness(window.page) > 0.5) == (scheme == "light")
    for path in PAGES:
        window.go(path)
        assert faint(window.page) == [], path
    assert window.errors == window.elsewhere == []
    context.close()


def choose(page: Page, colours: str) -> None:
    button = page.get_by_role("button", name=colours)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    page.wait_for_load_state()


LUMINANCE = """
const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const weights = [0.2126, 0.7152, 0.0722];
const luminance = (rgb) => weights.reduce((sum, w, at) => sum + w * linear(rgb[at] / 255), 0);
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (one) => {
  for (; one; one = one.parentElement) {
    const found = numbers(getComputedStyle(one).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
};
"""


def brightness(page: Page) -> float:
    return float(page.evaluate(f"() => {{ {LUMINANCE} return luminance(behind(document.body)); }}"))


def faint(page: Page) -> list[str]:
    """Return the texts whose contrast is below 4.5 to 1, as WCAG 2.2 AA wants it."""
    found: list[str] = page.evaluate(f"""() => {{ {LUMINANCE}
        const found = [];
        for (const one of document.querySelectorAll("body *")) {{
            const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
            const box = one.getBoundingClientRect();
            if (!own || !box.width || one.closest("svg, .unseen, .skip")) continue;
            const inks = [luminance(numbers(getComputedStyle(one).color)), luminance(behind(one))];
            const contrast = (Math.max(...inks) + 0.05) / (Math.min(...inks) + 0.05);
            if (contrast < 4.5) found.push(`${{contrast.toFixed(2)}} ${{one.textContent.trim()}}`);
        }}
        return found; }}""")
    return found


@pytest.mark.parametrize("width", [390, 320])
def test_nothing_is_wider_than_a_narrow_screen(
    chromium: Browser, running: Running, owner: str, width: int
) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 844})
    window = Watched(context.new_page(), running.url)
    login(window, owner)
    request = traffic(400, now())[0].id
    for path in (*PAGES, f"/requests/{request}"):
        window.go(path)
        window.page.evaluate(
            "for (const one of document.querySelectorAll('details')) one.open = true"
        )
        wide = window.page.evaluate("""() => [...document.querySelectorAll("body *")]
            .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
            .filter((one) => !one.closest(".unseen, .skip, thead"))
            .map((one) => one.outerHTML.slice(0, 120))""")
        assert wide == [], path
        assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    context.close()


def test_a_list_of_requests_is_short_on_a_narrow_screen(
    chromium: Browser, running: Running, owner: str
) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    window = Watched(context.new_page(), running.url)
    login(window, owner)
    window.go("/requests")
    assert window.page.locator("#rows tbody tr").count() == 50
    assert window.page.evaluate("document.documentElement.scrollHeight") < 50 * 110 + 800
    context.close()


def test_motion_is_reduced_and_words_are_there_without_scripts(
    chromium: Browser, running: Running, owner: str
) -> None:
    context = chromium.new_context(java_script_enabled=False, reduced_motion="reduce")
    window = Watched(context.new_page(), running.url)
    login(window, owner)
    window.go("/requests")
    expect(window.page.locator("#rows a").first).to_be_visible()
    expect(window.page.locator("#pause")).to_be_hidden()
    context.close()


def test_every_field_and_picture_has_a_name(window: Watched) -> None:
    for path in PAGES:
        window.go(path)
        nameless = window.page.evaluate("""() => [
            ...[...document.querySelectorAll("input:not([type=hidden]), select")]
                .filter((one) => !one.labels.length),
            ...[...document.querySelectorAll("svg:not([aria-hidden])")]
                .filter((one) => !one.getAttribute("aria-label")),
            ...[...document.querySelectorAll("img:not([alt])")],
            ...[...document.querySelectorAll("button, a")].filter((one) => !one.textContent.trim()),
        ].map((one) => one.outerHTML.slice(0, 80))""")
        assert nameless == [], path
        doubled = window.page.evaluate("""() => {
            const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
            return ids.filter((id, at) => ids.indexOf(id) !== at); }""")
        assert doubled == [], path
        levels = window.page.evaluate(
            "[...document.querySelectorAll('h1, h2, h3')].map((one) => Number(one.tagName[1]))"
        )
        assert levels[0] == 1
        assert all(b <= a + 1 for a, b in pairwise(levels)), (path, levels)


def test_a_gateway_that_is_away_is_said(chromium: Browser, tmp_path: Path) -> None:
    text = config().replace('bundle = "bundle"', "")
    secret = made_key(str(tmp_path / "gateway.db"), "owner", "admin")
    context = chromium.new_context()
    with page(tmp_path, text) as one:
        window = Watched(context.new_page(), one.url)
        login(window, secret)
        window.go("/requests")
        expect(window.page.locator("#live")).to_have_text("New ones come by themselves")
    expect(window.page.locator("#live")).to_contain_text("does not answer", timeout=LIVE_MS)
    context.close()
