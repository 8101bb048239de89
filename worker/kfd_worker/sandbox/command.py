"""The argument vectors that make a box. Pure: what to run is decided here, running it is elsewhere.

The chain, outermost first: join the control groups; make the namespaces and the mounts (bubblewrap or
``unshare`` with the script below); become the box's user, without capabilities and for good; an own user
namespace; limits; say "started" on descriptor 0; the program. Each link is a program of util-linux or the
shell, a millisecond each, so that no Python runs before the candidate's own.

Descriptor 0 is the write end of a pipe to the launcher during all of the set-up. It is how the launcher
tells a box that could not be made from a program that failed, without believing the program.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace

from kfd_worker.sandbox.box import SCRATCH, Backend, Box, Mount

__all__ = ["STARTED", "Tools", "box_command", "box_environment", "plain_box", "system_mounts"]

STARTED = b"started\n"

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done; shift; exec "$@"'

# The box's own user namespace is its last: a nested one would give its user capabilities to try the kernel with.
_LAST_NAMESPACE = 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"'

_START = 'echo started >&0; exec "$@" </dev/null'

# PID 1 of a box made by unshare. It stays the host's root (or the namespace's), so that the box's user can
# neither signal nor trace it, and ends when the program does; with it the kernel ends all the rest.
_INIT = r"""
set -eu
read -r pid rest </proc/self/stat
echo "pid $pid" >&0
root=$1; shift
mount -n -t tmpfs -o mode=0755,size=4m,nosuid,nodev kfd-box "$root"
cd "$root"
while [ "$1" != -- ]; do
  kind=$1 source=$2 target=$root$3 option=$4; shift 4
  case $kind in
    tmpfs) mkdir -p "$target"; mount -n -t tmpfs -o "$option" kfd-scratch "$target"; continue;;
    proc) mkdir -p "$target"; mount -n -t proc -o nosuid,nodev,noexec kfd-proc "$target"; continue;;
    link) mkdir -p "${target%/*}"; ln -s "$source" "$target"; continue;;
  esac
  if [ -d "$source" ]; then mkdir -p "$target"; else mkdir -p "${target%/*}"; : >"$target"; fi
  mount -n --bind "$source" "$target"
  case $kind in
    read) mount -n -o remount,bind,ro,nosuid,nodev "$target";;
    device) mount -n -o remount,bind,nosuid,noexec "$target";;
  esac
