"""What axe says of the pages: names for screen readers, contrast, order, landmarks."""

import pytest
from chromium_running import MARKS, PAGES, Watched, login
from gateway_running import Running
from page_running import failures, now, traffic
from playwright.sync_api import Browser

pytestmark = MARKS


@pytest.mark.extras("axe_playwright_python")
@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
)
def test_axe_finds_nothing_wrong(
    chromium: Browser, running: Running, owner: str, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - an extra

    context = chromium.new_context(
        viewport={"width": width, "height": 844},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    window = Watched(context.new_page(), running.url)
    login(window, owner)
    one_of_each = (traffic(400, now())[0].id, failures(40, now())[2].id)
    for path in (*PAGES, *(f"/requests/{id_}" for id_ in one_of_each), "/gone"):
        window.go(path)
        window.page.evaluate(
            "for (const one of document.querySelectorAll('details')) one.open = true"
        )
        found = Axe().run(window.page).response
        assert len(found["passes"]) > 20
        assert [(one["id"], one["help"]) for one in found["violations"]] == [], path
    context.close()
