"""The APIs that clients speak: chat completions, and others that are one in another form."""

from farthing.gateway.apis.base import Api
from farthing.gateway.apis.chat import CHAT
from farthing.gateway.apis.completions import COMPLETIONS
from farthing.gateway.apis.embeddings import EMBEDDINGS
from farthing.gateway.apis.messages import MESSAGES
from farthing.gateway.apis.responses import RESPONSES

APIS: tuple[Api, ...] = (CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES, MESSAGES)
"""All that clients may speak."""