done
shift
mount -n -o remount,bind,ro,nosuid,nodev "$root"
cd "$root"
pivot_root . .
umount -n -l .
cd /
set +e
"$@"
exit $?
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What the machine offers for making boxes: absolute paths of programs, and who we are."""

    bwrap: str = ""
    unshare: str = ""
    setpriv: str = ""
    prlimit: str = ""
    taskset: str = ""
    privileged: bool = False
    """Whether the launcher is root: then boxes get a host user of their own."""
    user_namespace: bool = True
    """Whether a box can be given a user namespace of its own."""
    proc: bool = True
    """Whether /proc can be mounted inside a box."""
    mount_root: str = ""
    """An existing folder for ``unshare`` to build the new root over; it is never written to."""


def system_mounts(exists: dict[str, str]) -> tuple[tuple[str, str, str], ...]:
    """(kind, source, target) of the system parts every box sees.

    ``exists`` maps each of /usr /lib /lib64 /lib32 /bin /sbin /etc/ld.so.cache /etc/alternatives that exists
    to its link target, or to "" when it is not a link.
    """
    found: list[tuple[str, str, str]] = []
    for path, link in exists.items():
        found.append(("link", link, path) if link else ("read", path, path))
    return tuple(found)


def box_command(
    box: Box,
    backend: Backend,
    tools: Tools,
    system: tuple[tuple[str, str, str], ...],
    procs: tuple[str, ...] = (),
    info_fd: int = -1,
) -> list[str]:
    """Arguments that start the box.

    ``procs`` are the cgroup.procs files to join; ``info_fd`` is where bubblewrap tells the init's number.
    """
    inner = _inner(box, backend, tools)
    if backend is Backend.BWRAP:
        made = [*_bwrap(box, tools, system, info_fd), "--", *inner]
    elif backend is Backend.UNSHARE:
        made = [*_unshare(box, tools, system), "--", *inner]
    else:
        made = inner
    return ["/bin/sh", "-c", _JOIN, "kfd-join", *procs, "--", *made] if procs else made


def plain_box(box: Box, scratch: str) -> Box:
    """The box as it runs without a sandbox: the places it knows become the host's own.

    ``scratch`` is a folder of the host that takes the place of ``SCRATCH``.
    """
    places = {mount.target: mount.source for mount in box.mounts if mount.target != mount.source}
    if box.scratch_bytes:
        places[SCRATCH] = scratch

    def translate(text: str) -> str:
        for target in sorted(places, key=len, reverse=True):
            # A function as the replacement: a path may hold what re.sub takes for a reference.
            pattern = rf"(?<![\w/.-]){re.escape(target)}(?![\w.-])"
            text = re.sub(pattern, functools.partial(_constant, places[target]), text)
        return text

    env = {**box_environment(box), **({"HOME": scratch, "TMPDIR": scratch} if box.scratch_bytes else {})}
    return replace(
        box, argv=tuple(map(translate, box.argv)), env=tuple((name, translate(value)) for name, value in env.items())
    )


def _constant(value: str, _: re.Match[str]) -> str:
    return value


def _inner(box: Box, backend: Backend, tools: Tools) -> list[str]:
    chain: list[str] = []
    drop = ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    if backend is Backend.PLAIN:
        # Whoever accepts this accepts the agent's own user too: another could not read the job's files.
        chain += [tools.setpriv, "--pdeathsig", "KILL", "--no-new-privs", "--"]
    elif tools.privileged:
        user = str(box.uid)
        chain += [tools.setpriv, "--reuid", user, "--regid", user, "--clear-groups", *drop, "--"]
        if tools.user_namespace:
            chain += [tools.unshare, "--user", "--map-current-user", "--keep-caps", "--"]
            chain += ["/bin/sh", "-c", _LAST_NAMESPACE, "kfd-last"]
            chain += [tools.setpriv, "--ambient-caps=-all", *drop, "--"]
    elif backend is Backend.UNSHARE:
        if tools.proc:
            chain += ["/bin/sh", "-c", _LAST_NAMESPACE, "kfd-last"]
        chain += [tools.setpriv, *drop, "--"]
    if box.cpus and tools.taskset:
        chain += [tools.taskset, "--cpu-list", ",".join(map(str, box.cpus))]
    limits = box.limits
    chain += [
        tools.prlimit,
        "--core=0",
        f"--nofile={limits.open_files}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.file_bytes}",
    ]
    if not box.nodes:
        # Above the box's own bound, which the control group or the runner's watch holds: this one only
        # stops a single process from outrunning the watch.
        chain.append(f"--data={limits.memory_bytes + limits.memory_bytes // 4 + (256 << 20)}")
    chain.append("--")
    return [*chain, "/bin/sh", "-c", _START, "kfd-start", *box.argv]


def _bwrap(box: Box, tools: Tools, system: tuple[tuple[str, str, str], ...], info_fd: int) -> list[str]:
    argv = [tools.bwrap, "--die-with-parent", "--new-session"]
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    argv += ["--hostname", "box"]
    if tools.privileged:
        # Root needs no user namespace to make the mounts; these three are what becoming another user takes.
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
            argv += ["--cap-add", capability]
    else:
        argv += ["--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
    if info_fd >= 0:
        argv += ["--info-fd", str(info_fd)]
    # bubblewrap makes missing parents with mode 0700, which another user could not enter.
    for folder in _parents([target for *_, target in system] + [mount.target for mount in box.mounts]):
        argv += ["--perms", "0755", "--dir", folder]
    for kind, source, target in system:
        argv += ["--symlink" if kind == "link" else "--ro-bind", source, target]
    if tools.proc:
        argv += ["--proc", "/proc"]
    for device in (*_DEVICES, *box.nodes):
        argv += ["--dev-bind", device, device]
    if box.scratch_bytes:
        argv += ["--perms", "1777", "--size", str(box.scratch_bytes), "--tmpfs", SCRATCH]
    for mount in box.mounts:
        argv += ["--ro-bind", mount.source, mount.target]
    return [*argv, "--remount-ro", "/", "--chdir", SCRATCH if box.scratch_bytes else "/"]


def _parents(targets: list[str]) -> list[str]:
    """Every folder above the targets, outermost first; what lies below another target is that one's affair."""
    found = {"/dev"}
    for target in targets:
        pieces = target.strip("/").split("/")[:-1]
        for count in range(1, len(pieces) + 1):
            folder = "/" + "/".join(pieces[:count])
            if any(folder == other or folder.startswith(f"{other}/") for other in targets):
                break
            found.add(folder)
    return sorted(found)


def _unshare(box: Box, tools: Tools, system: tuple[tuple[str, str, str], ...]) -> list[str]:
    # The launcher's death ends unshare, whose death ends the init: the same as --die-with-parent.
    argv = [tools.setpriv, "--pdeathsig", "KILL", "--", tools.unshare]
    argv += ["--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup", "--fork", "--kill-child=SIGKILL"]
    if not tools.privileged:
        argv += ["--user", "--map-root-user"]
    argv += ["--", "/bin/sh", "-c", _INIT, "kfd-init", tools.mount_root]
    mounts = [Mount(source=source, target=target) for kind, source, target in system if kind != "link"]
    for mount in (*mounts, *box.mounts):
        argv += ["read", mount.source, mount.target, "-"]
    for kind, source, target in system:
        if kind == "link":
            argv += ["link", source, target, "-"]
    if tools.proc:
        argv += ["proc", "-", "/proc", "-"]
    for device in (*_DEVICES, *box.nodes):
        argv += ["device", device, device, "-"]
    if box.scratch_bytes:
        argv += ["tmpfs", "-", SCRATCH, f"mode=1777,size={box.scratch_bytes},nosuid,nodev"]
    return argv


def box_environment(box: Box) -> dict[str, str]:
    """The box's whole environment: a few fixed entries, then the box's own."""
    home = SCRATCH if box.scratch_bytes else "/"
    return {"PATH": _PATH, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", **dict(box.env)}
