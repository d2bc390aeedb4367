"""What a client gets: a normal chat completion, and beside it what it cost and what is promised."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from farthing.models.chat_serving import head, piece
from farthing.money import usd_from_nano
from farthing.runtime.answer import Answer, Returned
from farthing.traces.base import Call
from farthing.traces.pool import of_thought
from farthing.traces.system import Provenance
from farthing_gateway.bundles import ServedMode

NONE = "none"


@dataclass(frozen=True)
class Receipt:
    """What is said of a reply beside its text."""

    trace: str
    """Its id in the recorded traffic."""
    model: str
    """What was asked for."""
    answered_by: str | None
    """The model whose reply it is."""
    cost_nano: int | None
    latency_s: float
    """From the request to the reply, in seconds."""
    estimated: bool = False
    """Whether the cost is a bound, since a provider did not say what was used."""
    calls: tuple[Mapping[str, Any], ...] = ()
    """Every try, in the order in which they began."""
    saved_nano: int | None = None
    """Against the strongest model, at its price for the same tokens."""
    promise: str = NONE
    """The kind of promise that this reply keeps, such as `parity`."""
    says: str = ""
    """The promise in a sentence, or why there is none."""
    certificate: str | None = None
    mode: str | None = None
    under: str | None = None
    """The certificate that decided, also one that holds no more (an alarm rang, or a model is
    another): audits go on, as a new one is made of them. Not said to clients."""
    provenance: Provenance | None = None
    """Whether requests are made as those in the bundle's traces were; None: no bundle decided."""
    max_tokens: int | None = None
    """The limit that it was asked with since more could not be paid; None: as the client asked."""
    dropped: tuple[str, ...] = ()
    """What was left out of the request, by its place."""
    outside: str | None = None
    """By what it is outside a policy's task, where it is or nearly is one's."""
    stopped: bool = False
    """Whether the client did not stay for the end."""
    answers: tuple[Mapping[str, Any], ...] = ()
    """The set, where there is one."""

    def to_json(self) -> dict[str, Any]:
        """Return the object `farthing` of a reply."""
        return {
            "trace_id": self.trace,
            "answered_by": self.answered_by,
            "cost_usd": _usd(self.cost_nano),
            "cost_nano": self.cost_nano,
            "cost_estimated": self.estimated,
            "saved_usd": _usd(self.saved_nano),
            "latency_s": round(self.latency_s, 4),
            "calls": list(self.calls),
            "promise": self.promise,
            "says": self.says,
            "certificate": self.certificate,
            "provenance": self.provenance,
            "mode": self.mode,
            "max_tokens": self.max_tokens,
            "dropped": list(self.dropped),
            "outside": self.outside,
            "set": list(self.answers),
        }

    def headers(self) -> dict[str, str]:
        """Return what headers say of it, for clients that read no more of a body than OpenAI's."""
        return headers_of(self.to_json())


@dataclass(frozen=True)
class PolicyReply:
    """A policy's reply: its choices, and the receipt."""

    choices: tuple[str | None, ...]
    """Whole texts, the best first; a single None where no answer is given."""
    receipt: Receipt
    usage: tuple[int, int]
    """Tokens read and written, in all calls."""

    def body(self) -> bytes:
        """Return the reply in one piece, as a chat completion without its receipt."""
        choices = [
            {"index": at, "message": self._message(text), "logprobs": None, "finish_reason": "stop"}
            for at, text in enumerate(self.choices)
        ]
        whole = self._head("chat.completion") | {"choices": choices, "usage": self._usage()}
        return msgspec.json.encode(whole)

    def chunks(self, *, usage: bool) -> Iterator[bytes]:
        """Yield the data of a stream's events: the decision is made, so the text is known."""
        first = self._head("chat.completion.chunk")
        for at, text in enumerate(self.choices):
            begun = {"role": "assistant", **({"content": ""} if text is not None else {})}
            rest = {"content": text} if text is not None else {"refusal": self.receipt.says}
            for one in (piece(at, begun), piece(at, rest), piece(at, {}, finish="stop")):
                yield msgspec.json.encode(first | {"choices": [one]})
        if usage:
            last = {"choices": [], "usage": self._usage(), "farthing": self.receipt.to_json()}
            yield msgspec.json.encode(first | last)

    def _head(self, kind: str) -> dict[str, Any]:
        return head(kind, self.receipt.model, self.receipt.trace)

    def _message(self, text: str | None) -> dict[str, Any]:
        refusal = self.receipt.says if text is None else None
        return {"role": "assistant", "content": text, "refusal": refusal}

    def _usage(self) -> dict[str, int]:
        read, wrote = self.usage
        return {"prompt_tokens": read, "completion_tokens": wrote, "total_tokens": read + wrote}


