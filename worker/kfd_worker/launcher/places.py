"""The interpreter, the code and the job folders: what boxes are given to see."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path

import kfd
import kfd_worker
from kfd.base.digest import Digest, digest_of
from kfd_worker.sandbox.box import Mount

__all__ = [
    "MAIN_FOLDER",
    "Inputs",
    "MissingInput",
    "MissingPackage",
    "base_interpreter",
    "folder_name",
    "interpreter_mounts",
    "judge_code",
    "package_folders",
    "package_masks",
    "place",
    "thread_environment",
]

MAIN_FOLDER = "/kfd"
"""Where a box finds our own programs."""
_PACKAGES = ("torch", "yaml")
_PACKAGE_ROOTS = ("/usr/lib", "/usr/local/lib", "/usr/lib64")
_SYSTEM = ("/usr/", "/lib/", "/bin/")


class MissingInput(Exception):
    """An input is not there or is not what its name says."""

    def __init__(self, digest: Digest, text: str) -> None:
        super().__init__(text)
        self.digest = digest


class MissingPackage(Exception):
    """Something that the judge needs is not installed."""


class Inputs:
    """Files of the agent's cache, by digest; never trusted without looking."""

    def __init__(self, paths: dict[str, str]) -> None:
        self._paths = paths

    def read(self, digest: Digest) -> bytes:
        """The bytes of an input. Raises MissingInput unless they are exactly what the digest names."""
        path = self._paths.get(digest.hash)
        if path is None:
            raise MissingInput(digest, f"input {digest.short} was not given")
        try:
            if os.stat(path).st_size != digest.size:
                raise MissingInput(digest, f"input {digest.short} does not have {digest.size} bytes")
            data = Path(path).read_bytes()
        except OSError as error:
            raise MissingInput(digest, f"input {digest.short} cannot be read: {error.strerror}") from error
        if digest_of(data) != digest:
            raise MissingInput(digest, f"input {digest.short} is damaged in the cache")
        return data


def base_interpreter() -> str:
    """The real file of the running interpreter, behind all links of a virtual environment."""
    return os.path.realpath(sys.executable)


def _is_system(path: str) -> bool:
    return any(f"{path}/".startswith(prefix) for prefix in _SYSTEM)


def package_folders() -> tuple[str, ...]:
    """Folders from which the judge's packages are imported. Raises MissingPackage; nothing is imported."""
    found = []
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.origin:
            raise MissingPackage(f"the Python package {name} is missing: pip install 'kfd[worker]'")
        found.append(os.path.dirname(os.path.dirname(os.path.realpath(spec.origin))))
    return tuple(dict.fromkeys(found))


def interpreter_mounts(*, packages: bool) -> tuple[Mount, ...]:
    """What the interpreter needs in a box; with ``packages`` also what the judge imports."""
    folders = [os.path.realpath(sys.base_prefix)]
    if packages:
        # Both the name by which it is called and what that is: a prefix may itself be a link.
        folders += [sys.prefix, os.path.realpath(sys.prefix), *package_folders()]
    wanted = [folder for folder in dict.fromkeys(folders) if not _is_system(folder)]
    outer = [one for one in wanted if not any(one != other and f"{one}/".startswith(f"{other}/") for other in wanted)]
    return tuple(Mount(source=folder, target=folder) for folder in outer)


def package_masks(empty: Path) -> tuple[Mount, ...]:
    """An empty folder over everything that is installed for the interpreter: a candidate finds no library of
    somebody else's there (numpy alone brings a whole BLAS)."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folders = [f"{os.path.realpath(sys.base_prefix)}/lib/{version}/site-packages", "/usr/lib/python3/dist-packages"]
    folders += [f"{root}/{version}/{kind}-packages" for root in _PACKAGE_ROOTS for kind in ("site", "dist")]
    found = dict.fromkeys(folder for folder in folders if os.path.isdir(folder))
    return tuple(Mount(source=str(empty), target=folder) for folder in found)


def judge_code() -> tuple[Mount, ...]:
    """The two packages that the judge imports, wherever they are installed."""
    return (
        Mount(source=os.path.dirname(os.path.realpath(str(kfd.__file__))), target="/kfd/lib/kfd"),
        Mount(source=os.path.dirname(os.path.realpath(str(kfd_worker.__file__))), target="/kfd/lib/kfd_worker"),
    )


def thread_environment(threads: int) -> tuple[tuple[str, str], ...]:
    """The same threads for every side, none of which spins while another is measured."""
    count = str(threads)
    return (
        ("OMP_NUM_THREADS", count),
        ("MKL_NUM_THREADS", count),
        ("OPENBLAS_NUM_THREADS", count),
        ("OMP_WAIT_POLICY", "passive"),
        ("OMP_DYNAMIC", "false"),
        ("OMP_STACKSIZE", "1M"),
        # Big buffers come back from the heap instead of from fresh, unmapped pages: the reference would
        # otherwise be timed with page faults that a kernel, given its buffers, never pays.
        ("MALLOC_MMAP_THRESHOLD_", str(1 << 30)),
        ("MALLOC_TRIM_THRESHOLD_", str(1 << 40)),
    )


def folder_name(ref: str, number: int) -> str:
    """A safe folder name for a job."""
    return f"{number}-{re.sub(r'[^A-Za-z0-9._-]', '_', ref)[:80]}"


def place(folder: Path, name: str, data: bytes, mode: int = 0o444) -> Path:
    """Write a file that boxes may read, below a new folder. Raises OSError, ValueError for a name that leaves it."""
    path = Path(os.path.normpath(folder / name))
    if not path.is_relative_to(folder) or path == folder:
        raise ValueError(f"not a path inside the task: {name[:200]!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    for parent in (path.parent, *path.parent.parents):
        if not parent.is_relative_to(folder):
            break
        # Boxes run as another user; the state folder above keeps all others out.
        parent.chmod(0o755)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    path.write_bytes(data)
    path.chmod(mode)
    return path


def clear(folder: Path) -> None:
    """Remove a folder and everything below it; what will not go is left for the next start."""
    shutil.rmtree(folder, ignore_errors=True)
