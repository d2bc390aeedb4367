"""How long a model thinks: an effort, or a budget in tokens, as each provider writes it.

Sources: the API references of OpenAI (`reasoning_effort`; `max_completion_tokens` holds thoughts
and answer), Anthropic (OpenAI compatibility: `thinking`, and `reasoning_effort` is ignored), Gemini
(OpenAI compatibility: `thinking_config`, never beside an effort), DeepSeek (thinking mode), Alibaba
Model Studio (deep thinking: `max_tokens` may leave thoughts out), OpenRouter (reasoning tokens),
vLLM (`thinking_token_budget`), and llama.cpp's server (`thinking_budget_tokens`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import urlsplit

EFFORT = "@"
"""Stands in a role between a model and its effort, as in `o4@low`."""

NONE = "none"
"""The effort of a model that does not think."""
EFFORTS = (NONE, "minimal", "low", "medium", "high", "xhigh", "max")
"""The names of efforts, as providers have them; each knows some of them."""
RESERVED = 25_000
"""Tokens of thought that a call may take where no budget is named; what OpenAI advises."""
MOST_BUDGET = 9_999_999
"""The largest budget that `MODEL@BUDGET` names: a longer number after `@` is a date."""
_VALUE: Final = object()
"""Stands for the effort or the budget in a dialect."""
_SAMPLING = frozenset({"temperature", "top_p"})
_LOGPROBS = frozenset({"logprobs", "top_logprobs"})


@dataclass(frozen=True)
class Dialect:
    """How a provider writes how long to think."""

    effort: Mapping[str, Any] | None
    """Fields of an effort; None: it has none."""
    off: Mapping[str, Any]
    """Fields of the effort `none`."""
    budget: Mapping[str, Any] | None = None
    """Fields of a budget; empty: the limit on output tokens alone is one; None: it has none."""
    either: bool = False
    """Whether an effort and a budget exclude each other: then the effort is written."""
    refused: frozenset[str] = frozenset()
    """Parameters that a model which thinks refuses."""
    apart: str | None = None
    """Field of a budget that the limit on output tokens may leave out; None: it holds thoughts."""
    continued: Mapping[str, Any] | None = None
    """Fields by which a reply goes on from a message that the assistant has begun; None: it begins
    a new one, or the provider refuses that."""
    instead: str = ""
    """What to give in place of a budget, where it has none."""


_OPENAI = {"reasoning_effort": _VALUE}
_TEMPLATE_OFF = {"chat_template_kwargs": {"enable_thinking": False}}
DialectName = Literal[
    "openai", "anthropic", "gemini", "deepseek", "qwen", "openrouter", "vllm", "llama.cpp"
]
DIALECTS: Mapping[DialectName, Dialect] = {
    "openai": Dialect(_OPENAI, {"reasoning_effort": NONE}, {}, refused=_SAMPLING | _LOGPROBS),
    "anthropic": Dialect(
        None,
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled", "budget_tokens": _VALUE}},
        refused=_SAMPLING,
    ),
    "gemini": Dialect(
        _OPENAI,
        {"reasoning_effort": NONE},
        {"extra_body": {"google": {"thinking_config": {"thinking_budget": _VALUE}}}},
        either=True,
    ),
    "deepseek": Dialect(
        {"thinking": {"type": "enabled"}, "reasoning_effort": _VALUE},
        {"thinking": {"type": "disabled"}},
        {"thinking": {"type": "enabled"}},
        refused=_SAMPLING | _LOGPROBS,
    ),
    "qwen": Dialect(
        None,
        {"enable_thinking": False},
        {"enable_thinking": True, "thinking_budget": _VALUE},
        apart="thinking_budget",
    ),
    "openrouter": Dialect(
        {"reasoning": {"effort": _VALUE}},
        {"reasoning": {"effort": NONE}},
        {"reasoning": {"max_tokens": _VALUE}},
        either=True,
    ),
    "vllm": Dialect(
        _OPENAI,
        _TEMPLATE_OFF,
        {"thinking_token_budget": _VALUE, "chat_template_kwargs": {"enable_thinking": True}},
        continued={"continue_final_message": True, "add_generation_prompt": False},
    ),
    "llama.cpp": Dialect(
        {"chat_template_kwargs": {"reasoning_effort": _VALUE}},
        _TEMPLATE_OFF,
        {"thinking_budget_tokens": _VALUE},
        continued={},
    ),
}
"""By the name that a section gives as `dialect`."""
COMPATIBLE = Dialect(
    _OPENAI,
    {"reasoning_effort": NONE},
    apart="thinking_budget",
    continued={},
    instead=f"give `dialect` ({', '.join(DIALECTS)}), or `reasoning_effort`",
)
"""Of every other endpoint: an effort as OpenAI writes it, no budget, and messages gone on with.
Behind it may be Qwen."""
_HOSTS: Mapping[str, DialectName] = {
    "api.openai.com": "openai",
    "openai.azure.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gemini",
    "api.deepseek.com": "deepseek",
    "aliyuncs.com": "qwen",
    "openrouter.ai": "openrouter",
}


def dialect_of(url: str) -> Dialect:
    """Return how the endpoint at an address writes it.

    >>> dialect_of("https://dashscope-intl.aliyuncs.com/compatible-mode/v1").apart
    'thinking_budget'
    """
    host = urlsplit(url).hostname or ""
    found = (DIALECTS[n] for end, n in _HOSTS.items() if host == end or host.endswith(f".{end}"))
    return next(found, COMPATIBLE)


@dataclass(frozen=True)
class Thinking:
    """What a call sends so that its model thinks so long, and what that may take."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request."""
    refused: frozenset[str] = frozenset()
    """Parameters that are left out beside them."""
    tokens: int = 0
    """Output tokens for thoughts, on top of the limit of the answer."""


