"""Upstream models, opened from a configuration, each try within its limits."""

from farthing.gateway.upstream_base import Bound, Reply, StreamedReply, Upstream

__all__ = ["Bound", "Reply", "StreamedReply", "Upstream"]
