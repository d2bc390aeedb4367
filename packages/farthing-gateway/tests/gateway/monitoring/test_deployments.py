"""The log of deployments: once for all workers, in order, with who did it."""

import asyncio
from datetime import timedelta

from made_traffic import NOW

from farthing_gateway.monitoring.base import Change, Deployed
from farthing_gateway.monitoring.deployments import deployments, note_deployment
from farthing_gateway.storage.database import open_database


def one(
    certificate: str | None, how: Change = "loaded", by: str | None = None, *, mode: str = "default"
) -> Deployed:
    return Deployed("support", mode, NOW, certificate, f"says {certificate}", how, by)


def noted(where: str, *all_: Deployed) -> list[Deployed]:
    """Note some one after the other, and read them back."""

    async def go() -> list[Deployed]:
        database = await open_database(where)
        try:
            for each in all_:
                await note_deployment(database, each)
            return await deployments(database, "support")
        finally:
            await database.aclose()

    return asyncio.run(go())


def test_workers_that_find_one_bundle_note_it_once(where: str) -> None:
    async def go() -> list[Deployed]:
        workers = [await open_database(where) for _ in range(4)]
        try:
            for certificate in ("a", "b"):
                await asyncio.gather(*(note_deployment(w, one(certificate)) for w in workers))
            return await deployments(workers[0])
        finally:
            for worker in workers:
                await worker.aclose()

    assert asyncio.run(go()) == [one("b"), one("a")]


def test_a_bundle_that_comes_back_is_noted_again(where: str) -> None:
    found = noted(where, one("a"), one("b", "recalibrated", "ann"), one("b"), one("a"))
    assert found == [one("a"), one("b", "recalibrated", "ann"), one("a")]


def test_a_command_says_how_a_bundle_came_that_workers_found_before_it(where: str) -> None:
    found = noted(where, one("a"), one("b"), one("b", "rolled back", "ann"))
    assert found == [one("b", "rolled back", "ann"), one("a")]
    again = noted(where, one("b", "recalibrated", "bob"))
    assert again[0] == one("b", "recalibrated", "bob")
    assert len(again) == 3


def test_modes_and_policies_are_apart_and_the_newest_comes_first(where: str) -> None:
    late = Deployed("other", "default", NOW + timedelta(days=1), None, "", "loaded", None)
    assert noted(where, one("a"), one("a", mode="careful"), late) == [
        one("a", mode="careful"),
        one("a"),
    ]
