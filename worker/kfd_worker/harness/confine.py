"""What the program of a run box may no longer ask the kernel for, once foreign code is in it. Standard library only.

A kernel computes: it may have threads, memory and time. It starts no process (what it leaves behind could work beside
somebody else's measurement, and its memory is counted apart), makes no memory that belongs to nobody (System V
segments, memory files), handles no signal (a handler runs while the box waits, and could hide a fault) and looks into
no other process. Whoever tries is ended by the kernel with SIGSYS, which is a verdict that reads well. ``clone3``
hides its flags, so it does not exist, and libraries fall back to ``clone``; handling signals is refused.

The filter holds for every thread that is made later and cannot be taken off. seccomp(2), bpf(4) of Linux.
"""

from __future__ import annotations

import ctypes
import os
import struct

__all__ = ["ARCHITECTURES", "confine", "program"]

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_CLONE_THREAD = 0x00010000
_X32 = 0x40000000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2

# Numbers of system calls by architecture (as ``os.uname().machine`` names it).
ARCHITECTURES: dict[str, dict[str, int]] = {
    "x86_64": {
        "audit": 0xC000003E,
        "clone": 56,
        "clone3": 435,
        "rt_sigaction": 13,
        "fork": 57,
        "vfork": 58,
        "execve": 59,
        "execveat": 322,
        "ptrace": 101,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "shmget": 29,
        "memfd_create": 319,
        "memfd_secret": 447,
        "timer_create": 222,
        "setitimer": 38,
        "alarm": 37,
        "io_uring_setup": 425,
        "userfaultfd": 323,
        "bpf": 321,
        "perf_event_open": 298,
        "unshare": 272,
        "setns": 308,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "sched_setscheduler": 144,
        "sched_setattr": 314,
    },
    "aarch64": {
        "audit": 0xC00000B7,
        "clone": 220,
        "clone3": 435,
        "rt_sigaction": 134,
        "execve": 221,
        "execveat": 281,
        "ptrace": 117,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "shmget": 194,
        "memfd_create": 279,
        "memfd_secret": 447,
        "timer_create": 107,
        "setitimer": 103,
        "io_uring_setup": 425,
        "userfaultfd": 282,
        "bpf": 280,
        "perf_event_open": 241,
        "unshare": 97,
        "setns": 268,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "sched_setscheduler": 119,
        "sched_setattr": 274,
    },
}
_APART = ("audit", "clone", "clone3", "rt_sigaction")


def program(machine: str) -> list[tuple[int, int, int, int]]:
    """The filter for a machine as (code, jump if true, jump if false, constant). Raises KeyError for an unknown one."""
    numbers = ARCHITECTURES[machine]
    killed = [number for name, number in numbers.items() if name not in _APART]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        # The other calling conventions of a processor have other numbers: nobody needs them.
        (_EQUAL, 1, 0, numbers["audit"]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
    ]
    for number in killed:
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _KILL)]
    return [
        *lines,
        (_EQUAL, 0, 1, numbers["rt_sigaction"]),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        (_EQUAL, 0, 1, numbers["clone3"]),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        (_EQUAL, 1, 0, numbers["clone"]),
        (_RETURN, 0, 0, _ALLOW),
        # A thread shares its group; whatever else clone makes is a process.
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_AND, 0, 0, _CLONE_THREAD),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _KILL),
        (_RETURN, 0, 0, _ALLOW),
    ]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def confine() -> str:
    """Put the filter on this process for good; why not, when the machine cannot, else empty."""
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        return f"no filter of system calls for {machine}"
    lines = b"".join(struct.pack("=HBBI", *line) for line in program(machine))
    text = ctypes.create_string_buffer(lines, len(lines))
    made = _Program(len(lines) // 8, ctypes.cast(text, ctypes.c_void_p))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    for option, first, second in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0),
        (_PR_SET_SECCOMP, _FILTER, ctypes.addressof(made)),
    ):
        if libc.prctl(option, first, second, 0, 0) != 0:
            return f"the kernel takes no filter of system calls: {os.strerror(ctypes.get_errno())}"
    return ""
