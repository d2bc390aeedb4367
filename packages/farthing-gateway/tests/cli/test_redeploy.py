"""`farthing recalibrate` and `rollback`: what calibrates, what is written, what is said."""

import asyncio
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_audits import config, live, made_bundle, soon, unaudited, write
from msgspec import structs

from farthing.bundle.folder import load
from farthing.bundle.folder import write as save
from farthing.bundle.versions import versions_of
from farthing.promises.certificate import Certificate, Threshold
from farthing.promises.kinds.agreement import Agreement, AgreementPromise
from farthing.promises.kinds.escalated import EscalatedPromise
from farthing.promises.kinds.groups import GroupsPromise
from farthing.promises.kinds.none import NoPromise
from farthing.recommendation.recalibrate import divided
from farthing.traces.base import Call
from farthing.traces.copies import content_of
from farthing.traces.jsonl import read_traces, write_traces
from farthing_gateway.monitoring.base import Deployed
from farthing_gateway.monitoring.deployments import certificate_mark, deployments
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.storage.database import Step, microseconds, open_database

Farthing = Callable[..., Any]
Refused = Callable[..., str]
AGAIN = ("recalibrate", "serve.toml", "--policy", "letters")
BACK = ("rollback", "serve.toml", "--policy", "letters")
DATABASE = "farthing.db"


@pytest.fixture(scope="module")
def recommended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a bundle of an agreement, and what it was made of."""
    folder = tmp_path_factory.mktemp("recommended")
    made_bundle(folder)
    return folder


@pytest.fixture
def bundle(recommended: Path, tmp_path: Path) -> Path:
    """Return the bundle of a gateway's policy, in a folder of its own."""
    config(tmp_path)
    return Path(shutil.copytree(recommended / "bundles" / "letters", tmp_path / "bundles/letters"))


def content(folder: Path) -> dict[str, bytes]:
    files = (one for one in folder.rglob("*") if one.is_file())
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in files}


def certificate(folder: Path) -> Any:
    found = load(folder).certificate
    assert found is not None
    return found


def said(done: Any) -> Any:
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.slow
def test_the_policy_the_promise_and_the_level_stay_and_the_former_bundle_is_kept(
    farthing: Farthing, bundle: Path
) -> None:
    before, old = content(bundle), certificate(bundle)
    write(DATABASE, live(2_000, soon(), agree=0.8))
    done = farthing(*AGAIN)
    assert done.code == 0, done.err
    lines = " ".join(done.out.split())
    assert lines.startswith("A day costs $")
    assert "under the threshold before; large alone would cost $" in lines
    assert "when version 1 of the bundle began to decide" in lines
    assert "is version 2; version 1 is kept: farthing rollback" in done.err
    new = certificate(bundle)
    assert isinstance(new.promise, AgreementPromise)
    assert new.promises
    assert new.fingerprint != old.fingerprint
    assert (new.promise.epsilon, new.promise.delta) == (old.promise.epsilon, old.promise.delta)
    assert new.promise.reference == old.promise.reference
    after = content(bundle)
    assert after["weights.safetensors"] == before["weights.safetensors"]
    assert content(versions_of(bundle) / "0001") == before
    known = json.loads((versions_of(bundle) / "versions.json").read_text())
    assert known["changes"][-1]["how"] == "recalibrated"
    assert "audits since" in known["changes"][-1]["why"]


@pytest.mark.slow
def test_only_audits_of_the_period_calibrate(
    farthing: Farthing, bundle: Path, tmp_path: Path
) -> None:
    """Answers that would ruin everything, of requests that nobody drew or that came before."""
    begin = soon()
    some = live(2_000, begin)
    write(DATABASE, some)
    expected = said(farthing(*AGAIN, "--dry-run", "--json"))
    ruin = [
        *(unaudited(one) for one in live(900, begin, agree=0, audit=1.0, name="volunteered")),
        *live(900, begin - timedelta(days=30), agree=0, audit=1.0, name="before"),
        *(replace(one, mode="x") for one in live(900, begin, agree=0, audit=1.0, name="mode")),
    ]
    write("ruined.db", [*some, *ruin])
    sent(tmp_path / "ruined.db", ruin)
    config(tmp_path, "ruined.db")
    found = said(farthing(*AGAIN, "--dry-run", "--json"))
    assert found["certificate"] == expected["certificate"]
    assert found["audits"] == expected["audits"]
    assert not versions_of(bundle).exists()
    since = (begin - timedelta(days=31)).isoformat()
    ruined = said(farthing(*AGAIN, "--since", since, "--dry-run", "--json"))
    assert ruined["new"]["cost_nano"] > 1.2 * expected["new"]["cost_nano"]  # they would be seen


