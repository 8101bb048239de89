"""A bare install is the thin client: it works, and nothing heavy comes with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kfd.base.version import VERSION
from tests.e2e.harness import Daemon, clean_environment

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "openai", "aiosqlite", "pydantic", "structlog", "uvloop", "jinja2", "tree_sitter", "numpy")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the programs of a bare install."""
    folder = tmp_path_factory.mktemp("bare")
    source = folder / "source"
    ignore = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".demo", "*.egg-info", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, source, ignore=ignore)
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "-q", str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return venv / "bin"


def run(program: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(**environment),
    )


@pytest.mark.slow
def test_nothing_heavy_is_installed(bare: Path) -> None:
    find = f"import importlib.util as u; print([m for m in {HEAVY!r} if u.find_spec(m)])"
    assert run(bare / "python", "-c", find).stdout.strip() == "[]"


@pytest.mark.slow
def test_the_client_works_against_a_real_daemon(bare: Path, tmp_path: Path) -> None:
    version = run(bare / "kfd-client", "--version")
    assert version.returncode == 0, version.stderr
    assert VERSION in version.stdout
    valid = run(bare / "kfd-client", "validate", str(ROOT / "tasks" / "softmax_rows"))
    assert valid.returncode == 0, valid.stderr
    with Daemon(tmp_path) as daemon:
        listed = run(bare / "kfd-client", "--json", "list", KFD_STATE_DIR=str(daemon.state))
        assert listed.returncode == 0, listed.stderr
        assert isinstance(json.loads(listed.stdout), list | dict)
    gone = run(bare / "kfd-client", "list", KFD_STATE_DIR=str(daemon.state))
    assert gone.returncode == 5
    assert "next" in gone.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", ["kfd", "kfd-worker"])
def test_the_servers_say_which_extra_they_need(bare: Path, tmp_path: Path, program: str) -> None:
    arguments = {"kfd": ["serve"], "kfd-worker": ["run", "--daemon", "127.0.0.1:1", "--token-file", os.devnull]}
    asked = run(bare / program, *arguments[program], "--state-dir", str(tmp_path / "state"))
    assert asked.returncode != 0
    assert "Traceback" not in asked.stderr
    assert "pip install" in asked.stderr


def test_version_is_one_number() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'version = "{VERSION}"' in text


def test_version_and_help_load_neither_grpc_nor_rich() -> None:
    probe = (
        "import sys; sys.argv = ['kfd-client', '--version']; from kfd_client.cli import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "heavy = [m for m in ('grpc', 'google.protobuf', 'rich', 'yaml', 'asyncio') if m in sys.modules]\n"
        "print('heavy', heavy)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.splitlines()[-1] == "heavy []", done.stdout + done.stderr
