"""The changing line, and what stays when there is no terminal."""

from __future__ import annotations

import io

from kfd_client.follow import Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_that_changes_and_goes() -> None:
    stream = Terminal()
    line = Line(stream)
    line.show("one")
    line.show("one")
    line.show("two")
    line.clear()
    line.clear()
    assert stream.getvalue() == "\rone\x1b[K\rtwo\x1b[K\r\x1b[K"


def test_a_file_sees_nothing_of_it() -> None:
    stream = io.StringIO()
    line = Line(stream)
    line.show("one")
    line.clear()
    assert stream.getvalue() == ""