def headers_of(said: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of an object `farthing`.

    >>> headers_of({"trace_id": "t", "cost_usd": 0.002, "calls": [{}], "mode": None})
    {'X-Farthing-Trace': 't', 'X-Farthing-Cost-Usd': '0.002000000', 'X-Farthing-Calls': '1'}
    """
    found = {name: write(said.get(field)) for name, (field, write) in _HEADERS.items()}
    return {f"X-Farthing-{name}": value for name, value in found.items() if value is not None}


def replayed(body: bytes) -> dict[str, str]:
    r"""Return the headers of a reply that was kept, out of the object `farthing` in it.

    >>> replayed(b'{"choices": [], "farthing": {"trace_id": "t"}}')
    {'X-Farthing-Trace': 't'}
    >>> replayed(b'data: {}\n\n: farthing {"trace_id": "t"}\n\ndata: [DONE]\n\n')
    {'X-Farthing-Trace': 't'}
    """
    comment = re.search(rb"^: farthing (.*)$", body, re.MULTILINE)
    try:
        if comment is not None:
            return headers_of(msgspec.json.decode(comment[1]))
        return headers_of(msgspec.json.decode(body)["farthing"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return {}


def _written(form: Callable[[Any], str]) -> Callable[[Any], str | None]:
    return lambda value: None if value is None else form(value)


_TEXT, _MONEY = _written(str), _written("{:.9f}".format)
_HEADERS: Mapping[str, tuple[str, Callable[[Any], str | None]]] = {
    "Trace": ("trace_id", _TEXT),
    "Answered-By": ("answered_by", _TEXT),
    "Cost-Usd": ("cost_usd", _MONEY),
    "Saved-Usd": ("saved_usd", _MONEY),
    "Latency": ("latency_s", _written("{:.4f}".format)),
    "Calls": ("calls", _written(lambda calls: str(len(calls)))),
    "Promise": ("promise", _TEXT),
    "Certificate": ("certificate", _TEXT),
    "Provenance": ("provenance", _TEXT),
    "Mode": ("mode", _TEXT),
    "Max-Tokens": ("max_tokens", _TEXT),
    "Dropped": ("dropped", lambda places: ", ".join(places or ()) or None),
    "Outside": ("outside", _TEXT),
}
"""Header to the field that it repeats, and how it is written."""


def build_reply(
    answer: Answer,
    loaded: ServedMode,
    model: str,
    latency_s: float,
    why: str = "",
    ended: str = "",
) -> PolicyReply:
    """Return what a client gets of a policy's answer.

    Args:
        answer: what came of the question.
        loaded: who decided.
        model: what the client asked for.
        latency_s: seconds that it took.
        why: why nothing is promised, beside what the answer itself says.
        ended: why what was promised is promised no more.
    """
    calls, whole = answer.calls, loaded.whole_replies
    own = tuple(one for one in answer.caveats if one not in loaded.invalid_because)
    under = replace(answer, caveats=own).guaranteed and not why
    promises = under and answer.guaranteed and not ended
    certificate = answer.certificate
    whole_set = certificate is not None and certificate.promise.whole_sets
    some = answer.answers if whole_set else answer.answers[:1]
    texts: tuple[str | None, ...] = tuple(_said(one, calls) if whole else one.text for one in some)
    if answer.escalated is not None and not answer.answers:
        texts = (answer.escalated.text or answer.escalated.answer or "",)
    elif not texts:
        last = _last(calls) if whole and not answer.abstained else None
        texts = (last,)
    kind = certificate.promise.kind() if certificate else None
    receipt = Receipt(
        trace=answer.id,
        model=model,
        answered_by=_who(answer, calls),
        cost_nano=answer.cost_nano,
        latency_s=latency_s,
        promise=str(kind) if promises else NONE,
        says=f"Nothing is promised: {why or ended}." if why or ended else loaded.says(answer),
        certificate=loaded.certificate_id if promises else None,
        mode=loaded.mode,
        under=loaded.certificate_id if under else None,
        provenance=answer.provenance,
        answers=tuple({"text": one.text, "score": one.score} for one in answer.answers)
        if whole_set
        else (),
    )
    return PolicyReply(texts, receipt, tokens(calls))


def tokens(calls: Sequence[Call]) -> tuple[int, int]:
    """Return the tokens that calls read and wrote together."""
    return (
        sum(call.input_tokens or 0 for call in calls),
        sum(call.output_tokens or 0 for call in calls),
    )


def _said(one: Returned, calls: Sequence[Call]) -> str:
    """Return the whole reply that an answer was read from; of a thought the answer alone."""
    found = [c for c in calls if c.role == one.role and c.answer == one.text and c.text]
    told = bool(found) and not of_thought(one.role)
    return found[0].text or one.text if told else one.text


def _last(calls: Sequence[Call]) -> str | None:
    texts = [call.text for call in calls if call.text]
    return texts[-1] if texts else None


def _who(answer: Answer, calls: Sequence[Call]) -> str | None:
    if answer.answers:
        return answer.answers[0].role
    if answer.escalated is not None:
        return answer.escalated.role
    return calls[-1].role if calls else None


def _usd(nano: int | None) -> float | None:
    return None if nano is None else usd_from_nano(nano)
