"""The search as one pure facade: ``ask`` for the next child, ``tell`` what became of it.

``ask`` looks only at what it is given and at what was told, and its randomness is the dice of the campaign: asking
twice gives the same answer. ``restore`` replays stored outcomes, so a restarted daemon and a replay decide alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kfd.base.ids import CandidateId
from kfd.core.dice import Dice
from kfd.core.search.archive import Cell, Elite, Niche, fittest
from kfd.core.search.bandit import Arm, Bandit
from kfd.core.search.crowding import Crowd, crowd
from kfd.core.search.gradient import GradientField
from kfd.core.search.hints import Hint, hints_at
from kfd.core.search.odds import Odds
from kfd.core.search.operators import Operator, due, gain_of, open_shares
from kfd.core.search.plateau import Progress, Reaction, reaction, stop_reason
from kfd.core.search.prompt_archive import PromptArchive, Variant
from kfd.core.search.proposals import NOTHING, Broken, Outcome, Proposal, SearchPolicy, View
from kfd.core.search.strategies import Islands, ParentWeights, Strategy, choose_strategy, strategy_weights
from kfd.core.search.transitions import Transition, change_of
from kfd.core.search.upkeep import Upkeep

__all__ = ["BEST_OF_N", "RULES", "Search"]

RULES = 1
"""Number of the rules by which questions are decided. Raise it with a change after which stored rows would be decided
otherwise: campaigns keep the number that they were submitted under, and only their own kfd can replay them."""

BEST_OF_N = "best_of_n"
"""How the parent of a plain sample was found, for the log."""

_WIDENED = ParentWeights(uniform=1.0, fitness=0.0, curiosity=0.0)
"""Parents while a plateau's reaction looks everywhere."""
_NO_MOVE = (Operator.REPAIR, Operator.MIGRATE)
_FRESH = 16
"""Failures, the newest first, that may be repaired: older ones had other parents and are no longer near the front."""
_SWITCHED = {Operator.PATCH: 0.25, Operator.CROSSOVER: 2.0}
"""What the shares of operators are multiplied by while a plateau's reaction leaves small steps."""
_OUT_OF_TURN = 5
"""Evaluations between updates of prompts while a plateau's reaction asks for new ones, whatever the period."""


