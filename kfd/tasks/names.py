"""Which file names a task package may hold, and which files are never part of one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from kfd.base.failure import BadInput

__all__ = ["check_name", "clashes", "left_out"]

_MAX_NAME_BYTES = 200
_MAX_DEPTH = 8
_FOLDERS = frozenset(
    (
        *(".git", ".hg", ".svn", ".bzr", ".jj", ".idea", ".vscode", ".cache", ".tox", ".venv", "venv"),
        *("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", ".ipynb_checkpoints"),
        *("node_modules", "__MACOSX"),
    )
)
_FILES = frozenset((".DS_Store", "Thumbs.db", "desktop.ini", ".gitignore", ".gitattributes", ".gitmodules"))
_SUFFIXES = (".pyc", ".pyo", "~", ".swp", ".swo", ".orig", ".rej")


def left_out(name: str) -> bool:
    """Whether a path is never part of a task: version control, caches and editors' droppings."""
    parts = name.split("/")
    last = parts[-1]
    return (
        any(part in _FOLDERS for part in parts)
        or last in _FILES
        or last.startswith(("._", ".#"))
        or last.endswith(_SUFFIXES)
    )


def check_name(name: str) -> None:
    """Raise BadInput unless a path is relative, plain, short and the same on every system."""
    why = _why_bad(name)
    if why:
        shown = name.encode("ascii", "backslashreplace").decode()[:80]
        raise BadInput(f"the name {shown!r} {why}", mend="Rename the file: a short relative path with forward slashes.")


def _why_bad(name: str) -> str:
    parts = name.split("/")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "is not UTF-8"
    checks = (
        (not name or name == ".", "is empty"),
        (
            any(unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") for letter in name),
            "holds control characters",
        ),
        ("\\" in name, "holds a backslash"),
        (name.startswith("/") or name[1:2] == ":", "is absolute"),
        (".." in parts, "leads out of the package"),
        ("" in parts or "." in parts, "has empty parts"),
        (length > _MAX_NAME_BYTES or any(len(part.encode()) > 100 for part in parts), "is too long"),
        (len(parts) > _MAX_DEPTH, f"is more than {_MAX_DEPTH} folders deep"),
        (unicodedata.normalize("NFC", name) != name, "is not in Unicode form NFC"),
    )
    return next((why for bad, why in checks if bad), "")


def clashes(names: Iterable[str]) -> str:
    """What is wrong when two names would be one file somewhere; empty when nothing is.

    Names that differ only by case are one file on two of three systems; a file is never a folder too.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFC", name.casefold())
        if key in files:
            return f"{files[key]!r} and {name!r} are one name" if files[key] != name else f"{name!r} is there twice"
        files[key] = name
        parts = name.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            folded = unicodedata.normalize("NFC", folder.casefold())
            if folders.setdefault(folded, folder) != folder:
                return f"the folders {folders[folded]!r} and {folder!r} are one name"
    for key, name in files.items():
        if key in folders:
            return f"{name!r} is both a file and a folder"
    return ""
