"""A model at an effort is its model: for budgets, figures, fallbacks, pauses and keys."""

import asyncio
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import gateway, models, serve_section
from serving import total

from farthing_gateway.circuit_breaker import FAILURES, CircuitBreaker
from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.migrations import migrate


def config(stub: Endpoint, fallbacks: str = "", *, keys: bool = False) -> str:
    """Return a configuration whose strongest model is `large` at a low effort."""
    serve = serve_section(strongest="large@low", keys=keys) + fallbacks
    return serve + models(stub.url)


def made_key(folder: Path, *names: str) -> dict[str, str]:
    """Make a key for some models; return the header that it opens with."""

    async def make() -> str:
        await migrate(str(folder / "gateway.db"))
        keys = await open_keys(str(folder / "gateway.db"))
        try:
            return (await keys.make("app", models=names))[1]
        finally:
            await keys.aclose()

    return {"Authorization": f"Bearer {asyncio.run(make())}"}


def test_a_budget_of_the_model_holds_at_every_effort(tmp_path: Path) -> None:
    text = '\n[[budgets]]\nof = "model:large"\nper = "day"\ncalls = 2\n'
    with Endpoint() as stub, gateway(tmp_path, config(stub) + text) as running:
        asked = [running.chat(name, "x") for name in ("large@low", "large", "large@low")]
        assert [one.status for one in asked] == [200, 200, 402]
        assert "model:large" in asked[-1].json["error"]["message"]
        figures = running.get("/metrics").body.decode()
    database = str(tmp_path / "gateway.db")
    spent = {name: total(database, name).settled for name in ("model:large", "model:large@low")}
    assert (spent["model:large"].calls, spent["model:large@low"].calls) == (2, 1)
    for name, amount in spent.items():
        assert f'farthing_charged_usd{{account="{name}"}} {amount.nano / 1e9}' in figures


def test_the_fallbacks_of_the_model_stand_in_at_every_effort(tmp_path: Path) -> None:
    standing_in = "[serve.fallbacks]\nlarge = ['small']\n"
    with (
        Endpoint(faults={"500": 1.0}) as bad,
        Endpoint() as well,
        gateway(
            tmp_path,
            config(bad, standing_in).replace(bad.url, well.url, 1),  # that of small
        ) as running,
    ):
        for at in range(FAILURES):
            name = ("large", "large@low")[at % 2]
            assert running.chat(name, "x").json["farthing"]["answered_by"] == "small"
        for name in ("large", "large@low"):
            calls = running.chat(name, "x").json["farthing"]["calls"]
            assert [(one["model"], one.get("error")) for one in calls] == [
                (name, "cooling"),
                ("small", None),
            ]


def test_an_effort_that_stands_in_for_its_model_is_told_apart() -> None:
    breaker = CircuitBreaker(60.0, {"large": ["large@low"]})
    for _ in range(FAILURES):
        breaker.failed("large")
    breaker.answered("large@low")
    assert breaker.ready(["large", "large@low"]) == ["large@low"]


@pytest.mark.parametrize(
    ("listed", "model", "effort", "status"),
    [
        ("large", "large@low", None, 200),
        ("large", "large@low", "high", 200),
        ("large@low", "large@low", None, 200),
        ("large@low", "large@low", "high", 403),
        ("large@low", "large", None, 403),
        ("small", "large@low", None, 403),
    ],
)
def test_a_list_of_models_that_a_key_may_use_holds_at_every_effort(
    tmp_path: Path, listed: str, model: str, effort: str | None, status: int
) -> None:
    own = {} if effort is None else {"reasoning_effort": effort}
    with Endpoint() as stub, gateway(tmp_path, config(stub, keys=True)) as running:
        key = made_key(tmp_path, listed)
        assert running.chat(model, "x", headers=key, **own).status == status
        seen = [one["id"] for one in running.get("/v1/models", **key).json["data"]]
        assert seen == [n for n in ("small", "large", "large@low") if n.startswith(listed)]
