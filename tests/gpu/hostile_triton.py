"""Triton kernels for the tasks softmax_triton and matmul_triton: hostile ones and honest look-alikes."""

from __future__ import annotations

from tests.gpu.programs import Program

__all__ = ["PROGRAMS"]

_PLAN = "# [LAUNCH] launch softmax grid(rows) warps(4) args(x, y, rows, cols, BLOCK=1024)\n"
_HEAD = "\n\n@triton.jit\ndef softmax(x, y, rows, cols, BLOCK: tl.constexpr):\n"
_START = """    row = tl.program_id(0).to(tl.int64)
    x += row * cols
    y += row * cols
"""
_TOP = """    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.load(x + j, mask=j < cols, other=float("-inf")))
    top = tl.max(largest, axis=0)
"""
_SUM = """    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x + j, mask=j < cols, other=float("-inf")) - top)
    scale = 1.0 / tl.sum(total, axis=0)
"""
_STORE = """    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        tl.store(y + j, tl.exp(tl.load(x + j, mask=j < cols, other=float("-inf")) - top) * scale, mask=j < cols)
"""
_HALF = (
    "tl.exp((tl.load(x + j, mask=j < cols, other=float('-inf')) - top).to(tl.float16).to(tl.float32)).to(tl.float16)"
)


def _softmax(name: str, expect: str, body: str, *, plan: str = _PLAN, before: str = "") -> Program:
    return Program(
        name=name, task="softmax_triton", block=f"{plan}{before}{_HEAD}{body}", expect=frozenset(expect.split())
    )


_GOOD = _START + _TOP + _SUM + _STORE

PROGRAMS: tuple[Program, ...] = (
    _softmax(
        "store_without_mask", "incorrect", _START + _TOP + _SUM + _STORE.replace("* scale, mask=j < cols)", "* scale)")
    ),
    _softmax(
        "write_behind_output",
        "incorrect",
        _GOOD + "    if row == 0:\n        tl.store(y + rows * cols + 20, 1.0)\n",
    ),
    _softmax("write_to_input", "incorrect", _GOOD + "    if row == 0:\n        tl.store(x, 1.0)\n"),
    _softmax("write_nothing", "incorrect", "    if rows < 0:\n        tl.store(y, tl.load(x))\n"),
    _softmax(
        "rest_in_last_row", "incorrect", _START + "    if row + 1 == rows:\n        return\n" + _TOP + _SUM + _STORE
    ),
    _softmax(
        "constant",
        "incorrect",
        _START
        + "    for at in range(0, cols, BLOCK):\n        j = at + tl.arange(0, BLOCK)\n"
        + "        tl.store(y + j, tl.zeros((BLOCK,), tl.float32) + 1.0 / (cols + 1), mask=j < cols)\n",
    ),
    _softmax(
        "half_precision",
        "incorrect",
        _START + _TOP + _SUM + "    for at in range(0, cols, BLOCK):\n        j = at + tl.arange(0, BLOCK)\n"
        f"        tl.store(y + j, {_HALF} * scale, mask=j < cols)\n",
    ),
    _softmax(
        "endless_loop",
        "timeout",
        _GOOD + "    turns = rows\n    while turns > 0:\n        tl.atomic_add(y, 0.0)\n"
        "        turns += tl.load(y).to(tl.int64) * 0\n",
    ),
    _softmax("ends_the_compiler", "load_error", _GOOD, before="\nimport os\n\nos._exit(0)\n"),
    _softmax(
        "forges_the_payload",
        "load_error",
        _GOOD,
        before="\nimport os\n\nfor fd in range(3, 20):\n    try:\n"
        '        os.write(fd, b\'{"entries": [{"key": 1}]}\\n\')\n'
        "    except OSError:\n        pass\nos._exit(0)\n",
    ),
    _softmax(
        "autotuned",
        "compile_error",
        _GOOD,
        before='\n\n@triton.autotune(configs=[triton.Config({"BLOCK": 1024})], key=[])',
    ),
    _softmax("argument_missing", "compile_error", _GOOD, plan=_PLAN.replace("rows, cols,", "cols,")),
    Program(
        name="matmul_in_tf32",
        task="matmul_triton",
        block="""# [TUNE] TILE in {32}; DEPTH in {32}
# [LAUNCH] launch matmul grid(ceildiv(n, TILE), ceildiv(m, TILE)) args(a, b, c, m, n, k, TILE=TILE, DEPTH=DEPTH)


@triton.jit
def matmul(a, b, c, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)[:, None]
    columns = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for at in range(0, k, DEPTH):
        across = at + tl.arange(0, DEPTH)[None, :]
        down = at + tl.arange(0, DEPTH)[:, None]
        left = tl.load(a + rows * k + across, mask=(rows < m) & (across < k), other=0.0)
        right = tl.load(b + down * n + columns, mask=(down < k) & (columns < n), other=0.0)
        total += tl.dot(left, right, input_precision="tf32")
    tl.store(c + rows * n + columns, total, mask=(rows < m) & (columns < n))
""",
        expect=frozenset({"incorrect"}),
    ),
    _softmax("plain", "ok", _GOOD),
    _softmax("eight_warps", "ok", _GOOD, plan=_PLAN.replace("warps(4)", "warps(8)").replace("1024", "4096")),
    _softmax("prints_at_import", "ok", _GOOD, before="\nprint('hello')\n"),
    _softmax(
        "reads_a_little_behind", "ok", _GOOD + "    if tl.load(x + cols + 3) == 1.0e38:\n        tl.store(y, 0.0)\n"
    ),
    _softmax(
        "helper_function",
        "ok",
        _START + _TOP.replace("top = tl.max(largest, axis=0)", "top = highest(largest)") + _SUM + _STORE,
        before="\n\n@triton.jit\ndef highest(values):\n    return tl.max(values, axis=0)",
    ),
)
