"""Finding out, by doing, what this machine enforces."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from kfd_worker.sandbox.box import Backend, Box, BoxError, BoxLimits
from kfd_worker.sandbox.cgroups import find_tree
from kfd_worker.sandbox.command import Tools, box_command, box_environment, system_mounts
from kfd_worker.sandbox.processes import adopt_orphans
from kfd_worker.sandbox.runner import Sandbox

__all__ = ["NO_SANDBOX", "detect", "system_paths"]

NO_SANDBOX = (
    "no sandbox works on this machine: neither bubblewrap nor unshare can make a box ({why}). "
    "Install bubblewrap (apt install bubblewrap) or allow unprivileged user namespaces; "
    "or accept that candidates run as ordinary processes of this user with --accept-unsandboxed"
)

_PROGRAMS = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_SYSTEM = ("/usr", "/lib", "/lib64", "/lib32", "/libx32", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")

# Proves the promises, not only that something started: namespaces other than ours, no network but loopback,
# no capability and no way to gain one, nobody's home.
_PROBE = r"""
for space in pid mnt net ipc uts; do
  [ "$(readlink /proc/self/ns/$space)" != "$1" ] || { echo "the $space namespace is shared"; exit 3; }
  shift
done
echo x >/scratch/f || exit 4
while read -r key value; do
  case "$key" in
    CapEff:|CapPrm:|CapInh:|CapAmb:) [ "$value" = 0000000000000000 ] || { echo "capabilities are left"; exit 5; };;
    NoNewPrivs:) [ "$value" = 1 ] || { echo "privileges can be gained"; exit 6; };;
  esac
done </proc/self/status
! unshare --user /bin/true 2>/dev/null || { echo "user namespaces can be nested"; exit 9; }
while read -r name rest; do
  case "$name" in lo:*|Inter*|face*) ;; *) echo "the network is there: $name"; exit 7;; esac
done </proc/net/dev
"""
_PROBE_BARE = """
echo x >/scratch/f || exit 4
[ ! -e /home ] && [ ! -e /root ] || { echo "the host's files are there"; exit 8; }
"""


def system_paths() -> dict[str, str]:
    """System parts that exist, with the link target of those that are links (merged /usr)."""
    return {path: os.readlink(path) if os.path.islink(path) else "" for path in _SYSTEM if os.path.exists(path)}


def detect(mount_root: str, *, accept_unsandboxed: bool = False, hide: Collection[str] = ()) -> Sandbox:
    """The best sandbox this machine has, proved by a box that ran in it.

    ``mount_root`` is a folder of our own, made if missing and never written to, over which ``unshare`` builds
    a box's root: nothing that a box is to see may lie in it.

    ``hide`` names back ends and means not to be used (``bwrap``, ``unshare``, ``cgroup``, ``userns``, ``proc``).
    Raises BoxError, which names the flag that accepts the risk, when there is none.
    """
    tools = Tools(
        bwrap=_which("bwrap", hide),
        unshare=_which("unshare", hide),
        setpriv=_which("setpriv", hide),
        prlimit=_which("prlimit", hide),
        taskset=_which("taskset", hide),
        privileged=os.geteuid() == 0,
        mount_root=mount_root,
    )
    for name in ("setpriv", "prlimit"):
        if not getattr(tools, name):
            raise BoxError(f"{name} is missing: install util-linux (apt install util-linux)")
    os.makedirs(mount_root, mode=0o700, exist_ok=True)
    tree = None if "cgroup" in hide else find_tree()
    if tree is not None:
        tree.sweep()
    system = system_mounts(system_paths())
    reasons: list[str] = []
    for backend, program in ((Backend.BWRAP, tools.bwrap), (Backend.UNSHARE, tools.unshare)):
        if not program or (backend is Backend.UNSHARE and "unshare" in hide):
            reasons.append(f"{backend}: not found")
            continue
        for variant in _variants(tools, hide):
            why = _probe(backend, variant, system)
            if not why:
                sandbox = Sandbox(backend, variant, system, tree)
                sandbox.facts = _facts(sandbox)
                return sandbox
            reasons.append(f"{backend}: {why}")
    if not accept_unsandboxed:
        raise BoxError(NO_SANDBOX.format(why="; ".join(dict.fromkeys(reasons))))
    adopt_orphans()
    sandbox = Sandbox(Backend.PLAIN, tools, system, tree)
    sandbox.facts = _facts(sandbox)
    return sandbox


def _which(name: str, hide: Collection[str]) -> str:
    return "" if name in hide else shutil.which(name, path=_PROGRAMS) or ""


def _variants(tools: Tools, hide: Collection[str]) -> list[Tools]:
    """The same tools with less and less asked for, best first."""
    first = replace(tools, proc="proc" not in hide, user_namespace="userns" not in hide and bool(tools.unshare))
    variants = [first, replace(first, user_namespace=False)] if tools.privileged else [first]
    variants += [replace(variant, proc=False) for variant in list(variants) if variant.proc]
    return variants


def _probe(backend: Backend, tools: Tools, system: tuple[tuple[str, str, str], ...]) -> str:
    """Run one box to the end; empty when all promises hold, otherwise why not."""
    script = _PROBE + _PROBE_BARE if tools.proc else _PROBE_BARE
    spaces = [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "mnt", "net", "ipc", "uts")]
    box = Box(
        name="probe",
        argv=("/bin/sh", "-c", script, "kfd-probe", *spaces),
        scratch_bytes=1 << 20,
        uid=61999,
        limits=BoxLimits(processes=32),
    )
    command = box_command(box, backend, tools, system)
    read, write = os.pipe2(os.O_CLOEXEC)
    try:
        done = subprocess.run(
            command, stdin=write, capture_output=True, env=box_environment(box), cwd="/", timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        os.close(read)
        os.close(write)
    if done.returncode == 0:
        return ""
    text = (done.stderr + done.stdout).decode("utf-8", "replace").strip().splitlines()
    return text[-1][:200] if text else f"probe ended with code {done.returncode}"


def _facts(sandbox: Sandbox) -> tuple[tuple[str, str], ...]:
    tools, tree, boxed = sandbox.tools, sandbox.tree, sandbox.backend is not Backend.PLAIN
    user = "user" if boxed and (tools.user_namespace or not tools.privileged) else ""
    spaces = ["pid", "mount", "ipc", "uts", "net", *filter(None, [user])] if boxed else []
    groups = tree.controllers if tree is not None else ()
    memory = f"cgroup v{tree.version}" if tree is not None and "memory" in groups else "watched every 0.1 s"
    processes = f"cgroup v{tree.version}" if tree is not None and "pids" in groups else "rlimit"
    return (
        ("backend", str(sandbox.backend)),
        ("namespaces", " ".join(spaces) or "none: accepted by --accept-unsandboxed"),
        ("host user", "own for each slot" if boxed and tools.privileged else "the agent's"),
        ("memory", memory),
        ("processes", processes),
        ("/proc", "own" if boxed and tools.proc else "none" if boxed else "the host's"),
        ("kernel", Path("/proc/sys/kernel/osrelease").read_text().strip()),
    )