def sent(where: Path, passed: Sequence[RequestRecord]) -> None:
    """Write feedback about requests."""
    insert = "INSERT INTO feedback (id, at_us, gold, grade, revision, writer) "
    rows = [(one.id, microseconds(one.at), "Z", 0.0) for one in passed]

    async def go() -> None:
        database = await open_database(str(where))
        await database.write(Step(f"{insert} VALUES ($1, $2, $3, $4, 1, '')", rows))
        await database.aclose()

    asyncio.run(go())


@pytest.mark.slow
def test_the_certificate_is_the_one_that_calibrate_gives_on_exported_traces(
    farthing: Farthing, bundle: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(bundle, tmp_path / "other")
    begin = soon()
    some = live(1_500, begin, agree=0.8)
    write(DATABASE, some)
    shutil.copy(DATABASE, "copy.db")
    assert farthing("traffic", "export", "--database", "copy.db", "--out", "all.jsonl").code == 0
    drawn = {one.id for one in some if one.audited}
    audits = [one for one in read_traces(tmp_path / "all.jsonl") if one.id in drawn]
    content = np.array([content_of(one) for one in audits], dtype=np.uint64)
    lay, _ = divided(content, Agreement("large"), 0)
    marked = [
        structs.replace(one, split="train" if at in set(lay.tolist()) else "calibrate")
        for at, one in enumerate(audits)
    ]
    never = structs.replace(audits[0], id="never used", question="another?", split="test")
    write_traces(tmp_path / "marked.jsonl", [*marked, never])
    asked = ("--promise", "agreement", "--epsilon", "0.1", "--delta", "0.1", "--reference", "large")
    done = farthing("calibrate", "--bundle", other, "--traces", "marked.jsonl", *asked)
    assert done.code == 0, done.err
    assert farthing(*AGAIN).code == 0
    marked_alone = {"fingerprint": certificate(bundle).fingerprint}  # the marks have one, too
    assert certificate(bundle) == structs.replace(certificate(other), **marked_alone)
    assert load(bundle).value == load(other).value


@pytest.mark.slow
def test_what_models_cost_by_now_changes_nothing_of_their_order(
    farthing: Farthing, bundle: Path, tmp_path: Path
) -> None:
    some = live(1_500, soon())
    write(DATABASE, some)
    expected = said(farthing(*AGAIN, "--dry-run", "--json"))

    def dearer(call: Call) -> Call:
        return structs.replace(call, cost_usd=5e-4) if call.role == "small" else call

    now = [
        replace(one, trace=structs.replace(one.trace, calls=[dearer(c) for c in one.trace.calls]))
        for one in some
    ]
    write("dearer.db", now)
    config(tmp_path, "dearer.db")
    found = said(farthing(*AGAIN, "--dry-run", "--json"))
    assert found["new"]["good"] == expected["new"]["good"]
    assert found["new"]["cost_nano"] > expected["new"]["cost_nano"]


@pytest.mark.slow
def test_where_nothing_is_proved_nothing_is_written_and_it_says_how_many_would_do(
    farthing: Farthing, bundle: Path
) -> None:
    before = content(bundle)
    write(DATABASE, live(200, soon()))
    done = farthing(*AGAIN)
    assert (done.code, done.out) == (1, "")
    (line,) = (one for one in done.err.splitlines() if "nothing is proved" in one)
    assert "audits since" in line
    assert "would probably" in line
    export = "farthing traffic export --config serve.toml --policy letters --out day.db"
    assert f"{export}, then farthing recommend day.db." in line
    assert "take `bundle` out of the policy's section" in line  # no version is before this one
    assert content(bundle) == before
    assert not versions_of(bundle).exists()
    document = farthing(*AGAIN, "--json")
    assert document.code == 1
    assert not json.loads(document.out)["proved"]


@pytest.mark.slow
def test_questions_that_trained_or_chose_the_policy_prove_nothing(
    farthing: Farthing, refused: Refused, recommended: Path, bundle: Path
) -> None:
    recorded = read_traces(recommended / "recorded.jsonl")
    frame = live(len(recorded), soon(), audit=1.0)
    again = [
        replace(one, id=trace.id, trace=trace) for one, trace in zip(frame, recorded, strict=True)
    ]
    write(DATABASE, again)
    line = refused(*AGAIN)
    assert "300 of the 1,500 questions trained the policy and 1,200 chose the method" in line
    assert "so nothing could be promised anew; take later ones" in line
    assert not versions_of(bundle).exists()


@pytest.mark.slow
def test_unequal_probabilities_are_said_and_thinned(farthing: Farthing, bundle: Path) -> None:
    begin = soon()
    write(DATABASE, [*live(2_000, begin), *live(300, begin, audit=1.0, name="more", seed=4)])
    done = farthing(*AGAIN, "--dry-run")
    assert done.code == 0, done.err
    assert "left out by chance, so that all of the period are equally likely" in done.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--policy", "numbers"), "unknown policy 'numbers'. Known: letters"),
        (("--policy", "letters", "--mode", "x"), "unknown mode 'x'. Known: default"),
        (("--policy", "letters", "--since", "soon"), "is no date"),
        (("--policy", "letters", "--since", "2100-01-01"), "has no complete audits since"),
    ],
)
def test_wrong_input_is_one_line(
    refused: Refused, bundle: Path, arguments: tuple[str, ...], line: str
) -> None:
    write(DATABASE, live(10, soon()))
    assert line in refused("recalibrate", "serve.toml", *arguments)
    assert not versions_of(bundle).exists()


