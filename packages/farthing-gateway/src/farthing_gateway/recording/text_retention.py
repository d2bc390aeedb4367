"""What of a record's texts is written: never a key, and the rest as the configuration says."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from farthing.traces.base import Call, Trace
from farthing_gateway.recording.record import PolicyDecision, RequestRecord
from farthing_gateway.recording.redaction import Redact

KEY = "[key]"
"""What stands in the place of a key."""
LARGEST_WORD = 4096
"""Characters without a space, beyond which a message's part is a file and not text."""
_KEYS = re.compile(
    r"(?<![a-z0-9])[fs]k-[a-z0-9_-]+"
    r"|[fs]k-(?=[a-z_-]*[0-9])[a-z0-9_-]{20,}"  # also behind a letter, as in an escaped \nsk-...
    r"|bearer[\s:]+[a-z0-9._~+/=-]{8,}",
    re.IGNORECASE,
)
_SPACE = re.compile(r"\s")
_STRUCTURE = frozenset(
    {
        *("system", "developer", "user", "assistant", "tool", "function"),
        *("text", "refusal", "file", "image_url", "input_audio"),
    }
)
"""Words of a message's form, which say nothing of anybody."""


@dataclass(frozen=True)
class TextRetention:
    """Which texts are kept, and how.

    >>> TextRetention(redact=str.upper).text("my key is sk-123")
    'MY KEY IS [KEY]'
    """

    redact: Redact | None = None
    """Goes over every text; None: they stay as they are."""
    prompts: bool = True
    """Whether texts are kept at all."""

    def passed(self, passed: RequestRecord) -> tuple[RequestRecord, bool]:
        """Return what is written of a record, and whether its redaction failed."""
        try:
            return self._passed(passed), False
        except Exception:
            if self.redact is None:
                raise
            return TextRetention(prompts=False).passed(passed)[0], True

    def calls(self, calls: Sequence[Call]) -> tuple[list[Call], bool]:
        """Return what is written of later calls, and whether their redaction failed."""
        try:
            return [self._call(call) for call in calls], False
        except Exception:
            if self.redact is None:
                raise
            return TextRetention(prompts=False).calls(calls)[0], True

    def text(self, text: str) -> str:
        """Return what is written of a text."""
        kept = without_keys(text)
        if self.redact is None:
            return kept
        redacted = self.redact(kept)
        if not isinstance(redacted, str):
            raise TypeError("a redaction returns text")
        return redacted

    def _passed(self, passed: RequestRecord) -> RequestRecord:
        trace, messages, decided = passed.trace, None, passed.decided
        if self.prompts and passed.messages is not None:
            messages = [self._part(message) for message in passed.messages]
        return replace(
            passed,
            key=_name(passed.key),
            conversation=without_keys(passed.conversation),
            policy=_name(passed.policy),
            model=without_keys(passed.model),
            promise=without_keys(passed.promise),
            messages=messages,
            trace=self._trace(trace),
            answered_by=_name(passed.answered_by),
            group=_name(passed.group),
            decided=decided and self._decided(decided),
        )

    def _decided(self, decided: PolicyDecision) -> PolicyDecision:
        returned = tuple(self._answer(answer) for answer in decided.returned)
        return msgspec.structs.replace(decided, returned=returned)

    def _trace(self, trace: Trace) -> Trace:
        return msgspec.structs.replace(
            trace,
            question=self.text(trace.question) if self.prompts else "",
            gold=[self.text(answer) for answer in trace.gold] if self.prompts else [],
            group=_name(trace.group),
            calls=[self._call(call) for call in trace.calls],
        )

    def _call(self, call: Call) -> Call:
        error = call.error
        if error is not None:
            said = self.text(error.message) if self.prompts else ""
            error = msgspec.structs.replace(error, message=said)
        return msgspec.structs.replace(
            call,
            role=without_keys(call.role),
            model=_name(call.model),
            answer=self._answer(call.answer),
            text=self.text(call.text) if self.prompts and call.text is not None else None,
            error=error,
        )

    def _answer(self, answer: str | None) -> str | None:
        """Return an answer if nothing in it has to go, else none.

        Two different telephone numbers may not become one answer on which two models agree.
        """
        if answer is None or not self.prompts or self.text(answer) != answer:
            return None
        return answer

    def _part(self, part: Any) -> Any:
        if isinstance(part, dict):
            return {without_keys(str(name)): self._part(value) for name, value in part.items()}
        if isinstance(part, list | tuple):
            return [self._part(value) for value in part]
        if not isinstance(part, str) or part in _STRUCTURE:
            return part
        if len(part) > LARGEST_WORD and part.isascii() and not _SPACE.search(part):
            return f"[{len(part)} characters left out]"  # an image, a sound, a file
        return self.text(part)


def without_keys(text: str) -> str:
    """Return a text without keys, and without what cannot be written as UTF-8.

    >>> without_keys("Authorization: Bearer abcdefgh12345, or sk-proj-1; ask a task-force")
    'Authorization: [key], or [key]; ask a task-force'
    """
    return _KEYS.sub(KEY, text.encode(errors="replace").decode())


def _name(text: str | None) -> str | None:
    return None if text is None else without_keys(text)
