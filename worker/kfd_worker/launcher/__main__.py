"""``python -m kfd_worker.launcher FD``: started by the agent, never by hand."""

from __future__ import annotations

import asyncio
import signal
import sys

from kfd_worker.launcher.server import serve


def main() -> int:
    """Serve until the agent is gone."""
    # A terminal's Ctrl-C is the agent's to handle; our end is the end of its socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return asyncio.run(serve(int(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
