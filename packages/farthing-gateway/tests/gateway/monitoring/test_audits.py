"""Which traffic may calibrate: audits that are complete, of the period, equally likely."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from live_audits import MODELS, config, live, unaudited, write
from msgspec import structs
from scipy.stats import binomtest

from farthing.bundle.versions import Change, History, Version
from farthing.errors import InputError, UnknownNameError
from farthing.traces.system import RoleSetup
from farthing_gateway.config import read_config
from farthing_gateway.monitoring.base import Alarm
from farthing_gateway.monitoring.bundle_path import Place, place_of
from farthing_gateway.monitoring.evidence import Audits, audited_traces, thin
from farthing_gateway.monitoring.evidence_window import period_of
from farthing_gateway.storage.database import Step, microseconds, open_database

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_of(read_config(config(tmp_path)), "letters")


def audits(where: str, place: Place, since: datetime = NOW, *, gold: bool = False) -> Audits:
    async def go() -> Audits:
        database = await open_database(where)
        try:
            return await audited_traces(database, place, since, gold=gold)
        finally:
            await database.aclose()

    return asyncio.run(go())


def test_only_complete_audits_of_the_mode_and_the_period_are_taken(
    where: str, place: Place
) -> None:
    some = live(400, NOW)
    drawn = {one.id for one in some if one.audited}
    others = [
        *(unaudited(one) for one in live(50, NOW, name="volunteered", audit=1.0)),
        *live(50, NOW - timedelta(days=1), name="before", audit=1.0),
        *(replace(one, policy="other") for one in live(50, NOW, name="other", audit=1.0)),
        *(replace(one, mode="careful") for one in live(50, NOW, name="mode", audit=1.0)),
    ]
    pending = live(3, NOW, name="pending", audit=1.0)
    cut = [
        replace(one, audit=0.25, trace=structs.replace(one.trace, calls=one.trace.calls[:2]))
        for one in pending
    ]
    write(where, [*some, *others, *cut])
    found = audits(where, place)
    assert {trace.id for trace in found.pool.traces} == drawn
    assert (found.drawn, found.pool.complete) == (len(drawn) + 3, len(drawn))
    never = "50 requests were up for no audit: nothing is proved of such"
    assert found.notes == (never, "3 audits not complete yet")
    assert found.requests == 400 + 50 + 3  # the volunteered were decided as well
    assert found.requests_a_day == pytest.approx(453 / (399 / 86_400))


def test_audits_of_other_models_prompts_or_prices_are_left_out(where: str, place: Place) -> None:
    part = RoleSetup(model="small-2026", kind="ChatAgent", agent={}, prompts={})
    old, new = {"small": part}, {"small": structs.replace(part, price="dearer")}
    new["small"] = structs.replace(part, prompts={"system": "sha256:1"})
    before = [replace(one, system=old) for one in live(40, NOW, audit=1.0)]
    later = live(20, NOW + timedelta(hours=1), audit=1.0, name="later")
    write(where, [*before, *(replace(one, system=new) for one in later)])
    found = audits(where, place)
    assert {trace.id for trace in found.pool.traces} == {one.id for one in later}
    assert found.system == new
    assert "40 audits left out, since a model" in found.notes[0]


def test_what_is_right_takes_accepted_answers_and_volunteered_ones_do_not_count(
    where: str, place: Place
) -> None:
    some = live(30, NOW, audit=1.0)
    extra = [unaudited(one) for one in live(10, NOW, name="volunteered", audit=1.0)]
    write(where, [*some, *extra])

    async def feedback() -> None:
        database = await open_database(where)
        rows = [(one.id, microseconds(NOW), "B") for one in (*some[:20], *extra)]
        insert = "INSERT INTO feedback (id, at_us, gold, revision, writer)"
        await database.write(Step(f"{insert} VALUES ($1, $2, $3, 1, '')", rows))
        await database.aclose()

    asyncio.run(feedback())
    assert audits(where, place).pool.complete == 30
    found = audits(where, place, gold=True)
    assert {trace.id: trace.gold for trace in found.pool.traces} == {
        one.id: ["B"] for one in some[:20]
    }
    assert "10 audits left out, whose accepted answer nobody sent" in found.notes[1]


def test_thinned_audits_are_equally_likely_and_the_draw_depends_on_the_seed() -> None:
    """4,000 requests at one half, then 4,000 at a tenth: of both a tenth remains."""
    drawn = [
        *(one for one in live(4_000, NOW, audit=0.5, name="a") if one.audited),
        *(one for one in live(4_000, NOW, audit=0.1, name="b", seed=2) if one.audited),
    ]
    kept, left = thin(drawn, 0)
    assert len(kept) + left == len(drawn)
    rare = [one for one in drawn if one.audit == 0.1]
    assert [one for one in kept if one.audit == 0.1] == rare
    often = [one for one in kept if one.audit == 0.5]
    assert binomtest(len(often), len(drawn) - len(rare), 0.2).pvalue > 1e-3
    assert {one.id for one in thin(drawn, 1)[0]} != {one.id for one in kept}
    assert thin(drawn, 0)[0] == kept
    assert thin(rare, 0) == (rare, 0)
    assert thin([], 0) == ([], 0)


def test_the_period_begins_with_the_promise_alarm_else_with_the_version_that_decides() -> None:
    history = History(
        present=2,
        versions=(
            Version(number=1, before=None, digest="a"),
            Version(number=2, before=1, digest="b"),
        ),
        changes=tuple(
            Change(at=NOW + timedelta(hours=h), how="loaded", version=v)
            for h, v in ((0, 1), (1, 2), (2, 1), (3, 2))
        ),
    )
    assert period_of(None, [], history).since == NOW + timedelta(hours=3)
    rang = [alarm("promise", 4), alarm("promise", 6), alarm("latency", 5)]
    found = period_of(None, rang, history)
    assert found.since == NOW + timedelta(hours=6)
    assert "when the alarm about promise rang" in str(found)
    assert found.notes == ()
    assert period_of(NOW, rang, history).since == NOW
    assert [note.split(" rang")[0] for note in period_of(NOW, rang, history).notes] == [
        f"an alarm about {name}" for name in ("promise", "latency", "promise")
    ]


def test_traffic_since_a_promise_alarm_was_closed_counts_whatever_signals_rang() -> None:
    history = History(
        present=1,
        versions=(Version(number=1, before=None, digest="a"),),
        changes=(Change(at=NOW, how="loaded", version=1),),
    )
    early, late = alarm("latency", 2), alarm("cost", 9)
    closed = alarm("promise", 4, closed=7)
    found = period_of(None, [early, closed], history)
    assert found.since == NOW + timedelta(hours=7)
    assert "when the alarm about promise was closed" in str(found)
    assert found.notes == ()
    (note,) = period_of(None, [early, closed, late], history).notes
    assert "an alarm about cost rang within the period" in note
    assert "give a later --since" in note
    # A signal alone bounds nothing: it says nothing of the promise.
    found = period_of(None, [early], history)
    assert (found.since, len(found.notes)) == (NOW, 1)
    again = alarm("promise", 8)
    assert period_of(None, [closed, again], history).since == NOW + timedelta(hours=8)


def alarm(signal: str, hours: int, *, closed: int | None = None) -> Alarm:
    at = NOW + timedelta(hours=hours)
    end = None if closed is None else NOW + timedelta(hours=closed)
    return Alarm(signal, "letters", "default", "c", signal, at, "it fell", 20.0, end, None)


def test_a_place_is_named(tmp_path: Path) -> None:
    file = config(tmp_path)
    read = read_config(file)
    assert place_of(read, "farthing/letters") == place_of(read, "letters", "default")
    assert place_of(read, "letters").folder == tmp_path / "bundles" / "letters"
    with pytest.raises(UnknownNameError, match="unknown policy 'leters'; did you mean"):
        place_of(read, "leters")
    with pytest.raises(UnknownNameError, match="unknown mode 'careful'"):
        place_of(read, "letters", "careful")
    modes = '[policies.letters.modes]\neconomy = "a"\ncareful = "b"\n'
    file.write_text(file.read_text().replace('bundle = "bundles/letters"\n', "") + modes)
    read = read_config(file)
    assert place_of(read, "letters", "careful").folder == tmp_path / "b"
    with pytest.raises(InputError, match="several modes: economy, careful; name one"):
        place_of(read, "letters")
    file.write_text(file.read_text().replace(modes, ""))
    with pytest.raises(InputError, match="names no bundle"):
        place_of(read_config(file), "letters")
    assert MODELS in file.read_text()
