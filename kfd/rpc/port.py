"""What the servicers need of the reactor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from kfd.core.events import Event
from kfd.core.fleet.model import CallId

__all__ = ["Reactor"]


class Reactor(Protocol):
    """The one loop that owns the engine. A reply leaves only after the batch that made it is durable."""

    @property
    def boot(self) -> bytes:
        """Random id of this daemon process."""
        ...

    async def call(self, make_event: Callable[[CallId], Event]) -> Any:
        """Post the event made with a fresh call id and wait for its reply.

        Raises CallerError when the engine refuses. When the waiting task is cancelled (the peer went
        away), the reactor posts ``CallDropped`` for the id.
        """
        ...

    def post(self, event: Event) -> None:
        """Post an event that nobody waits for."""
        ...