def test_what_is_missing_is_said_in_one_line(
    refused: Refused, bundle: Path, tmp_path: Path
) -> None:
    assert "there is no such database" in refused(*AGAIN)
    assert "no version before this one" in refused(*BACK)
    assert "there is no version 7" in refused(*BACK, "--to", "7")
    assert "--to means nothing" in refused(*BACK, "--to", "1", "--list")
    write(DATABASE, live(400, soon(), audit=1.0))
    file = tmp_path / "serve.toml"
    file.write_text(file.read_text().replace('"small", "medium", ', '"medium", '))
    assert "and these traces have" not in (line := refused(*AGAIN))
    assert "trained for" in line
    assert "these traces have 1 rounds of medium and large" in line
    shutil.rmtree(bundle)
    assert "no bundle here yet" in refused(*AGAIN)
    assert "no bundle here yet" in refused(*BACK, "--list")
    assert "no such file" in refused("rollback", "none.toml", "--policy", "letters").lower()


@pytest.mark.slow
def test_rolling_back_restores_the_bytes_and_the_log_says_who_decided_when(
    farthing: Farthing, bundle: Path
) -> None:
    first = content(bundle)
    write(DATABASE, live(2_000, soon(), agree=0.8))
    assert farthing(*AGAIN).code == 0
    second = content(bundle)
    write(DATABASE, live(2_000, soon(), agree=0.8, name="more", seed=4))
    anew = farthing(*AGAIN, "--seed", "1", "--since", "2026-01-01")
    assert anew.code == 0, anew.err
    assert "set its threshold: these are left out, and nothing is promised of such" in anew.err
    assert farthing(*BACK).code == 0
    assert content(bundle) == second
    done = farthing(*BACK)
    assert content(bundle) == first
    assert "is version 1 again. With confidence" in done.err
    assert "warning" not in done.err
    assert farthing(*BACK, "--to", "2").code == 0
    assert content(bundle) == second
    log = [(one.how, one.certificate) for one in logged()]
    marks = {n: certificate_mark(certificate(place(bundle, n))) for n in (1, 2, 3)}
    assert log == [
        ("rolled back", marks[2]),
        ("rolled back", marks[1]),
        ("rolled back", marks[2]),
        ("recalibrated", marks[3]),
        ("recalibrated", marks[2]),
    ]
    assert all(one.by for one in logged())
    listed = said(farthing(*BACK, "--list", "--json"))
    assert [(one["version"], one["decides"]) for one in listed] == [
        (3, False),
        (2, True),
        (1, False),
    ]
    assert [one["certificate"] for one in listed] == [marks[3], marks[2], marks[1]]
    table = farthing(*BACK, "--list").out
    assert "2*" in table
    assert max(map(len, table.splitlines())) <= 80


