"""Requests that nobody would think of: no failure of the gateway, no hang, nothing undescribed."""

import asyncio
from pathlib import Path

import pytest
from chat_server import Endpoint
from fuzzing import IN_TIME_S, fuzz
from gateway_running import gateway, models, serve_section

from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.migrations import migrate


async def made_key(folder: Path) -> str:
    await migrate(str(folder / "gateway.db"))
    keys = await open_keys(str(folder / "gateway.db"))
    try:
        return (await keys.make("fuzz", scopes=("call", "read")))[1]
    finally:
        await keys.aclose()


@pytest.mark.clients
@pytest.mark.extras("schemathesis")
@pytest.mark.filterwarnings("ignore")
def test_no_made_up_request_fails_the_gateway(tmp_path: Path) -> None:
    key = asyncio.run(made_key(tmp_path))
    text = serve_section(keys=True) + models("{url}") + '[policies.mine]\npool = ["small"]\n'
    text += "[record]\nshare = 0.0\n"
    named = ("small", "large", "farthing/mine")
    with Endpoint() as stub, gateway(tmp_path, text.replace("{url}", stub.url)) as running:
        found = fuzz(running.url, 200, 10, key=key, models=named)
        assert not found.wrong, found.wrong[:3]
        assert found.cases > 200
        assert found.slowest_s < IN_TIME_S
        assert stub.requests, "no request reached a model"
        assert running.get("/ready").status == 200
