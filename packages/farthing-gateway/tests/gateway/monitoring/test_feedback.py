"""Feedback: what grades an audit, what is volunteered, and that each is counted once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec
import pytest
from made_traffic import call
from watched_traffic import AGREEMENT, RIGHT, later, reply

from farthing.tasks.multiple_choice import MULTIPLE_CHOICE
from farthing.tasks.text import TEXT
from farthing_gateway.errors import ApiError
from farthing_gateway.monitoring.base import PromiseStatus
from farthing_gateway.monitoring.counter import count
from farthing_gateway.monitoring.feedback import Feedback, Grading, Noted, read_feedback
from farthing_gateway.monitoring.promises import kept
from farthing_gateway.monitoring.status import StoredWatch, open_watch
from farthing_gateway.recording.record import FALLBACK, PolicyDecision, RequestRecord
from farthing_gateway.recording.redaction import contacts
from farthing_gateway.recording.text_retention import TextRetention
from farthing_gateway.recording.traffic import Traffic, open_traffic
from farthing_gateway.request_schema import RequestError
from farthing_gateway.storage.database import Step

SETS = PolicyDecision(kind="split", graded_by="feedback", promised=0.9)
PARITY = PolicyDecision(kind="parity", graded_by="feedback", promised=0.49, reference="large")


@dataclass
class Desk:
    """Takes feedback, and counts it."""

    traffic: Traffic
    watch: StoredWatch
    grading: Grading

    async def put(self, *requests: RequestRecord) -> None:
        for one in requests:
            self.traffic.put(one)
        await self.traffic.flush()

    async def say(
        self, name: str, grade: float | bool | None = None, gold: str | None = None
    ) -> Noted:
        passed = await self.traffic.find(name)
        assert passed is not None
        return await self.grading.note(
            Feedback(trace_id=name, grade=grade, gold=gold, comment="why"), passed, TEXT, "key"
        )

    async def kept(self) -> PromiseStatus:
        await count(self.watch.database, 0.05)
        return (await self.watch.kept())[0]


def playing(
    where: str, play: Callable[[Desk], Awaitable[None]], keeping: TextRetention | None = None
) -> None:
    async def go() -> None:
        keep = keeping or TextRetention()
        traffic = await open_traffic(where, keep.redact, keep_prompts=keep.prompts)
        watch = await open_watch(where)
        try:
            await play(Desk(traffic, watch, Grading(watch.database, traffic, keep)))
        finally:
            await watch.aclose()
            await traffic.aclose()

    asyncio.run(go())


def test_a_grade_of_an_audit_enters_the_interval_and_any_other_does_not(where: str) -> None:
    async def play(desk: Desk) -> None:
        drawn = [reply(f"a{k}", RIGHT, audited=True) for k in range(4)]
        await desk.put(*drawn, *(reply(f"v{k}", RIGHT) for k in range(3)))
        for k, grade in enumerate([1.0, False, True]):
            noted = await desk.say(f"a{k}", grade)
            assert noted.audit
        for k in range(3):
            assert not (await desk.say(f"v{k}", 0.0)).audit
        found = await desk.kept()
        assert (found.replies, found.drawn, found.graded) == (7, 4, 3)
        assert found.share == pytest.approx(2 / 3)
        assert (found.volunteered, found.volunteered_share) == (3, 0.0)
        assert [one.trace_id for one in await desk.watch.ungraded()] == ["a3"]

    playing(where, play)


def test_what_is_sent_again_is_kept_and_counted_no_second_time(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", RIGHT, audited=True), reply("v", RIGHT))
        for grade in (1.0, 0.0, 0.5):
            await desk.say("a", grade)
            await desk.say("v", grade)
            await desk.kept()
        found = await desk.kept()
        assert (found.graded, found.share) == (1, 1.0)  # the first entered
        assert (found.volunteered, found.volunteered_share) == (1, 0.5)  # the last is shown
        rows = await desk.watch.database.read("SELECT id, grade, revision FROM feedback")
        assert sorted(rows) == [("a", 0.5, 3), ("v", 0.5, 3)]

    playing(where, play)


def test_a_later_grade_without_a_comment_leaves_the_one_before(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("v", RIGHT))

        async def comment(*said: Feedback) -> str | None:
            for one in said:
                passed = await desk.traffic.find("v")
                assert passed is not None
                await desk.grading.note(one, passed, TEXT, "key")
            ((kept,),) = await desk.watch.database.read("SELECT comment FROM feedback")
            return str(kept) if kept is not None else None

        plain = Feedback(trace_id="v", grade=1.0)
        assert await comment(plain) is None
        assert await comment(Feedback(trace_id="v", grade=0.0, comment="late"), plain) == "late"
        assert await comment(Feedback(trace_id="v", grade=0.0, comment="no")) == "no"

    playing(where, play)


def test_many_at_once_about_one_request_count_once(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", RIGHT, audited=True), reply("v", RIGHT))
        said = [desk.say(name, k / 10) for k in range(8) for name in ("a", "v")]
        await asyncio.gather(*said)
        found = await desk.kept()
        assert (found.graded, found.volunteered) == (1, 1)
        ((last,),) = await desk.watch.database.read("SELECT grade FROM feedback WHERE id = 'v'")
        assert found.volunteered_share == pytest.approx(last)

    playing(where, play)


def test_an_agreement_is_graded_by_no_user(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", AGREEMENT, audited=True))
        await desk.put(reply("e", AGREEMENT))
        noted = await desk.say("a", 0.0)
        assert not noted.audit
        assert "for which chance drew this request is graded by the reference's" in noted.says
        assert "no audit drew this request" in (await desk.say("e", 0.0)).says
        found = await desk.kept()
        assert (found.drawn, found.graded, found.volunteered) == (1, 0, 2)

    playing(where, play)


def test_a_trial_of_who_stood_in_for_another_says_nothing_of_the_reply(where: str) -> None:
    async def play(desk: Desk) -> None:
        one = replace(reply("a", answer="7"), certificate=None, decided=None)
        stood_in = msgspec.structs.replace(one.trace.calls[0], extra={FALLBACK: 1.0})
        await desk.put(replace(one, trace=msgspec.structs.replace(one.trace, calls=[stood_in])))
        await desk.traffic.attach("a", [call("small", answer="4")])
        assert (await desk.say("a", gold="4")).grade == 0.0

    playing(where, play)


def test_of_an_audit_that_was_given_up_it_is_said(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", SETS, audited=True))
        assert "once the other models were asked" in (await desk.say("a", gold="5")).says
        await desk.watch.database.write(Step("UPDATE audits SET state = 'failed'"))
        assert "its audit was given up" in (await desk.say("a", gold="5")).says
        assert (await desk.kept()).graded == 0

    playing(where, play)


def test_an_accepted_answer_grades_what_was_returned_under_the_task(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(*(reply(f"a{k}", RIGHT, answer=" 4. ", audited=True) for k in range(2)))
        await desk.put(replace(reply("none", answer="4"), certificate=None, decided=None))
        assert (await desk.say("a0", gold="4")).grade == 1.0
        assert (await desk.say("a1", gold="5")).grade == 0.0
        assert (await desk.say("none", gold="4")).grade == 1.0
        found = await desk.kept()
        assert (found.graded, found.share, found.volunteered) == (2, 0.5, 0)

    playing(where, play)


def test_a_set_waits_for_the_other_models_before_gold_grades_it(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", SETS, audited=True), reply("b", SETS, audited=True))
        assert (await desk.say("a", gold="5")).grade == 0.0
        assert (await desk.kept()).graded == 0
        for name in ("a", "b"):
            await desk.traffic.attach(name, [call("large", answer="6")])
        await desk.watch.database.write(Step("UPDATE audits SET state = 'done'"))
        await desk.say("a", gold="5")  # no model had it, which the promise allows for
        await desk.say("b", gold="6")  # the large one had
        found = await desk.kept()
        assert (found.graded, found.share) == (2, 0.5)

    playing(where, play)


@pytest.mark.parametrize(
    ("decided", "gold", "whole", "expected"),
    [
        (RIGHT, "4", False, 1.0),
        (RIGHT, "6", False, 0.0),
        (SETS, "4", False, None),
        (SETS, "4", True, 1.0),
        (SETS, "6", True, 0.0),
        (SETS, "9", True, 1.0),
        (msgspec.structs.replace(SETS, pooled=False), "9", False, 0.0),
        (PARITY, "4", True, 1.0),  # right, and the reference wrong
        (PARITY, "6", True, 0.0),
        (PARITY, "9", True, 0.5),
        (msgspec.structs.replace(PARITY, reference="gone"), "4", True, None),
    ],
)
def test_what_gold_says_of_each_promise(
    decided: PolicyDecision, gold: str, expected: float | None, *, whole: bool
) -> None:
    shown = msgspec.structs.replace(decided, returned=("3", "4"))
    calls = [call("small", "4"), call("large", "6")]
    assert kept(shown, calls, gold, TEXT, whole=whole) == expected


def test_what_was_taken_out_is_compared_with_nothing(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", RIGHT, answer="ann@example.org", audited=True))
        noted = await desk.say("a", gold="ann@example.org")
        assert noted.grade is None
        assert "send a grade" in noted.says
        assert (await desk.say("a", 1.0)).grade == 1.0
        assert (await desk.kept()).graded == 1
        rows = await desk.watch.database.read("SELECT gold, comment FROM feedback")
        assert rows == [(None, "why")]

    playing(where, play, TextRetention(contacts))


def test_without_prompts_no_text_of_feedback_is_kept(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", RIGHT, audited=True))
        await desk.say("a", gold="SECRET")
        rows = await desk.watch.database.read("SELECT * FROM feedback")
        assert "SECRET" not in str(rows)
        assert "why" not in str(rows)

    playing(where, play, TextRetention(prompts=False))


def test_an_answer_that_cannot_be_one_is_refused(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", RIGHT, audited=True))
        passed = await desk.traffic.find("a")
        assert passed is not None
        said = Feedback(trace_id="a", gold=" ")
        with pytest.raises(ApiError) as refused:
            await desk.grading.note(said, passed, MULTIPLE_CHOICE, None)
        assert refused.value.status == 422

    playing(where, play)


def test_old_feedback_and_audits_are_deleted_and_what_they_came_to_stays(where: str) -> None:
    async def play(desk: Desk) -> None:
        await desk.put(reply("a", RIGHT, audited=True), reply("b", RIGHT, audited=True))
        await desk.say("a", 1.0)
        await desk.kept()
        await desk.watch.database.write(Step("UPDATE audits SET state = 'done' WHERE id = 'a'"))
        await desk.watch.database.write(Step("UPDATE feedback SET at_us = 0"))
        await desk.watch.forget_before(later(1))
        assert await desk.watch.database.read("SELECT id FROM audits") == [("b",)]
        assert await desk.watch.database.read("SELECT id FROM feedback") == []
        assert (await desk.kept()).graded == 1

    playing(where, play)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"trace_id": "a"}',
        b'{"trace_id": "", "grade": 1}',
        b'{"trace_id": "a b", "grade": 1}',
        b'{"trace_id": "a", "grade": 1.01}',
        b'{"trace_id": "a", "grade": NaN}',
        b'{"trace_id": "a", "grade": 1, "gold": "4"}',
        b'{"trace_id": "a", "gold": " "}',
        b'{"trace_id": "a", "grade": 1, "more": 1}',
        b'{"trace_id": "a\\u0000", "grade": 1}',
        b'{"trace_id": "a", "grade": "1"}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_what_is_no_feedback_is_refused(body: bytes) -> None:
    with pytest.raises(RequestError):
        read_feedback(body)


@pytest.mark.parametrize("said", [b"true", b"1", b"0", b"0.5", b"false"])
def test_grades_are_numbers_or_truths(said: bytes) -> None:
    assert read_feedback(b'{"trace_id": "a", "grade": ' + said + b"}").grade is not None
