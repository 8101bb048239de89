"""The pure parts of the sandbox: commands, output, control groups."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd_worker.sandbox.box import Backend, Box, BoxLimits, Mount
from kfd_worker.sandbox.cgroups import CgroupTree, own_paths
from kfd_worker.sandbox.command import Tools, box_command, box_environment, plain_box, system_mounts
from kfd_worker.sandbox.output import HeadTail, readable

TOOLS = Tools(bwrap="bwrap", unshare="unshare", setpriv="setpriv", prlimit="prlimit", mount_root="/state/root")
ROOT = Tools(
    bwrap="bwrap", unshare="unshare", setpriv="setpriv", prlimit="prlimit", privileged=True, mount_root="/state/root"
)
BOX = Box(
    name="b",
    argv=("/bin/true", "/job/kernel.so"),
    mounts=(Mount(source="/state/jobs/1", target="/job"),),
    env=(("A", "1"),),
    scratch_bytes=1 << 20,
    uid=61005,
)


@given(st.lists(st.binary(max_size=50), max_size=40), st.integers(0, 64))
def test_head_and_tail_are_kept_whatever_comes(chunks: list[bytes], limit: int) -> None:
    kept = HeadTail(limit)
    for chunk in chunks:
        kept.feed(chunk)
    whole = b"".join(chunks)
    assert kept.total == len(whole)
    assert kept.dropped == max(0, len(whole) - limit)
    if len(whole) <= limit:
        assert kept.value() == whole
    elif limit > 1:
        assert kept.value().startswith(whole[: limit - limit // 2])
        assert kept.value().endswith(whole[len(whole) - limit // 2 :])


@given(st.binary(max_size=400))
def test_readable_text_has_no_control_characters(data: bytes) -> None:
    text = readable(data)
    assert all(char in "\n\t" or char.isprintable() or ord(char) > 0x9F for char in text)
    text.encode()


def test_readable_takes_escapes_away_and_cuts_lines() -> None:
    assert readable(b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok\xff\x00") == "red ok\N{REPLACEMENT CHARACTER}"
    assert len(readable(b"a" * 10_000_000)) < 1100
    assert len(readable(b"a\n" * 1_000_000)) <= 64 << 10


@pytest.mark.parametrize("backend", [Backend.BWRAP, Backend.UNSHARE])
@pytest.mark.parametrize("tools", [TOOLS, ROOT])
def test_every_sandboxed_command_drops_privileges_and_limits(backend: Backend, tools: Tools) -> None:
    command = box_command(BOX, backend, tools, (("read", "/usr", "/usr"),))
    text = " ".join(command)
    assert ("--net" in command) or ("--unshare-net" in command)
    assert "--core=0" in command
    assert f"--nproc={BOX.limits.processes}" in command
    assert command[-2:] == ["/bin/true", "/job/kernel.so"]
    if tools.privileged:
        assert "--reuid 61005" in text
        assert "--bounding-set=-all" in command
        assert "--no-new-privs" in command
    elif backend is Backend.BWRAP:
        assert "--unshare-user" in command
        assert "--disable-userns" in command


def test_a_box_joins_its_groups_before_anything_else() -> None:
    command = box_command(BOX, Backend.BWRAP, ROOT, (), procs=("/c/m/cgroup.procs", "/c/p/cgroup.procs"))
    assert command[:2] == ["/bin/sh", "-c"]
    assert command[4:7] == ["/c/m/cgroup.procs", "/c/p/cgroup.procs", "--"]
    assert command.index("bwrap") > command.index("/c/p/cgroup.procs")


def test_the_environment_is_made_from_nothing() -> None:
    assert box_environment(BOX) == {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/scratch",
        "TMPDIR": "/scratch",
        "LANG": "C.UTF-8",
        "A": "1",
    }


def test_without_a_sandbox_places_are_the_hosts() -> None:
    box = plain_box(
        Box(name="b", argv=("cc", "/job/a.c", "-I/jobs", "/scratch/o"), mounts=BOX.mounts, scratch_bytes=1), "/tmp/s"
    )
    assert box.argv == ("cc", "/state/jobs/1/a.c", "-I/jobs", "/tmp/s/o")
    assert dict(box.env)["HOME"] == "/tmp/s"


def test_links_of_the_system_stay_links() -> None:
    assert system_mounts({"/usr": "", "/lib": "usr/lib"}) == (("read", "/usr", "/usr"), ("link", "usr/lib", "/lib"))


def test_own_groups_are_found_in_version_1_and_2(tmp_path: Path) -> None:
    (tmp_path / "memory/a").mkdir(parents=True)
    (tmp_path / "pids").mkdir()
    (tmp_path / "unified/b").mkdir(parents=True)
    mounts = (
        f"cgroup {tmp_path}/memory cgroup rw,memory 0 0\ncgroup {tmp_path}/pids cgroup rw,pids 0 0\n"
        f"cgroup2 {tmp_path}/unified cgroup2 rw 0 0\n"
    )
    first, second = own_paths("8:pids:/host/only\n4:memory:/a\n0::/b\n", mounts)
    assert first == {"memory": tmp_path / "memory/a", "pids": tmp_path / "pids"}
    assert second == tmp_path / "unified/b"


def test_a_version_2_group_gets_its_limits(tmp_path: Path) -> None:
    group = CgroupTree(2, (("memory", tmp_path), ("pids", tmp_path))).create("x", memory_bytes=5, processes=7)
    (folder,) = group.folders
    assert (folder / "memory.max").read_text() == "5"
    assert (folder / "pids.max").read_text() == "7"
    assert (folder / "memory.swap.max").read_text() == "0"
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert group.out_of_memory()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")
    assert not group.out_of_memory()


def test_limits_have_defaults_that_bound_everything() -> None:
    limits = BoxLimits()
    assert all(
        getattr(limits, name) > 0 for name in ("wall_ns", "memory_bytes", "processes", "log_bytes", "file_bytes")
    )
