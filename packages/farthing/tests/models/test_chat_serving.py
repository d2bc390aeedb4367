"""What Farthing sends it also reads, and what it replies it reads back as it was."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farthing.errors import BadRequestError
from farthing.models.base import (
    MAX_TOKENS,
    Completion,
    Finish,
    Message,
    Prompt,
    Speaker,
    TokenLogprob,
    Usage,
)
from farthing.models.chat_completions import read_completion, request_body
from farthing.models.chat_serving import chunks, read_request, reply

texts = st.text(max_size=8)
speakers: list[Speaker] = ["system", "user", "assistant"]
prompts = st.builds(
    Prompt,
    messages=st.lists(
        st.builds(Message, st.sampled_from(speakers), texts), min_size=1, max_size=3
    ).map(tuple),
    max_tokens=st.integers(1, 5_000),
    temperature=st.floats(0, 2),
    top_p=st.floats(0, 1),
    stop=st.lists(st.text(min_size=1, max_size=3), max_size=4).map(tuple),
    top_logprobs=st.integers(0, 20),
    seed=st.none() | st.integers(0, 2**40),
)
logprobs = st.floats(-50, 0)
places = st.builds(
    TokenLogprob, texts, logprobs, st.lists(st.tuples(texts, logprobs), max_size=5).map(tuple)
)
finishes: list[Finish] = ["stop", "length", "refused"]
completions = st.builds(
    Completion,
    text=texts,
    model=st.just("m"),
    finish=st.sampled_from(finishes),
    usage=st.builds(Usage, st.integers(1, 99), st.integers(1, 99)),
    cost_nano=st.none(),
    latency_s=st.just(0.5),
    logprobs=st.lists(places, max_size=4).map(tuple),
)


def body(**wanted: Any) -> bytes:
    messages = [{"role": "user", "content": "hi"}]
    return msgspec.json.encode({"model": "m", "messages": messages} | wanted)


@given(prompts, st.sampled_from(["max_tokens", "max_completion_tokens"]))
def test_what_is_sent_is_read_as_it_was(prompt: Prompt, limit_name: str) -> None:
    sent = msgspec.json.encode(request_body(prompt, "m", limit_name))
    request = read_request(sent)
    assert request.prompts(9) == (prompt,)
    assert request.model == "m"
    assert request.top_logprobs == (prompt.top_logprobs or None)


@pytest.mark.slow
@given(completions)
def test_what_is_replied_is_read_back_as_it_was(done: Completion) -> None:
    request = read_request(body(logprobs=True, top_logprobs=20))
    sent = msgspec.json.encode(reply(request, [done]))
    assert read_completion(sent, request.prompt, "other", None, 0.5) == done


def test_without_a_limit_it_is_the_models_and_a_seed_counts_up() -> None:
    request = read_request(body(n=3, seed=7))
    assert [(p.max_tokens, p.seed) for p in request.prompts(50)] == [(50, 7), (50, 8), (50, 9)]
    assert request.prompt.max_tokens == MAX_TOKENS
    assert [p.seed for p in read_request(body(n=2)).prompts(5)] == [None, None]
    assert read_request(body(max_tokens=8)).prompts(50)[0].max_tokens == 8


def test_parts_and_developers_are_understood() -> None:
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]
    read = read_request(body(messages=messages)).prompt.messages
    assert read == (Message("system", "be brief"), Message("user", "ab"))


def test_tokens_have_log_probabilities_without_alternatives() -> None:
    request = read_request(body(logprobs=True))
    assert request.prompt.top_logprobs == 1, "a prompt without any gets none at all"
    token = TokenLogprob("a", -0.5, (("a", -0.5),))
    done = Completion("a", "m", "stop", Usage(1, 1), None, 0.1, (token,))
    shown = reply(request, [done])["choices"][0]["logprobs"]["content"]
    assert shown == [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]
    hidden = reply(read_request(body()), [done])["choices"][0]
    assert hidden["logprobs"] is None


def test_usage_counts_a_prompt_once() -> None:
    done = Completion("a", "m", "stop", Usage(10, 2), None, 0.1)
    used = reply(read_request(body(n=2)), [done, replace(done, usage=Usage(10, 5))])["usage"]
    assert used == {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}


def test_a_stream_says_the_same_in_pieces() -> None:
    options = {"include_usage": True}
    request = read_request(body(n=2, stream=True, stream_options=options, logprobs=True))
    done = [
        Completion(text, "m", "stop", Usage(3, 1), None, 0.1, (TokenLogprob(text, -1.0),))
        for text in ("yes", "no")
    ]
    found = chunks(request, done)
    whole = reply(request, done)
    for at, text in enumerate(("yes", "no")):
        mine = [c["choices"][0] for c in found if c["choices"] and c["choices"][0]["index"] == at]
        assert mine[0]["delta"]["role"] == "assistant"
        assert "".join(one["delta"].get("content", "") for one in mine) == text
        assert [one["finish_reason"] for one in mine] == [None, None, "stop"]
        assert mine[1]["logprobs"] == whole["choices"][at]["logprobs"]
    assert found[-1]["choices"] == []
    assert [chunk["usage"] for chunk in found] == [None] * 6 + [whole["usage"]]
    assert len({chunk["id"] for chunk in found}) == 1
    assert all("usage" not in c for c in chunks(read_request(body(stream=True)), done))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"temperature": 3}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"n": 0}, r"\$.n"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, r"messages\[0\].role"),
        ({"model": None}, "model"),
        ({"top_logprobs": 3}, "'top_logprobs' needs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"stop": ["a"] * 5}, "'stop' takes up to 4"),
        ({"stop": ""}, "none of them empty"),
        ({"tools": [{"type": "function"}]}, "'tools' is not supported"),
        ({"response_format": {"type": "json_object"}}, "'response_format' is not supported"),
        ({"presence_penalty": 0.5}, "'presence_penalty' is not supported"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequestError, match=said):
        read_request(body(**wanted))


def test_what_changes_nothing_is_taken() -> None:
    read_request(body(user="me", presence_penalty=0, response_format={"type": "text"}, tools=[]))
    for wrong in (b"", b"[]", b"\xff"):
        with pytest.raises(BadRequestError, match="cannot be read"):
            read_request(wrong)
