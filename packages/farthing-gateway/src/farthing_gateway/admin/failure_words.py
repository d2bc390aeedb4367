"""Why requests were refused or failed, in words, by the code that their clients got."""

_WHY = {
    "budget_exceeded": "a budget is used up",
    "content_filter": "the provider will not answer this",
    "context_length_exceeded": "too long for the model",
    "database_unavailable": "the gateway's database did not answer",
    "deadline_exceeded": "no answer within the deadline",
    "forbidden": "the key may not do this",
    "idempotency_in_progress": "the same request was under way",
    "idempotency_key_reused": "its idempotency key was another request's",
    "internal_error": "an error of the gateway; its log says more",
    "invalid_request_error": "the request could not be understood",
    "model_not_found": "no such model",
    "outside_task": "outside the task of the policy that was asked",
    "rate_limit_exceeded": "too many in a minute",
    "request_budget_exceeded": "dearer than its own budget",
    "request_timeout": "the request came too slowly",
    "shutting_down": "the gateway was restarting",
    "too_large": "the request was too long",
    "upstream_authentication": "the gateway's key for the model does not work",
    "upstream_connection": "the model's provider could not be reached",
    "upstream_cooling": "the model is left alone after failures",
    "upstream_incomplete": "the model's reply was not whole",
    "upstream_malformed": "the model's reply could not be read",
    "upstream_rate_limit": "the model's provider takes no more",
    "upstream_redirected": "the model's provider is elsewhere",
    "upstream_timeout": "the model did not reply in time",
}


def why(code: str) -> str:
    """Say why a request was not answered; a code that is not known stands for itself.

    >>> why("budget_exceeded"), why("upstream_melted")
    ('a budget is used up', 'upstream melted')
    """
    return _WHY.get(code) or code.replace("_", " ")
