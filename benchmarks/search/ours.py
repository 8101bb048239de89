"""kfd's own search on a simulated task: the real facade, archive values, prompt archive and sweep."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from benchmarks.search.contestants import Grid
from benchmarks.search.landscape import Genome
from benchmarks.search.model import MODELS, Question, SimulatedPrompt
from benchmarks.search.world import Judged, Result, World
from kfd.base.digest import Digest
from kfd.base.ids import CandidateId
from kfd.core.dice import Dice
from kfd.core.search.archive import Elite
from kfd.core.search.bandit import BanditPolicy
from kfd.core.search.operators import Operator
from kfd.core.search.prompt_archive import Region, Variant, variant_id
from kfd.core.search.proposals import ANY_MODEL, Broken, Outcome, Proposal, SearchPolicy, View
from kfd.core.search.search import Search
from kfd.core.search.sweep import Point, Space, SweepRow, next_point

__all__ = ["MECHANISMS", "ours", "switched", "whole"]

_NO_ARTIFACT = Digest(hash="0" * 64, size=0)


def whole() -> SearchPolicy:
    """The defaults, with the simulated models."""
    return SearchPolicy(models=tuple((name, 1.0) for name in MODELS))


def _switched(policy: SearchPolicy, mechanism: str, on: bool) -> SearchPolicy:
    """The policy with one mechanism on or off; one that is off by default comes with a value tried in tuning."""
    parents, operators = policy.parents, policy.operators
    ranked = parents.fitness or parents.curiosity
    changed = {
        "fitness_parents": {"parents": replace(parents, fitness=(parents.fitness or 2.0) if on else 0.0)},
        "curiosity": {"parents": replace(parents, curiosity=(parents.curiosity or 2.0) if on else 0.0)},
        # As many parents by gradient and rank in place of rank alone: what the gradients add to the ranks.
        "gradient": {
            "parents": replace(parents, fitness=0.0 if on else ranked, curiosity=ranked if on else 0.0),
        },
        "island": {"parents": replace(parents, island=1.0 if on else 0.0)},
        "hints": {"hints": replace(policy.hints, limit=(policy.hints.limit or 1) if on else 0)},
        "crossover": {"operators": replace(operators, crossover=0.2 if on else 0.0)},
        "patch": {"operators": replace(operators, patch=(operators.patch or 0.2) if on else 0.0)},
        "repair": {"operators": replace(operators, repair_depth=(operators.repair_depth or 1) if on else 0)},
        "template": {"operators": replace(operators, template_every=(operators.template_every or 40) if on else 0)},
        "bandit": {"bandit": BanditPolicy() if on else None},
        "prompts": {"prompts": replace(policy.prompts, period=10 if on else 0)},
        "plateau": {"plateau": replace(policy.plateau, patience=80 if on else 0)},
        "inspirations": {"inspirations": (policy.inspirations or 2) if on else 0},
    }[mechanism]
    return replace(policy, **changed)  # type: ignore[arg-type]  # each value fits the field that its key names


_NAMES = (
    "fitness_parents",
    "curiosity",
    "gradient",
    "island",
    "hints",
    "crossover",
    "patch",
    "repair",
    "template",
    "bandit",
    "prompts",
    "plateau",
    "inspirations",
)

MECHANISMS: Mapping[str, bool] = {name: _switched(whole(), name, on=False) != whole() for name in _NAMES}
"""Every mechanism that can be switched, and whether it is on by default."""


def switched(mechanism: str) -> SearchPolicy:
    """The defaults with one mechanism switched over: off where it is on, on where it is off."""
    return _switched(whole(), mechanism, on=not MECHANISMS[mechanism])


class _Campaign:
    """What the campaign machine does around the facade: archive, failures that wait, prompts, sweeps."""

    def __init__(self, world: World, policy: SearchPolicy) -> None:
        self.world = world
        self.policy = policy
        self.ordinal = 0
        self.dice = Dice(world.seed)
        regions = {Region.STRATEGIES: "first"}
        first = Variant(id=variant_id(regions), regions=regions)
        self.search = Search(policy, self.dice, first)
        self.hidden = {first.id: SimulatedPrompt()}
        self.rng = random.Random(f"meta:{world.seed}")
        self.genomes: dict[CandidateId, Genome] = {}
        self.sources: dict[Genome, str] = {}
        judged = world.first()
        self.grid = Grid(judged)
        self.elites: dict[tuple[int, int, int], Elite] = {}
        self.broken: list[Broken] = []
        elite = self._elite(judged, 0, 0)
        self.elites[elite.cell] = elite
        self.search.begin(elite)

    def run(self) -> Result:
        """Steady state: one child after another."""
        while not self.world.over:
            view = View(elites=list(self.elites.values()), broken=self.broken)
            proposal = self.search.ask(view, self._next())
            if proposal is None:
                break
            self._child(proposal, self.ordinal)
            self._evolve_prompts(self.ordinal)
        return self.world.result()

    def _next(self) -> int:
        self.ordinal += 1
        return self.ordinal

    def _child(self, proposal: Proposal, ordinal: int) -> None:
        parent = self.genomes[proposal.parent] if proposal.parent is not None else self.world.land.initial
        question = Question(
            operator=proposal.operator.value,
            parent=parent,
            inspirations=tuple(self.genomes[shown] for shown in proposal.inspirations),
            hints=tuple(hint.direction for hint in proposal.hints),
            model=proposal.model,
            prompt=self.hidden[proposal.prompt],
        )
        if proposal.operator is Operator.REPAIR:
            self.broken = [failure for failure in self.broken if failure.candidate != proposal.parent]
        answer, judged = self.world.ask(question)
        elite, kept, best = self._keep(judged, ordinal, proposal.generation)
        if elite is None:
            self._failed(judged, proposal, ordinal)
        self.search.tell(
            Outcome(
                ordinal=ordinal,
                operator=proposal.operator,
                parent=proposal.parent,
                parent_source=proposal.parent_source,
                parent_cell=proposal.parent_cell,
                parent_fitness=proposal.parent_fitness,
                model=proposal.model,
                prompt=proposal.prompt,
                island=proposal.island,
                hints=question.hints,
                fitness=judged.fitness,
                elite=elite,
                kept=kept,
                best=best,
                price=answer.price,
            )
        )
        if proposal.operator is Operator.TEMPLATE and elite is not None and self.world.land.knob_sizes:
            self._sweep(judged, elite, proposal)

    def _keep(self, judged: Judged, ordinal: int, generation: int) -> tuple[Elite | None, bool, bool]:
        if not judged.correct:
            return None, False, False
        elite = self._elite(judged, ordinal, generation)
        kept, best = self.grid.add(judged)
        if kept:
            self.elites[elite.cell] = elite
        return elite, kept, best

    def _failed(self, judged: Judged, proposal: Proposal, ordinal: int) -> None:
        name = CandidateId(f"c-{ordinal}")
        self.genomes[name] = judged.genome
        self.broken.append(
            Broken(
                candidate=name,
                ordinal=ordinal,
                generation=proposal.generation,
                depth=proposal.repair_depth,
                source=self._source(judged.genome),
                cell=judged.genome.cell,
                fitness=judged.fitness,
            )
        )
        # Only what still may be repaired is kept, as the campaign does.
        self.broken = [one for one in self.broken if one.depth < self.policy.operators.repair_depth]

    def _sweep(self, start: Judged, template: Elite, proposal: Proposal) -> None:
        """Each point is a candidate of its own, told like any other, as campaigns do."""
        sizes, knobs = self.world.land.knob_sizes, start.genome.knobs
        # The declared default comes first in each set: the constants that the kernel has now.
        values = tuple((knobs[i], *(v for v in range(size) if v != knobs[i])) for i, size in enumerate(sizes))
        space = Space(names=tuple(f"k{i}" for i in range(len(sizes))), values=values)
        default: Point = (0,) * len(sizes)
        rows = [SweepRow(point=default, speedup=start.speedup, low=start.low, high=start.high)]
        policy = self.policy.sweep.sweep()
        while not self.world.over:
            point = next_point(space, rows, policy, self.dice, template.ordinal)
            if point is None:
                break
            judged = self.world.judge(replace(start.genome, knobs=tuple(space.chosen(point).values())))
            speedup = judged.speedup if judged.correct else None
            rows.append(SweepRow(point=point, speedup=speedup, low=judged.low, high=judged.high))
            elite, kept, best = self._keep(judged, self._next(), template.generation + 1)
            self.search.tell(
                Outcome(
                    ordinal=self.ordinal,
                    operator=Operator.TUNE,
                    parent=template.candidate,
                    parent_source=template.source,
                    parent_cell=template.cell,
                    parent_fitness=template.fitness,
                    model=ANY_MODEL,
                    prompt=proposal.prompt,
                    island=proposal.island,
                    hints=(),
                    fitness=judged.fitness,
                    elite=elite,
                    kept=kept,
                    best=best,
                    price=0.0,
                )
            )

    def _evolve_prompts(self, ordinal: int) -> None:
        for parent in self.search.prompt_due(ordinal):
            regions = {Region.STRATEGIES: f"{parent.id} changed before child {ordinal}"}
            variant = Variant(
                id=variant_id(regions), regions=regions, parent=parent.id, generation=parent.generation + 1
            )
            if self.search.prompt_evolved(variant):
                self.hidden[variant.id] = self.hidden[parent.id].mutated(self.rng)
                self.world.money += MODELS["large"].price

    def _source(self, genome: Genome) -> str:
        return self.sources.setdefault(genome, f"s{len(self.sources)}")

    def _elite(self, judged: Judged, ordinal: int, generation: int) -> Elite:
        name = CandidateId(f"c-{ordinal}")
        self.genomes[name] = judged.genome
        return Elite(
            candidate=name,
            ordinal=ordinal,
            generation=generation,
            cell=judged.genome.cell,
            fitness=judged.fitness,
            speedup=judged.speedup,
            low=judged.low,
            high=judged.high,
            source=self._source(judged.genome),
            artifact=_NO_ARTIFACT,
        )


def ours(world: World, policy: SearchPolicy | None = None) -> Result:
    """A whole campaign under a policy; the defaults when none is given."""
    return _Campaign(world, policy or whole()).run()