def place(bundle: Path, number: int) -> Path:
    kept = versions_of(bundle) / f"{number:04}"
    return kept if kept.is_dir() else bundle


def logged() -> list[Deployed]:
    async def go() -> list[Deployed]:
        database = await open_database(DATABASE)
        try:
            return await deployments(database, "letters")
        finally:
            await database.aclose()

    return asyncio.run(go())


@pytest.mark.slow
def test_where_nothing_more_is_proved_the_version_before_is_named(
    farthing: Farthing, bundle: Path
) -> None:
    begin = soon()
    write(DATABASE, live(3_000, begin, agree=0.8))
    said(farthing(*AGAIN, "--json"))
    late = begin + timedelta(seconds=3_000)
    write(DATABASE, live(60, late, agree=0.8, name="more", seed=4))
    done = farthing(*AGAIN, "--since", late.isoformat())
    assert done.code == 1
    (line,) = (one for one in done.err.splitlines() if "nothing is proved" in one)
    back = " ".join(("farthing", *BACK))
    assert line.endswith(f"Or put the version before back: {back}.")


@pytest.mark.slow
def test_going_back_to_a_certificate_that_an_alarm_ended_warns(
    farthing: Farthing, bundle: Path
) -> None:
    mark, begin = certificate_mark(certificate(bundle)), soon()
    write(DATABASE, live(3_000, begin, agree=0.8))
    rang = begin + timedelta(seconds=900)

    async def alarm() -> None:
        database = await open_database(DATABASE)
        columns = "id, policy, mode, certificate, signal, at_us, says, evidence"
        row = ("a", "letters", "default", mark, "promise", microseconds(rang), "It fell.", 30.0)
        late = microseconds(rang + timedelta(seconds=900))
        others = [
            ("b", "other", *row[2:5], late, *row[6:]),
            ("c", *row[1:3], "x", "cost", late, "", 9),
        ]
        values = ", ".join(f"${n}" for n in range(1, 9))
        insert = f"INSERT INTO alarms ({columns}) VALUES ({values})"
        await database.write(Step(insert, [row, *others]))
        await database.aclose()

    asyncio.run(alarm())
    found = said(farthing(*AGAIN, "--json"))
    assert found["because"] == "when the alarm about promise rang"
    assert datetime.fromisoformat(found["since"]) == rang.astimezone(UTC)
    assert found["requests"] == 2_100
    done = farthing(*BACK)
    assert done.code == 0
    assert "warning: an alarm about promise rang under its certificate" in done.err
    assert "An alarm about promise" in " ".join(farthing(*BACK, "--list").out.split())


def test_promises_that_audits_are_no_sample_for_are_refused(refused: Refused, bundle: Path) -> None:
    write(DATABASE, live(50, soon()))
    found = load(bundle)
    passing_on = EscalatedPromise(
        alpha=Fraction(1, 10),
        epsilon=Fraction(1, 10),
        delta=Fraction(1, 10),
        reference="large",
        points=1,
        point=0,
    )
    groups = GroupsPromise(alpha=Fraction(1, 10), groups={"a": Threshold(kappa=0.1, k=1, n=9)})
    for promise, why in (
        (passing_on, "it passes questions on"),
        (groups, "it promises something to each group"),
        (NoPromise(), "the bundle promises 'none', which audits alone cannot prove anew"),
    ):
        changed = Certificate(promise=promise, kappa=found.kappa or 0.0)
        save(bundle, structs.replace(found, certificate=changed))
        assert why in refused(*AGAIN)


@pytest.mark.slow
def test_where_the_log_cannot_be_written_the_bundle_is_put_back_and_it_is_said(
    farthing: Farthing, bundle: Path
) -> None:
    first = content(bundle)
    write(DATABASE, live(2_000, soon()))
    assert farthing(*AGAIN).code == 0
    Path(DATABASE).unlink()
    done = farthing(*BACK)
    assert done.code == 0, done.err
    assert "the log of deployments does not say it" in done.err
    assert content(bundle) == first
    assert not Path(DATABASE).exists()
