"""The APIs that clients speak: chat completions, and others that are one in another form."""

from farthing_gateway.apis.base import Api
from farthing_gateway.apis.chat import CHAT
from farthing_gateway.apis.completions import COMPLETIONS
from farthing_gateway.apis.embeddings import EMBEDDINGS
from farthing_gateway.apis.messages import MESSAGES
from farthing_gateway.apis.responses import RESPONSES

APIS: tuple[Api, ...] = (CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES, MESSAGES)
"""All that clients may speak."""
