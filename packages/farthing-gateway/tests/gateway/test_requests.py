"""What is read from a request, what is refused, and that nothing else escapes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import BadRequestError
from farthing_gateway.chat_request import ChatRequest, conversation_of, read_request
from farthing_gateway.options import RequestOptions
from farthing_gateway.priced_places import places_in
from farthing_gateway.request_schema import RequestError

HELLO = [{"role": "user", "content": "Hello"}]


def read(headers: dict[str, str] | None = None, **body: Any) -> ChatRequest:
    whole = {"model": "m", "messages": HELLO} | body
    return read_request(json.dumps(whole).encode(), headers or {})


def test_a_small_request() -> None:
    request = read()
    assert request == ChatRequest(
        body={"model": "m", "messages": HELLO},
        model="m",
        stream=False,
        include_usage=False,
        n=1,
        limit=None,
        options=RequestOptions(),
    )
    assert request.messages == HELLO
    assert request.plain


def test_a_full_request_is_kept_with_fields_that_nobody_knows() -> None:
    body: dict[str, Any] = {
        "n": 3,
        "max_tokens": 7,
        "stream": True,
        "stream_options": {"include_usage": True, "new": 1},
        "tomorrow": {"a": [1.5, None]},
    }
    request = read(None, **body, farthing={"budget": 1})
    assert request.body == {"model": "m", "messages": HELLO} | body
    assert (request.n, request.limit, request.stream) == (3, 7, True)
    assert request.include_usage
    assert not request.plain


def test_the_newer_limit_goes_first() -> None:
    assert read(max_tokens=7, max_completion_tokens=9).limit == 9
    assert read(max_tokens=7, max_completion_tokens=None).limit == 7


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"response_format": {"type": "json_object"}},
        {"n": 2},
        {"logprobs": True},
        {"frequency_penalty": 0.5},
        {"modalities": ["text", "audio"]},
        {"messages": [{"role": "tool", "content": "4", "tool_call_id": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        {"messages": [{"role": "assistant", "content": None}]},
        {"messages": [{"role": "user", "content": "Hi", "name": "Ann"}]},
    ],
)
def test_what_is_not_plain(more: dict[str, Any]) -> None:
    assert not read(**more).plain


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 3, "max_tokens": 9, "n": 1},
        {"tools": None, "tool_choice": "auto", "response_format": {"type": "text"}},
        {"frequency_penalty": 0, "logprobs": False, "user": "ann"},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
        {"messages": [{"role": "assistant", "content": "Hi", "refusal": None, "tool_calls": []}]},
    ],
)
def test_what_is_plain(more: dict[str, Any]) -> None:
    assert read(**more).plain


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"model": None}, "model"),
        ({"model": ""}, "model"),
        ({"model": 4}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": ["Hi"]}, "messages[0]"),
        ({"messages": [*HELLO, {"role": "judge", "content": ""}]}, "messages[1].role"),
        ({"messages": [{"role": ["user"], "content": ""}]}, "messages[0].role"),
        ({"messages": [{"content": "Hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 4}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["Hi"]}]}, "messages[0].content"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"n": 1.0}, "n"),
        ({"n": True}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"max_completion_tokens": 2**31}, "max_completion_tokens"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "0"}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"logprobs": 1}, "logprobs"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"stop": [1]}, "stop"),
        ({"stop": {"a": 1}}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": True}, "stream_options"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"farthing": "cheap"}, "farthing"),
        ({"farthing": {"budgte": 1}}, "farthing"),
        ({"farthing": {"reliability": 1}}, "farthing.reliability"),
        ({"farthing": {"reliability": 0}}, "farthing.reliability"),
        ({"farthing": {"budget": -0.01}}, "farthing.budget"),
        ({"farthing": {"budget": True}}, "farthing.budget"),
        ({"farthing": {"budget": "nan"}}, "farthing.budget"),
        ({"farthing": {"budget": 1e300}}, "farthing.budget"),
        ({"farthing": {"deadline": 0}}, "farthing.deadline"),
        ({"farthing": {"deadline": []}}, "farthing.deadline"),
        ({"farthing": {"mode": ""}}, "farthing.mode"),
        ({"farthing": {"mode": "a\nb"}}, "farthing.mode"),
        ({"farthing": {"conversation": "x" * 257}}, "farthing.conversation"),
    ],
)
def test_what_is_refused_names_its_field(more: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(**more)
    assert caught.value.param == param
    assert param in str(caught.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is not JSON"),
        (b'{"model": "m"', "is not JSON"),
        (b'{"temperature": NaN}', "is not JSON"),
        (b'{"temperature": Infinity}', "is not JSON"),
        (b'{"temperature": 1e999}', "is not JSON"),
        (b'{"model": "\\ud800"}', "is not JSON"),
        (b'{"model": "\xff"}', "UTF-8"),
        (b"[]", "must be a JSON object"),
        (b'{"seed": ' + b"9" * 30 + b"}", "64 bits"),
        (b'{"seed": ' + b"9" * 10_000 + b"}", "is not JSON"),
        (b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}", "more than 64"),
        (b'{"a": ' + b"[" * 1_000_000, "more than 64"),
        (b'{"a":' * 1_000_000, "more than 64"),
    ],
)
def test_a_body_that_is_no_request(body: bytes, said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        read_request(body, {})


def test_depth_is_counted_exactly() -> None:
    body = b'{"model": "m", "messages": [{"role": "user", "content": ""}], "a": %s%s}'
    assert read_request(body % (b"[" * 9, b"]" * 9), {}, most_depth=10).model == "m"
    with pytest.raises(RequestError, match="more than 10"):
        read_request(body % (b"[" * 10, b"]" * 10), {}, most_depth=10)


def test_wishes_of_headers_and_of_the_body_which_goes_first() -> None:
    headers = {
        "X-Farthing-Reliability": "0.95",
        "x-farthing-budget": "0.0000000019",
        "X-FARTHING-MODE": "careful",
        "X-Farthing-Deadline": "2.5",
        "X-Farthing-Conversation": "c1",
    }
    assert read(headers).options == RequestOptions(0.95, 1.9e-9, "careful", 2.5, "c1")
    assert read(headers).options.budget_nano == 1
    options = read(headers, farthing={"budget": 0.5, "mode": None}).options
    assert options == RequestOptions(0.95, 0.5, "careful", 2.5, "c1")
    assert options.budget_nano == 500_000_000


def test_a_header_out_of_range_is_named() -> None:
    with pytest.raises(RequestError) as caught:
        read({"x-farthing-budget": "much"})
    assert caught.value.param == "X-Farthing-Budget"


def test_later_turns_keep_the_mark_of_their_conversation() -> None:
    begun = [{"role": "system", "content": "Be brief."}, *HELLO]
    later = [*begun, {"role": "assistant", "content": "Hi"}, {"role": "user", "content": "And?"}]
    mark = conversation_of(read(messages=begun))
    assert len(mark) == 16
    assert int(mark, 16) >= 0
    assert conversation_of(read(messages=later, temperature=0.3)) == mark
    others = [
        read(),
        read(messages=begun, user="ann"),
        read(messages=begun, farthing={"conversation": "c1"}),
        read(messages=[begun[0], {"role": "user", "content": "Another"}]),
    ]
    assert len({mark, *map(conversation_of, others)}) == 5


def test_a_named_conversation_has_one_mark_whatever_is_said() -> None:
    named = {"conversation": "c1"}
    first, other = read(farthing=named), read(messages=[*HELLO, *HELLO], farthing=named)
    assert conversation_of(first) == conversation_of(other)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
FIELDS = (
    *("model", "messages", "n", "max_tokens", "max_completion_tokens", "temperature", "top_p"),
    *("logprobs", "top_logprobs", "stop", "stream", "stream_options", "farthing", "tools", "user"),
)
WISHES = st.dictionaries(
    st.sampled_from(["reliability", "budget", "mode", "deadline", "conversation", "x"]), JSON
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | JSON},
    optional={"content": JSON | st.lists(st.dictionaries(st.just("type"), JSON)), "audio": JSON},
)
BODY = st.fixed_dictionaries(
    {"model": st.text() | JSON, "messages": st.lists(MESSAGE, max_size=3) | JSON},
    optional=dict.fromkeys(FIELDS[2:], JSON) | {"farthing": WISHES | JSON},
)


@pytest.mark.slow
@given(BODY | JSON, st.dictionaries(st.sampled_from(["X-Farthing-Budget", "a"]), st.text()))
@settings(deadline=None, max_examples=150)
def test_any_json_is_read_or_refused(body: Any, headers: dict[str, str]) -> None:
    _read_or_refused(json.dumps(body).encode(), headers)


@given(st.binary())
@settings(deadline=None)
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    _read_or_refused(body, {})


def _read_or_refused(body: bytes, headers: dict[str, str]) -> None:
    try:
        request = read_request(body, headers)
    except BadRequestError:
        return
    assert request.plain in {True, False}
    assert all(map(str, places_in(request.body)))
    assert len(conversation_of(request)) == 16