AS_IT_IS = Thinking()
"""The model thinks as its provider has it."""


def thinking(dialect: Dialect, effort: str | None, budget: int | None) -> Thinking:
    """Return how a model is made to think so long.

    Args:
        dialect: how its provider writes it.
        effort: the provider's name of an effort; None: not named.
        budget: the most tokens of thought; None: not named, and `RESERVED` beside an effort.

    Raises:
        ValueError: the provider has no such thing.

    >>> found = thinking(DIALECTS["anthropic"], None, 2048)
    >>> found.fields, found.tokens
    ({'thinking': {'type': 'enabled', 'budget_tokens': 2048}}, 2048)
    """
    if effort is None and budget is None:
        return AS_IT_IS
    if effort == NONE or (effort is None and budget == 0):
        return Thinking(dialect.off)
    fields: dict[str, Any] = {}
    if effort is not None:
        if dialect.effort is None:
            raise ValueError(
                '`reasoning_effort` is not known to this provider but for "none"; '
                "give `thinking_budget`, in tokens"
            )
        fields |= _filled(dialect.effort, effort)
    if budget is not None and not (effort is not None and dialect.either):
        if dialect.budget is None and effort is None:
            raise ValueError(
                f"`thinking_budget` has no name that is known at this endpoint; {dialect.instead}"
            )
        fields |= _filled(dialect.budget or {}, budget)
    most = RESERVED if budget is None else budget
    return Thinking(fields, dialect.refused, most)


def thoughts_apart(dialect: Dialect, request: Mapping[str, Any]) -> int | None:
    """Return the most tokens of thought that the limit of a request leaves out.

    None where it wants thoughts and nothing bounds them. Only the provider's own field is a bound:
    a budget in another one's words is passed over there.

    Args:
        dialect: of the endpoint.
        request: as it is sent.

    >>> thoughts_apart(DIALECTS["qwen"], {"enable_thinking": True, "thinking_budget": 2048})
    2048
    >>> thoughts_apart(DIALECTS["qwen"], {"enable_thinking": True, "reasoning": {"max_tokens": 1}})
    >>> thoughts_apart(DIALECTS["openai"], {"thinking_budget": 2048})
    0
    """
    if dialect.apart is None or request.get("enable_thinking") is False:
        return 0
    budget = request.get(dialect.apart)
    if type(budget) is int and budget >= 0:
        return budget
    wanted = request.get("enable_thinking") or effort_of(request) not in {None, NONE}
    # Of an endpoint that nobody named a budget for is not known that it keeps thoughts apart.
    return None if wanted and dialect.budget is not None else 0


