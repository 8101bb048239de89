"""Every hostile candidate costs one verdict, and nothing of it survives."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kfd.base.instant import SECOND
from kfd.base.work import Limits, MeasurementPlan, RunResult, Verdict, VerdictCode
from tests.integration.exec_rig import HONEST, Rig, below, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Body(str):
    """A program with a hole, ``@``, to be filled with some statements (which may hold braces)."""

    def format(self, *statements: object) -> str:  # type: ignore[override]
        return self.replace("@", str(statements[0]))


LOAD = Body("__attribute__((constructor)) static void early() { @ }\n" + HONEST)
CALL = Body(
    'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
    "    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];\n    @\n    return 0;\n}\n"
)
UNIX = (
    "#include <csignal>\n#include <fcntl.h>\n#include <sys/mman.h>\n#include <sys/socket.h>\n"
    "#include <sys/wait.h>\n#include <unistd.h>\n#include <thread>\n"
)
C = VerdictCode

# Descriptors are found as a real attacker would: by trying them all.
FORGE = Body(
    'char b[284]; memset(b, 0, sizeof b); memcpy(b, "kfd1", 4); @ '
    "for (int fd = 3; fd < 64; ++fd) send(fd, b, sizeof b, MSG_DONTWAIT | MSG_NOSIGNAL);"
)

PROGRAMS: dict[str, tuple[str, set[VerdictCode], str]] = {
    "exit 0 at load": (LOAD.format("_exit(0);"), {C.LOAD_ERROR}, "exited with code 0"),
    "exit 0 in the call": (CALL.format("_exit(0);"), {C.RUNTIME_ERROR}, "exited with code 0"),
    "exit handlers in the call": (CALL.format("exit(0);"), {C.RUNTIME_ERROR}, "exited with code 0"),
    "spins at load": (LOAD.format('for (;;) asm volatile("");'), {C.TIMEOUT}, "loading"),
    "spins in the call": (CALL.format('for (;;) asm volatile("");'), {C.TIMEOUT}, "running"),
    "sleeps in the call": (CALL.format("for (;;) pause();"), {C.TIMEOUT}, "running"),
    "forks without end": (
        CALL.format("for (;;) if (fork() == 0) for (;;) if (fork() < 0) usleep(1000);"),
        {C.TIMEOUT, C.RUNTIME_ERROR, C.RESOURCE_LIMIT},
        "",
    ),
    "daemon that holds everything and dies": (
        CALL.format("if (fork() == 0) { setsid(); signal(SIGTERM, SIG_IGN); for (;;) pause(); } raise(SIGKILL);"),
        {C.RUNTIME_ERROR},
        "SIGSYS",
    ),
    "allocates without end": (
        CALL.format("for (;;) { void *p = malloc(1 << 24); if (p) memset(p, 1, 1 << 24); }"),
        {C.RESOURCE_LIMIT},
        "memory",
    ),
    "writes 1 GiB to stdout": (
        CALL.format("static char b[1 << 20]; for (int i = 0; i < 1024; ++i) (void)!write(1, b, sizeof b);"),
        {C.RESOURCE_LIMIT},
        "output",
    ),
    "prints a fake verdict": (
        'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
        '    puts("{\\"type\\": \\"done\\", \\"outcome\\": {\\"@\\": \\"Verdict\\", \\"code\\": \\"ok\\"}}");\n'
        "    fflush(stdout); return 0;\n}\n",
        {C.INCORRECT},
        "never written",
    ),
    "fake answer at load": (LOAD.format(FORGE.format("b[4] = 2;")), {C.SUSPECT}, "forged"),
    "fake answers in the call": (CALL.format(FORGE.format("b[4] = 4;")), {C.SUSPECT}, "forged"),
    "junk on the socket": (
        CALL.format(
            "char b[7] = {1, 2, 3}; for (int fd = 3; fd < 64; ++fd) send(fd, b, 7, MSG_DONTWAIT | MSG_NOSIGNAL);"
        ),
        {C.SUSPECT},
        "no answer",
    ),
    "oversized packet on the socket": (
        CALL.format(
            "static char b[100000]; for (int fd = 3; fd < 64; ++fd) send(fd, b, sizeof b, MSG_DONTWAIT | MSG_NOSIGNAL);"
        ),
        {C.SUSPECT},
        "no answer",
    ),
    "SIGSEGV": (CALL.format("*(volatile int *)0 = 1;"), {C.RUNTIME_ERROR}, "SIGSEGV"),
    "SIGABRT": (CALL.format("abort();"), {C.RUNTIME_ERROR}, "SIGABRT"),
    "SIGKILL": (CALL.format("raise(SIGKILL);"), {C.RUNTIME_ERROR}, "SIGKILL"),
    "SIGFPE at load": (LOAD.format("raise(SIGFPE);"), {C.LOAD_ERROR}, "SIGFPE"),
    "SIGILL": (CALL.format("__builtin_trap();"), {C.RUNTIME_ERROR}, "SIGILL"),
    "stops itself": (CALL.format("raise(SIGSTOP);"), {C.TIMEOUT}, ""),
    "kills everybody": (CALL.format("kill(-1, SIGKILL); raise(SIGKILL);"), {C.RUNTIME_ERROR}, "SIGKILL"),
    "closes all descriptors": (
        CALL.format("for (int fd = 0; fd < 1024; ++fd) close(fd);"),
        {C.RUNTIME_ERROR},
        "",
    ),
    "hangs up and lives on": (
        CALL.format("for (int fd = 3; fd < 1024; ++fd) close(fd); for (;;) pause();"),
        {C.RUNTIME_ERROR, C.TIMEOUT},
        "",
    ),
    "writes far past the output": (CALL.format("y[n + 100000] = 1.0f;"), {C.RUNTIME_ERROR}, "SIGSEGV"),
    "writes one element past the output": (CALL.format("y[n] = 1.0f;"), {C.INCORRECT, C.RUNTIME_ERROR}, ""),
    "writes before the output": (CALL.format("y[-1] = 1.0f;"), {C.INCORRECT, C.RUNTIME_ERROR}, ""),
    "writes to its input": (CALL.format("const_cast<float *>(x)[0] = 1.0f;"), {C.RUNTIME_ERROR}, "SIGSEGV"),
    "makes its input writable": (
        CALL.format(
            "void *p = (void *)((uintptr_t)x & ~4095ul); if (mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0) "
            "{ const_cast<float *>(x)[0] = 0; y[0] = 0; } else return 77;"
        ),
        {C.RUNTIME_ERROR},
        "77",
    ),
    "NaN": (CALL.format('y[n - 1] = __builtin_nanf("");'), {C.INCORRECT}, "finite"),
    "infinity": (CALL.format("y[n / 2] = __builtin_inff();"), {C.INCORRECT}, "finite"),
    "zeros": (
        'extern "C" int solve(const float *, float *y, int64_t n) { memset(y, 0, n * 4); return 0; }\n',
        {C.INCORRECT},
        "relative L2",
    ),
    "nothing": (
        'extern "C" int solve(const float *, float *, int64_t) { return 0; }\n',
        {C.INCORRECT},
        "never written",
    ),
    "identity": (
        'extern "C" int solve(const float *x, float *y, int64_t n) { memcpy(y, x, n * 4); return 0; }\n',
        {C.INCORRECT},
        "",
    ),
    "all but the last element": (
        'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
        "    for (int64_t i = 0; i + 1 < n; ++i) y[i] = 2.0f * x[i];\n    return 0;\n}\n",
        {C.INCORRECT},
        "1 of",
    ),
    "one element off by a thousandth": (CALL.format("y[n / 3] += 1e-2f;"), {C.INCORRECT}, "bound"),
    "keeps its first answer": (
        "static float kept[1 << 20]; static int64_t have = -1;\n"
        'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
        "    if (have != n) { for (int64_t i = 0; i < n; ++i) kept[i] = 2.0f * x[i]; have = n; }\n"
        "    memcpy(y, kept, n * 4); return 0;\n}\n",
        {C.INCORRECT},
        "",
    ),
    "finishes in a thread after returning": (
        'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
        "    std::thread([=] { usleep(20000); for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i]; }).detach();\n"
        "    return 0;\n}\n",
        {C.INCORRECT, C.SUSPECT},
        "",
    ),
    "returns an error": (CALL.format("return 5;"), {C.RUNTIME_ERROR}, "returned 5"),
    "throws": (CALL.format("throw 1;"), {C.RUNTIME_ERROR}, "SIGABRT"),
    "overflows the stack": (
        "static int deep(int n) { volatile char b[4096]; b[0] = n; return n ? deep(n + 1) + b[0] : 0; }\n"
        + CALL.format("return deep(1);"),
        {C.RUNTIME_ERROR},
        "SIGSEGV",
    ),
    "needs a symbol that is not there": (
        'extern "C" void nowhere();\n' + CALL.format("nowhere();"),
        {C.LOAD_ERROR},
        "nowhere",
    ),
}
PROGRAMS["leaves a daemon"] = (
    CALL.format(
        "if (fork() == 0) { setsid(); if (fork() == 0) for (;;) pause(); _exit(0); } while (wait(nullptr) > 0);"
    ),
    {C.OK, C.SUSPECT, C.TIMEOUT, C.RUNTIME_ERROR},
    "",
)
WALL_NS = 1 * SECOND


# What the issue names; all the rest, of the same kinds, runs with the slow tests.
QUICK = {
    "exit 0 at load",
    "spins in the call",
    "forks without end",
    "leaves a daemon",
    "allocates without end",
    "writes 1 GiB to stdout",
    "prints a fake verdict",
    "fake answers in the call",
    "SIGSEGV",
    "stops itself",
    "closes all descriptors",
    "writes one element past the output",
    "writes to its input",
    "NaN",
    "all but the last element",
    "keeps its first answer",
    "templates that double",
    "includes a file of the host",
    "no entry",
    "an error in the source",
}


def named(programs: dict[str, tuple[str, set[VerdictCode], str]]) -> list[object]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow, id=name) for name in programs]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    made = await Rig.start(tmp_path_factory.mktemp("hostile"))
    try:
        await made.client.facts()
        # The judge is warm from here on, so that what follows measures candidates.
        done = await made.run(await made.artifact(HONEST))
        assert done.report.outcome == Verdict(code=VerdictCode.OK), done.report
        yield made
    finally:
        await made.client.close()


@pytest.mark.parametrize("name", named(PROGRAMS))
async def test_a_hostile_candidate_costs_one_verdict_and_leaves_nothing(rig: Rig, name: str) -> None:
    block, expected, text = PROGRAMS[name]
    idle = below(rig.client.pid)
    artifact = await rig.artifact(UNIX + block)
    began = time.monotonic_ns()
    done = await rig.run(artifact, wall_ns=WALL_NS)
    took = time.monotonic_ns() - began
    outcome = done.report.outcome
    assert isinstance(outcome, Verdict), outcome
    assert outcome.code in expected, outcome
    assert text in outcome.text, outcome
    assert took <= WALL_NS + 2 * SECOND, f"the slot was free after {took / SECOND:.2f} s"
    assert await until(lambda: below(rig.client.pid) == idle), below(rig.client.pid) - idle
    assert isinstance(done.report.detail, RunResult)
    if outcome.code is not VerdictCode.OK:
        assert not done.report.detail.speedups
    assert len(done.report.log_tail) <= 64 << 10


async def test_an_honest_candidate_is_ok_after_all_of_them(rig: Rig) -> None:
    artifact = await rig.artifact(HONEST)
    done = await rig.run(artifact)
    assert done.report.outcome == Verdict(code=VerdictCode.OK)
    assert isinstance(done.report.detail, RunResult)
    assert done.report.detail.ran == artifact


@pytest.mark.slow
async def test_a_candidate_that_computes_ahead_of_its_calls_is_not_believed(rig: Rig) -> None:
    # Inputs lie in shared memory before the call: a thread watches the places it has been given before.
    ahead = (
        "static const float *xs[64]; static float *ys[64]; static float *mine[64]; static float first[64];\n"
        "static volatile int count = 0;\n"
        "static void watch(int64_t n) { for (;;) { usleep(200); for (int s = 0; s < count; ++s)\n"
        "    if (xs[s][n - 1] != first[s]) { usleep(100); for (int r = 0; r < 60; ++r)\n"
        "        for (int64_t i = 0; i < n; ++i) ((volatile float *)mine[s])[i] = 2.0f * xs[s][i];\n"
        "        first[s] = xs[s][n - 1]; } } }\n"
        'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
        "    if (n > 100000) { for (int s = 0; s < count; ++s) if (xs[s] == x && first[s] == x[n - 1]) {\n"
        "            memcpy(y, mine[s], n * 4); return 0; }\n"
        "        if (count == 0) std::thread([=] { watch(n); }).detach();\n"
        "        if (count < 64) { int s = count; xs[s] = x; ys[s] = y; mine[s] = (float *)malloc(n * 4);\n"
        "            first[s] = x[n - 1]; for (int64_t i = 0; i < n; ++i) mine[s][i] = 2.0f * x[i];\n"
        "            count = s + 1; } }\n"
        "    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];\n    return 0;\n}\n"
    )
    plan = MeasurementPlan(min_rounds=12, max_rounds=12, max_ns=10 * SECOND)
    done = await rig.run(await rig.artifact(UNIX + ahead), plan=plan, wall_ns=5 * SECOND)
    assert isinstance(done.report.outcome, Verdict)
    assert done.report.outcome.code in (VerdictCode.SUSPECT, VerdictCode.INCORRECT, VerdictCode.RUNTIME_ERROR), (
        done.report
    )


@pytest.mark.slow
async def test_a_candidate_that_works_while_others_are_measured_is_suspect(rig: Rig) -> None:
    spin = 'static bool once = (std::thread([] { for (;;) asm volatile(""); }).detach(), true);\n'
    plan = MeasurementPlan(min_rounds=40, max_rounds=40, max_ns=10 * SECOND)
    done = await rig.run(await rig.artifact(UNIX + spin + HONEST), plan=plan)
    assert isinstance(done.report.outcome, Verdict)
    assert done.report.outcome.code is VerdictCode.SUSPECT, done.report.outcome
    done = await rig.run(await rig.artifact(HONEST), plan=plan)
    assert done.report.outcome == Verdict(code=VerdictCode.OK)


BUILDS: dict[str, tuple[str, set[VerdictCode], str]] = {
    "templates without end": (
        "template <int N> struct T { static const int v = T<N + 1>::v + T<N + 2>::v; };\nint z = T<0>::v;\n" + HONEST,
        {C.COMPILE_ERROR, C.TIMEOUT, C.RESOURCE_LIMIT},
        "",
    ),
    "templates that double": (
        "template <int N, int M> struct T { static const long v = T<N - 1, 2 * M>::v + T<N - 1, 2 * M + 1>::v; };\n"
        "template <int M> struct T<0, M> { static const long v = M; };\nlong z = T<24, 0>::v;\n" + HONEST,
        {C.TIMEOUT, C.RESOURCE_LIMIT},
        "",
    ),
    "constexpr without end": (
        "constexpr long f() { long s = 0; for (long i = 0; i < 1l << 40; ++i) s += i; return s; }\n"
        "constexpr long z = f();\n" + HONEST,
        {C.COMPILE_ERROR, C.TIMEOUT, C.RESOURCE_LIMIT},
        "",
    ),
    "a gigantic array": ("char big[1ul << 40] = {1};\n" + HONEST, {C.COMPILE_ERROR, C.TIMEOUT, C.RESOURCE_LIMIT}, ""),
    "a library larger than allowed": (
        "char big[100ul << 20] = {1};\n" + HONEST,
        {C.RESOURCE_LIMIT},
        "",
    ),
    "reads a file of the host into the library": (
        'asm(".incbin \\"/root/.bashrc\\"");\n' + HONEST,
        {C.COMPILE_ERROR},
        "",
    ),
    "includes a file of the host": ('#include "/etc/passwd"\n' + HONEST, {C.COMPILE_ERROR}, "/etc/passwd"),
    "includes itself without end": ('#include "kernel.cpp"\n' + HONEST, {C.COMPILE_ERROR, C.TIMEOUT}, ""),
    "reads a device without end": (
        '#include "/dev/zero"\n' + HONEST,
        {C.COMPILE_ERROR, C.TIMEOUT, C.RESOURCE_LIMIT},
        "",
    ),
    "no entry": (
        'extern "C" int solved(const float *x, float *y, int64_t n) { return 0; }\n',
        {C.LOAD_ERROR},
        'extern "C" int solve(const float *x, float *y, int64_t n)',
    ),
    "entry without C linkage": (HONEST.replace('extern "C" ', ""), {C.LOAD_ERROR}, 'extern "C"'),
    "an error in the source": (HONEST.replace("return 0", "return nothing"), {C.COMPILE_ERROR}, "kernel.cpp:"),
    "a million errors": ("a b;\n" * 200_000 + HONEST, {C.COMPILE_ERROR, C.TIMEOUT}, ""),
}


@pytest.mark.parametrize("name", named(BUILDS))
async def test_a_hostile_source_costs_one_verdict_within_its_limit(rig: Rig, name: str) -> None:
    block, expected, text = BUILDS[name]
    idle = below(rig.client.pid)
    limits = Limits(wall_ns=3 * SECOND, memory_bytes=512 << 20, artifact_bytes=16 << 20)
    began = time.monotonic_ns()
    done = await rig.build(block, limits=limits)
    took = time.monotonic_ns() - began
    outcome = done.report.outcome
    assert isinstance(outcome, Verdict), outcome
    assert outcome.code in expected, outcome
    assert text in outcome.text, outcome
    assert took <= limits.wall_ns + 2 * SECOND
    assert done.artifact is None
    assert "/job/" not in outcome.text
    assert await until(lambda: below(rig.client.pid) == idle), below(rig.client.pid) - idle


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to compare host users")
async def test_the_candidate_is_another_host_user_than_the_judge(rig: Rig) -> None:
    artifact = await rig.artifact(UNIX + CALL.format("for (;;) pause();"))
    users: set[int] = set()

    async def watch() -> None:
        for pid in below(rig.client.pid):
            try:
                users.add(os.stat(f"/proc/{pid}").st_uid)
            except OSError:
                continue

    import asyncio

    running = asyncio.ensure_future(rig.run(artifact))
    while not running.done():
        await watch()
        await asyncio.sleep(0.05)
    assert len({user for user in users if user >= 61000}) >= 2, users
