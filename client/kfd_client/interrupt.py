"""Ctrl-C that is never lost.

Python raises KeyboardInterrupt wherever the main thread happens to be; inside a callback of gRPC it is swallowed.
So the handler also leaves a note, and whoever waits looks at it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["check", "watching"]

_seen = threading.Event()


def _handle(_number: int, _frame: FrameType | None) -> None:
    _seen.set()
    raise KeyboardInterrupt


@contextmanager
def watching() -> Iterator[None]:
    """Note Ctrl-C while inside; only in the main thread, and not where the shell has it ignored."""
    usable = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    _seen.clear()
    if usable:
        signal.signal(signal.SIGINT, _handle)
    try:
        yield
    finally:
        if usable:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def check() -> None:
    """Raise KeyboardInterrupt when there was one, whatever became of it."""
    if _seen.is_set():
        raise KeyboardInterrupt
