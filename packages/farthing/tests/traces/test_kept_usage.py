"""What a trace keeps of a usage, and that what has none stays what it was."""

import hashlib

import msgspec
import pytest

from farthing.models.base import Message, Prompt, Usage
from farthing.runtime.journal import Attempt, entry
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.copies import content_of
from farthing.traces.costs import kept, usage_of
from farthing.traces.fingerprint import fingerprint

OLD = Trace(
    id="q1",
    question="2 + 2?",
    gold=["4"],
    calls=[
        Call(
            round=1,
            role=role,
            model=role,
            answer="4",
            correct=True,
            input_tokens=read,
            output_tokens=3,
            cost_usd=usd,
            extra={"reasoning_tokens": 2.0},
        )
        for role, read, usd in (("small", 10, 1e-5), ("large", 11, 1e-4))
    ],
    independent=True,
)


def test_a_trace_without_the_new_counts_is_what_it_was() -> None:
    """Golden values of the version before: no answer is bought twice."""
    assert fingerprint(assemble([OLD])) == (
        "415459019f6d6f85cab0ad17d5ecab3b63ba91a779c9a776ebeb3e9445e28119"
    )
    assert content_of(OLD) == 10_850_815_228_906_002_309
    written = hashlib.sha256(msgspec.json.encode(OLD)).hexdigest()
    assert written == "7708354a8198ebfcc11b79604dd4d658552bb32371c780541a6b2075a204a1f6"
    prompt = Prompt((Message("user", "2 + 2?"),), max_tokens=9)
    key = entry(Attempt("q1", 1, "small", "effort=low"), "small", prompt, 0).key
    assert key == "77b1f0aafd98bf880a136f2ff41aa8d662a8d8c2b8b711ef2b066a8c49181b80"


@pytest.mark.parametrize(
    "usage",
    [
        Usage(10, 3, reasoning_tokens=0),
        Usage(100, 3, cached_tokens=90, cache_writes=5, cache_writes_hour=4, reasoning_tokens=2),
        Usage(100, 3, audio_input=9, audio_cached=1, audio_output=2, reasoning_tokens=1),
        Usage(9, 3, tier="flex", units=(("web_searches", 2),), reasoning_tokens=0),
    ],
)
def test_what_is_kept_is_read_again(usage: Usage) -> None:
    call = Call(
        round=1,
        role="m",
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        extra=kept(usage),
    )
    again = msgspec.json.decode(msgspec.json.encode(call), type=Call)
    assert usage_of(again) == usage


def test_a_plain_call_keeps_nothing() -> None:
    assert kept(Usage(10, 3)) == {} == kept(None)