class Search:
    """One campaign's search."""

    def __init__(self, policy: SearchPolicy, dice: Dice, first_prompt: Variant) -> None:
        self._policy = policy
        self._dice = dice
        self._gradient = GradientField(policy.gradient)
        self._islands = Islands(policy.parents)
        self._bandit = Bandit(policy.bandit) if policy.bandit is not None and not policy.best_of_n else None
        self._lead: Arm | None = None
        self._prompts = PromptArchive(policy.prompts, (first_prompt,))
        self._progress = Progress()
        self._evaluations = 0
        self._children: dict[str, int] = {}
        self._upkeep = Upkeep()
        self._odds = Odds()
        self._restarted_at = -1
        self._has_judged = False
        self._correct: dict[Niche, int] = {}
        self._crowd: Crowd | None = None
        self._initial: Elite | None = None

    @classmethod
    def restore(
        cls,
        policy: SearchPolicy,
        dice: Dice,
        first_prompt: Variant,
        rows: Iterable[Outcome | Variant],
        initial: Elite | None = None,
    ) -> Search:
        """The search after the stored rows, in the order of their storing.

        A row is an outcome or an accepted prompt variant. ``initial``: the task's own kernel as it was measured.
        """
        search = cls(policy, dice, first_prompt)
        if initial is not None:
            search.begin(initial)
        for row in rows:
            match row:
                case Outcome():
                    search.tell(row)
                case Variant():
                    search.prompt_evolved(row)
        return search

    # ---- learning ---------------------------------------------------------------------------------------------------

    def begin(self, elite: Elite) -> None:
        """The initial kernel was measured: it seeds every island and is where progress starts."""
        self._initial = elite
        for island in range(self._policy.parents.islands):
            self._islands.add(elite, island)
        self._progress = self._progress.after(elite.fitness, self._evaluations, self._policy.plateau)

    def tell(self, outcome: Outcome) -> None:
        """Learn what became of a proposal, whatever it was."""
        self._evaluations += 1
        delta = outcome.fitness - outcome.parent_fitness
        child = outcome.elite
        # A mended kernel's parent was a failure, whose cell nobody measured, and a migrant's lives on another target:
        # they teach no direction.
        if outcome.operator not in _NO_MOVE:
            self._gradient.add(
                Transition(
                    ordinal=outcome.ordinal,
                    parent=outcome.parent_cell,
                    child=child.cell if child is not None else None,
                    delta=delta,
                    change=change_of(correct=child is not None, kept=outcome.kept, delta=delta),
                    operator=outcome.operator.value,
                    hints=outcome.hints,
                )
            )
        gain = gain_of(outcome.operator, delta, kept=outcome.kept)
        is_asked = outcome.operator not in (Operator.TUNE, Operator.MIGRATE)  # these are no model's answers
        if self._bandit is not None and is_asked:
            arm = Arm(model=outcome.model, operator=outcome.operator.value, prompt=outcome.prompt)
            self._bandit.pulled(arm, gain=gain, price=outcome.price)
            self._lead = self._bandit.lead(self._lead)
        self._has_judged = is_asked
        if is_asked:
            self._prompts.judged(outcome.prompt, gain)
        if outcome.parent is not None and is_asked:
            self._children[outcome.parent] = self._children.get(outcome.parent, 0) + 1
        if child is not None:
            self._count(child, is_asked=is_asked)
            self._islands.add(child, outcome.island)
            if outcome.best:
                self._progress = self._progress.after(child.fitness, self._evaluations, self._policy.plateau)
        self._islands.evaluated()
        self._upkeep.note(outcome, self._evaluations)
        self._odds.note(outcome.operator, correct=child is not None)
        self._react()

    def _count(self, child: Elite, *, is_asked: bool) -> None:
        if is_asked and self._crowd is None:
            self._correct[child.niche] = self._correct.get(child.niche, 0) + 1
            self._crowd = crowd(self._correct)

    @property
    def crowd(self) -> Crowd | None:
        """The cell that holds most of the correct kernels, from the outcome on with which it was first so."""
        return self._crowd

    def _react(self) -> None:
        """A restart of the weakest island happens once for each time that the reaction comes into force."""
        policy = self._policy.plateau
        if reaction(self._progress, self._evaluations, policy) is not Reaction.RESTART:
            return
        block = (self._evaluations - self._progress.at) // policy.patience
        key = self._progress.at + block * policy.patience
        best = self._best_of_islands()
        if best is not None and key != self._restarted_at:
            self._restarted_at = key
            self._islands.restart_worst(best)

    def _best_of_islands(self) -> Elite | None:
        every = [elite for island in range(self._policy.parents.islands) for elite in self._islands.on(island)]
        return max(every, key=lambda elite: (elite.fitness, -elite.ordinal), default=None)

    @property
    def lead(self) -> Arm | None:
        """The way of asking that the bandit has found to bring most for its cost; None without one."""
        return self._lead

    # ---- prompts ----------------------------------------------------------------------------------------------------

    def prompt_due(self, ordinal: int) -> tuple[Variant, ...]:
        """Variants that the meta-prompter should be asked to change now; empty when it is not time.

        To be asked once after each ``tell``: it changes nothing, so that a restart cannot lose or double an update.
        A point of a sweep is no child of a prompt and completes no period.
        """
        if self._policy.best_of_n or not self._has_judged:
            return ()
        out_of_turn = self.reaction() is Reaction.META and self._policy.prompts.period > 0
        if not self._prompts.is_due() and not (out_of_turn and self._evaluations % _OUT_OF_TURN == 0):
            return ()
        return self._prompts.parents(self._dice, ordinal)

    def prompt_evolved(self, variant: Variant) -> bool:
        """A mutation was accepted; whether it is new."""
        return self._prompts.add(variant)

    @property
    def prompts(self) -> tuple[Variant, ...]:
        """Prompt variants with their records, in the order of their making."""
        return self._prompts.variants

    @property
    def evaluations(self) -> int:
        """How many outcomes were told."""
        return self._evaluations

    def prompt_credit(self, identity: str) -> tuple[Variant | None, float, float]:
        """A variant's record (None when it was dropped), its credit, and the mean gain of all children."""
        variant, mean = self._prompts.get(identity), self._prompts.mean()
        return variant, mean if variant is None else self._prompts.credit(variant), mean

    # ---- deciding ---------------------------------------------------------------------------------------------------

    def reaction(self) -> Reaction | None:
        """The plateau reaction in force."""
        return reaction(self._progress, self._evaluations, self._policy.plateau)

    def stop_reason(self, roofline: float | None = None) -> str | None:
        """Why to stop now, or None. ``roofline``: share of the attainable speed that the best reaches."""
        return stop_reason(self._progress, self._evaluations, self._policy.plateau, roofline)

    def ask(self, view: View, ordinal: int) -> Proposal | None:
        """What candidate ``ordinal`` shall be; None when nothing is left to ask."""
        if self._policy.best_of_n:
            return self._sample(view, ordinal)
        # Failures are repaired first while that is worth it, and in the end when nothing else is left to ask.
        fresh = self._repair(view.broken[-_FRESH:], view, ordinal) if self._odds.repair_pays else None
        return fresh or self._new(view, ordinal) or self._repair(view.broken, view, ordinal)

    def _new(self, view: View, ordinal: int) -> Proposal | None:
        """Anything but a repair."""
        if not view.elites:
            if (NOTHING, Operator.REWRITE.value) in view.closed:
                return None
            arm = self._arm({Operator.REWRITE: 1.0}, ordinal)
            return self._proposal(Operator.REWRITE, None, arm, ordinal, strategy="")
        best = max(view.elites, key=lambda elite: (elite.fitness, -elite.ordinal))
        untuned = self._upkeep.untuned(view.elites, best.fitness - self._policy.operators.template_margin)
        standing = self._upkeep.standing(
            best, view.best_length_ratio, untuned=untuned is not None, evaluations=self._evaluations
        )
        wanted = due(self._policy.operators, standing)
        if wanted is not None and self._is_awaited(wanted, view):
            wanted = None
        parent = untuned if wanted is Operator.TEMPLATE and untuned is not None else best
        if wanted is not None and (parent.source, wanted.value) not in view.closed:
            return self._proposal(wanted, parent, self._arm({wanted: 1.0}, ordinal), ordinal, strategy="due")
        return self._drawn(view, ordinal)

    def _sample(self, view: View, ordinal: int) -> Proposal | None:
        """Plain sampling: always the same question, whatever was answered."""
        start = self._initial
        if ((start.source if start is not None else NOTHING), Operator.REWRITE.value) in view.closed:
            return None
        arm = self._arm({Operator.REWRITE: 1.0}, ordinal)
        return self._proposal(Operator.REWRITE, start, arm, ordinal, strategy=BEST_OF_N)

    def _repair(self, failures: Sequence[Broken], view: View, ordinal: int) -> Proposal | None:
        """A repair of the latest of these failures that may be repaired."""
        for failure in reversed(failures):
            if failure.depth >= self._policy.operators.repair_depth:
                continue
            if (failure.source, Operator.REPAIR.value) in view.closed:
                continue
            arm = self._arm({Operator.REPAIR: 1.0}, ordinal)
            return Proposal(
                operator=Operator.REPAIR,
                parent=failure.candidate,
                parent_source=failure.source,
                parent_cell=failure.cell or (0, 0, 0),
                parent_fitness=failure.fitness,
                generation=failure.generation + 1,
                repair_depth=failure.depth + 1,
                inspirations=(),
                hints=(),
                model=arm.model,
                prompt=arm.prompt,
                strategy="due",
                island=self._islands.turn(ordinal),
                reaction=self._reaction_name(),
            )
        return None

    def _is_awaited(self, wanted: Operator, view: View) -> bool:
        """Whether it was asked for within its period, answered or not: candidates are in flight side by side."""
        policy = self._policy.operators
        every = policy.template_every if wanted is Operator.TEMPLATE else policy.simplify_every
        asked = view.last_asked.get(wanted)
        return asked is not None and view.told - asked < every

    def _drawn(self, view: View, ordinal: int) -> Proposal | None:
        now = self.reaction()
        weights = _WIDENED if now is Reaction.WIDEN else self._policy.parents
        strategy = choose_strategy(weights, self._dice, ordinal)
        among: Sequence[Elite] = view.elites
        if strategy is Strategy.ISLAND:
            # All that a child of an island is shown is of that island, whatever other islands hold in its cells.
            home = self._islands.on(self._islands.turn(ordinal))
            if not home and (NOTHING, Operator.REWRITE.value) not in view.closed:
                arm = self._arm({Operator.REWRITE: 1.0}, ordinal)
                return self._proposal(Operator.REWRITE, None, arm, ordinal, strategy=strategy.value)
            among = home if self._askable(home, self._shares(home, now), view) else among
        shares = self._shares(among, now)
        askable = self._askable(among, shares, view)
        if not askable:
            return None
        parent = self._parent(askable, ordinal, strategy)
        usable = {op: share for op, share in shares.items() if (parent.source, op.value) not in view.closed}
        arm = self._arm(usable, ordinal)
        return self._proposal(Operator(arm.operator), parent, arm, ordinal, strategy=strategy.value, among=among)

    def _shares(self, among: Sequence[Elite], now: Reaction | None) -> dict[Operator, float]:
        return open_shares(self._policy.operators, len(among), _SWITCHED if now is Reaction.SWITCH else None)

    @staticmethod
    def _askable(among: Sequence[Elite], shares: Mapping[Operator, float], view: View) -> list[Elite]:
        """Who may be a parent: the generator still answers one of these operators for it."""
        if not view.closed:
            return list(among)
        return [e for e in among if any((e.source, op.value) not in view.closed for op in shares)]

    def _parent(self, askable: list[Elite], ordinal: int, strategy: Strategy) -> Elite:
        strengths: dict[Cell, float] = {}
        if strategy is Strategy.CURIOSITY:
            strengths = self._gradient.strengths(fittest(askable), ordinal)
        shares = strategy_weights(strategy, askable, self._policy.parents, strengths, self._children)
        return self._dice.pick(askable, shares, "parent", ordinal)

    def _arm(self, shares: dict[Operator, float], ordinal: int) -> Arm:
        """Prompt by its archive's credit, then model and operator by the bandit (credited for all three) or share."""
        prompt = self._prompts.choose(self._dice, ordinal).id
        models = self._policy.models
        if self._bandit is None:
            operator = self._dice.pick(list(shares), list(shares.values()), "operator", ordinal)
            model = self._dice.pick([n for n, _ in models], [share for _, share in models], "model", ordinal)
            return Arm(model=model, operator=operator.value, prompt=prompt)
        pairs = [
            (Arm(model=name, operator=operator.value, prompt=prompt), share * weight)
            for operator, share in shares.items()
            for name, weight in models
        ]
        return self._bandit.choose([arm for arm, _ in pairs], [share for _, share in pairs], self._dice, ordinal)

    def _proposal(
        self,
        operator: Operator,
        parent: Elite | None,
        arm: Arm,
        ordinal: int,
        *,
        strategy: str,
        among: Sequence[Elite] = (),
    ) -> Proposal:
        hints: tuple[Hint, ...] = ()
        is_told = self._policy.hints.limit > 0 and strategy != BEST_OF_N
        if is_told and parent is not None and operator in (Operator.REWRITE, Operator.PATCH):
            held = fittest(among)
            here = self._gradient.at(parent.cell, held, ordinal)
            trends = self._gradient.trends(ordinal)
            hints = hints_at(parent.cell, here, self._policy.hints, trends=trends, occupied=held)
        shown = self._inspirations(parent, among, ordinal) if parent is not None else ()
        return Proposal(
            operator=operator,
            parent=parent.candidate if parent is not None else None,
            parent_source=parent.source if parent is not None else NOTHING,
            parent_cell=parent.cell if parent is not None else (0, 0, 0),
            parent_fitness=parent.fitness if parent is not None else 0.0,
            generation=parent.generation + 1 if parent is not None else 1,
            repair_depth=0,
            inspirations=shown,
            hints=hints,
            model=arm.model,
            prompt=arm.prompt,
            strategy=strategy,
            island=self._islands.turn(ordinal),
            reaction=self._reaction_name(),
        )

    def _inspirations(self, parent: Elite, among: Sequence[Elite], ordinal: int) -> tuple[CandidateId, ...]:
        """The best other elite first, then others drawn from other cells."""
        others = [elite for elite in among if elite.candidate != parent.candidate]
        if not others or self._policy.inspirations <= 0:
            return ()
        best = max(others, key=lambda elite: (elite.fitness, -elite.ordinal))
        rest = [elite for elite in others if elite is not best]
        rest.sort(key=lambda elite: self._dice.roll(f"inspiration:{elite.niche}", ordinal))
        return tuple(elite.candidate for elite in [best, *rest[: self._policy.inspirations - 1]])

    def _reaction_name(self) -> str:
        now = self.reaction()
        return now.value if now is not None else ""