def _filled(form: Mapping[str, Any], value: str | int) -> dict[str, Any]:
    return {
        name: _filled(inner, value)
        if isinstance(inner, Mapping)
        else (value if inner is _VALUE else inner)
        for name, inner in form.items()
    }


def split_name(name: str) -> tuple[str, str | int | None]:
    """Return the model and the effort or budget of a name such as `o4-mini@low`.

    >>> split_name("o4-mini@low"), split_name("qwen-plus@4096"), split_name("claude-3@20240229")
    (('o4-mini', 'low'), ('qwen-plus', 4096), ('claude-3@20240229', None))
    """
    model, at, said = name.rpartition(EFFORT)
    if at and model and said in EFFORTS:
        return model, said
    short = said.isdecimal() and len(said) <= len(str(MOST_BUDGET))
    if at and model and short and str(int(said)) == said:
        return model, int(said)
    return name, None


_SAID_EFFORT = (
    ("reasoning_effort",),
    ("reasoning", "effort"),
    ("output_config", "effort"),
    ("chat_template_kwargs", "reasoning_effort"),
    ("extra_body", "google", "thinking_config", "thinking_level"),
    ("generation_config", "thinking_config", "thinking_level"),
    ("thinking_config", "thinking_level"),
)
_SAID_BUDGET = (
    ("thinking", "budget_tokens"),
    ("thinking_budget",),
    ("thinking_token_budget",),
    ("thinking_budget_tokens",),
    ("reasoning", "max_tokens"),
    ("reasoning_tokens",),
    ("chat_template_kwargs", "thinking_budget"),
    ("extra_body", "google", "thinking_config", "thinking_budget"),
    ("generation_config", "thinking_config", "thinking_budget"),
    ("thinking_config", "thinking_budget"),
)
_SAID_SWITCH = (
    ("thinking", "type"),
    ("enable_thinking",),
    ("chat_template_kwargs", "enable_thinking"),
    ("chat_template_kwargs", "thinking"),
    ("reasoning", "enabled"),
)
"""Paths in a request; each name may be written in camel case as well."""


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


_FIRST = {path[0] for path in (*_SAID_EFFORT, *_SAID_BUDGET, *_SAID_SWITCH)}
PARAMETERS = frozenset(_FIRST | set(map(_camel, _FIRST)))
"""Parameters of a request that may say how long to think."""
_CAMEL = {
    name: _camel(name) for path in (*_SAID_EFFORT, *_SAID_BUDGET, *_SAID_SWITCH) for name in path
}


def effort_of(request: Mapping[str, Any]) -> str | None:
    """Return the effort or budget that a request names, in whatever provider's words.

    None where it leaves that open; `none` where it wants no thoughts; `on` where it wants some and
    does not say how many.

    >>> effort_of({"thinking": {"type": "enabled", "budget_tokens": 4096}})
    '4096'
    >>> effort_of({"enable_thinking": False}), effort_of({"temperature": 1})
    ('none', None)
    """
    if PARAMETERS.isdisjoint(request):
        return None
    switches = {str(value).lower() for value in _values(request, _SAID_SWITCH)}
    if switches & {"false", "disabled"}:
        return NONE
    for effort in _values(request, _SAID_EFFORT):
        return str(effort).lower()
    for budget in _values(request, _SAID_BUDGET):
        return NONE if str(budget) == "0" else str(budget)
    return "on" if switches else None


def _values(request: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> Iterator[Any]:
    for path in paths:
        value: Any = request
        for name in path:
            inner = value if isinstance(value, Mapping) else {}
            value = inner.get(name, inner.get(_CAMEL[name]))
        if isinstance(value, str | int | float):
            yield value
