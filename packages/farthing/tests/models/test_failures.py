"""What of a reply with a good status says that it failed, and how."""

from typing import Any

import pytest

from farthing.models.base import Usage
from farthing.models.failures import reply_failure

USED = {"prompt_tokens": 10, "completion_tokens": 2}
CUT = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
FILTERED = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}


def choice(**more: Any) -> dict[str, Any]:
    return {"index": 0, "message": {"role": "assistant", "content": "par"}} | more


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"error": {"message": "slow down", "code": 429}, "user_id": "u"}, "rate_limit"),
        ({"error": {"message": "slow down", "code": "429"}}, "rate_limit"),
        ({"error": "out of memory"}, "connection"),
        ({"error": "slow down", "code": 429}, "rate_limit"),
        ({"error": [{"message": "slow down", "code": 429}]}, "rate_limit"),
        ({"error": {"error": {"message": "slow down", "code": 429}}}, "rate_limit"),
        ({"errors": [{"message": "no"}]}, "connection"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "connection"),
        ({"message": "slow down", "code": 429}, "rate_limit"),
        ({"code": 1113, "msg": "Insufficient balance"}, "connection"),
        ({"base_resp": {"status_code": 1008, "status_msg": "no"}, "choices": None}, "connection"),
        ({"choices": [choice(finish_reason="MALFORMED_FUNCTION_CALL")]}, "connection"),
        ({"choices": [choice(finish_reason="engine_overloaded")]}, "connection"),
        ({"choices": [choice(finish_reason="image_prohibited_content")]}, "filtered"),
        ([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}], "rate_limit"),
        ({"error": {"message": "no", "code": "content_filter"}}, "refused"),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, "bad_request"),
        ({"error": {"code": "context_length_exceeded"}}, "context_too_long"),
        ({"object": "error", "message": "no such model", "code": 404}, "bad_request"),
        ({"type": "error", "error": {"type": "overloaded_error"}}, "connection"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "m"}, "rate_limit"),
        ({"choices": [choice(delta={})], "error": {"code": 502, "message": "died"}}, "connection"),
        ({"choices": [choice(finish_reason="error", error={"code": 429})]}, "rate_limit"),
        ({"choices": [choice(finish_reason="error")], "usage": USED}, "connection"),
        ({"choices": [choice(finish_reason="stop"), choice(finish_reason="error")]}, "connection"),
        ({"choices": [choice(finish_reason="insufficient_system_resource")]}, "connection"),
        ({"choices": [choice(finish_reason="content_filter")]}, "filtered"),
        ({"type": "message", "content": [], "stop_reason": "refusal"}, "filtered"),
        (
            {"object": "response", "status": "failed", "error": {"code": "server_error"}},
            "connection",
        ),
        ({"output": [], "status": "cancelled", "error": None}, "connection"),
        ({"output": [], "status": "in_progress"}, "connection"),
        ({"type": "response.failed"}, "connection"),
        (
            {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded"}}},
            "rate_limit",
        ),
        ({"type": "response.incomplete", "response": FILTERED}, "filtered"),
        ({"type": "response.incomplete", "response": CUT}, "incomplete"),
        ({"output": []} | CUT, "incomplete"),
        ({"output": [], "status": "incomplete"}, "incomplete"),
    ],
)
def test_a_reply_that_failed_says_how(reply: Any, kind: str) -> None:
    found = reply_failure(reply)
    assert found is not None
    assert (found.kind.kind, found.passes) == (kind, False)
    assert found.used == (Usage(10, 2) if isinstance(reply, dict) and "usage" in reply else None)


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [choice(finish_reason="stop")], "error": None, "usage": USED},
        {"choices": [choice(finish_reason="length")]},
        {"choices": [choice(finish_reason=None)]},
        {"choices": None, "usage": USED},
        {"choices": [choice()], "base_resp": {"status_code": 0, "status_msg": "success"}},
        {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
        {"object": "response", "status": "completed", "error": None, "output": []},
        {"type": "response.created", "response": {"status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "delta": "error"},
        {"type": "message", "content": [], "stop_reason": "max_tokens"},
        {"type": "content_block_delta", "delta": {"text": '{"error": 1}'}},
        {"data": [], "status": "failed"},
        "error",
        None,
    ],
)
def test_what_is_an_answer_did_not_fail(reply: Any) -> None:
    assert reply_failure(reply) is None


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [choice(finish_reason="content_filter")], "usage": USED},
        {"type": "message", "stop_reason": "refusal", "usage": USED},
        {"output": [], "usage": USED} | CUT,
    ],
)
def test_what_was_cut_or_filtered_passes_once_it_says_what_it_used(reply: dict[str, Any]) -> None:
    found = reply_failure(reply)
    assert found is not None
    assert (found.passes, found.used) == (True, Usage(10, 2))


def test_a_response_that_a_filter_ended_does_not_pass() -> None:
    found = reply_failure({"output": [], "usage": USED} | FILTERED)
    assert found is not None
    assert (found.passes, found.used) == (False, Usage(10, 2))
