"""Our side of the peers' protocol: one JSON object a line in each direction, one answer for each message.

``{"do": "start", "seed": int}`` begins a campaign. ``{"do": "ask"}`` is answered by ``{"parent", "inspirations",
"operator", "island"}`` (ids that were told). ``{"do": "tell", "id", "parent", "code", "score", "correct", "generation",
"island"}`` reports a judged child; the first one is the task's own kernel and has no parent.
"""

from __future__ import annotations

import contextlib
import json
import random
import selectors
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.search.landscape import Genome
from benchmarks.search.model import MODELS, Question
from benchmarks.search.world import Judged, Result, World

__all__ = ["PEERS", "PeerProcess", "peer_run"]

HERE = Path(__file__).parent
PEERS = {"openevolve": HERE / "openevolve_adapter.py", "shinka": HERE / "shinka_adapter.py"}
ANSWER_SECONDS = 60.0


class PeerProcess:
    """An adapter in its own interpreter and an empty working folder."""

    def __init__(self, name: str, python: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kfd-peer-")
        self._errors = (Path(self._folder.name) / "stderr").open("w+")
        self._process = subprocess.Popen(
            [str(python), str(PEERS[name])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=self._folder.name,
            env={"PATH": "/usr/bin:/bin", "HOME": self._folder.name},
            text=True,
        )

    def say(self, **message: object) -> dict[str, Any]:
        """One message and its answer. Raises RuntimeError when the adapter died, is silent or reports an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # A dead adapter breaks the pipe; what it said before that is more use than the pipe's complaint.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        with selectors.DefaultSelector() as ready:
            ready.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if ready.select(ANSWER_SECONDS) else ""
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"the adapter gave no answer: {self._errors.read()[-1500:]}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"the adapter says: {answer['error']}")
        return answer

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()


def code_of(genome: Genome) -> str:
    """A genome as source text: what peers that look at code (length, edit distance) see."""
    memory, algorithm, parallelism = genome.cell
    lines = [f"constexpr int K{i} = {value};" for i, value in enumerate(genome.knobs)]
    lines += [f"stage_memory_{level}(x, y);" for level in range(memory + 1)]
    lines += [f"combine_algorithm_{level}(x, y, n);" for level in range(algorithm + 1)]
    lines += [f"share_parallel_{level}(threads);" for level in range(parallelism + 1)]
    lines += [f"apply_detail_{bit}();" for bit in range(16) if genome.details >> bit & 1]
    if genome.bug:
        lines.append(f"broken_{genome.bug}();")
    return "\n".join(lines)


def peer_run(peer: PeerProcess, world: World) -> Result:
    """A whole campaign with a peer's selection and the shared simulated model; models are drawn evenly."""
    rng = random.Random(f"peer:{world.seed}")
    peer.say(do="start", seed=world.seed)
    first = world.first()
    told: dict[str, tuple[Genome, int]] = {"p0": (first.genome, 0)}
    _tell(peer, "p0", None, first, 0, 0)
    while not world.over:
        asked = peer.say(do="ask")
        parent, depth = told[asked["parent"]]
        question = Question(
            operator=asked["operator"],
            parent=parent,
            inspirations=tuple(told[name][0] for name in asked["inspirations"] if told[name][0].bug == 0),
            model=rng.choice(list(MODELS)),
        )
        _, judged = world.ask(question)
        name = f"p{world.evaluations}"
        told[name] = (judged.genome, depth + 1)
        _tell(peer, name, asked["parent"], judged, depth + 1, asked["island"])
    return world.result()


def _tell(peer: PeerProcess, name: str, parent: str | None, judged: Judged, generation: int, island: int) -> None:
    # Their score is the plain speedup, as both systems' examples use it.
    peer.say(
        do="tell",
        id=name,
        parent=parent,
        code=code_of(judged.genome),
        score=judged.speedup,
        correct=judged.correct,
        generation=generation,
        island=island,
    )
