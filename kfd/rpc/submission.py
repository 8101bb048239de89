"""From a task and a person's options to what a campaign needs. Pure: what is random is passed in."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kfd.api.v1 import control_pb2
from kfd.base.failure import BadInput, CallerError
from kfd.base.ids import campaign_id
from kfd.base.instant import Span
from kfd.base.work import CHECKED_ONLY, Limits, MeasurementPlan
from kfd.core.campaign.mutation import regions_of
from kfd.core.campaign.state import CampaignSpec
from kfd.core.search.proposals import ANY_MODEL, SearchPolicy
from kfd.core.search.search import RULES
from kfd.core.search.terms import ModelTerms
from kfd.prompting.regions import first_regions
from kfd.prompting.render import in_device_form_of
from kfd.rpc.budgets import check_budgets
from kfd.tasks.spec import TaskSpec

__all__ = ["MAX_CANDIDATES", "Defaults", "spec_of"]

MAX_CANDIDATES = 1_000_000
MAX_IN_FLIGHT = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What the daemon's configuration says about campaigns."""

    generators: tuple[str, ...]
    """Generators that can answer here, the preferred one first."""
    models: tuple[str, ...]
    shares: tuple[tuple[str, float], ...]
    """Models that are asked when a campaign names none, with their shares; empty without any model."""
    in_flight: int
    plan: MeasurementPlan
    search: SearchPolicy
    terms: tuple[ModelTerms, ...] = ()
    """Of all configured models, in the order of ``models``."""
    asks_again: int = 0
    """How often a model is asked again when its answer holds no usable kernel."""
    processes: int = 64
    output_bytes: int = 64 << 10


def spec_of(
    task: TaskSpec,
    options: control_pb2.CampaignOptions,
    defaults: Defaults,
    *,
    key: str,
    token: bytes,
    submitted_at: str,
) -> CampaignSpec:
    """The campaign's spec; ``token`` is 48 random bytes. Raises CallerError for options that cannot be."""
    if len(token) < 48:
        raise ValueError("48 random bytes are needed")
    target = options.target or task.targets[0]
    if target not in task.targets:
        raise CallerError(f"the task has no target {target!r}", mend=f"it has {', '.join(task.targets)}")
    if target == CHECKED_ONLY and not options.validate_only:
        raise CallerError(
            f"{target} checks kernels and never times them, so that nothing can be made faster there",
            mend="use kfd-client validate, or name a target with a device",
        )
    candidates = options.candidates or task.budget_candidates
    if candidates > MAX_CANDIDATES:
        raise CallerError(f"{candidates} candidates are more than {MAX_CANDIDATES}", mend="give a smaller --candidates")
    budget_ns: Span = options.max_ns or task.budget_ns
    in_flight = options.in_flight or defaults.in_flight
    if in_flight > MAX_IN_FLIGHT:
        raise CallerError(
            f"{in_flight} candidates in flight are more than {MAX_IN_FLIGHT}",
            mend="give a smaller --in-flight",
        )
    if len(options.name) > 100 or any(ch.isspace() or not ch.isprintable() or ch in "@/" for ch in options.name):
        raise CallerError(
            "a campaign's name has up to 100 visible characters, no spaces, no @ and no /",
            mend="give another --name",
        )
    if len(options.group) > 200:
        raise BadInput("a group's name has at most 200 characters", mend="let kfd-client make one")
    if not key or len(key) > 200:
        raise BadInput("an idempotency key of 1 to 200 characters is needed", mend="let kfd-client make one")
    limits = task.limits
    toolchain = target.partition(":")[0]
    generator = "none" if options.validate_only else _generator(task, options.generator, defaults)
    search = _search(generator, tuple(options.models), defaults)
    spec = CampaignSpec(
        id=campaign_id(token[:8]),
        name=options.name,
        task=task.digest,
        task_name=task.name,
        kernel_path=task.kernel.path,
        toolchain=toolchain,
        target=target,
        flags=task.flags,
        build_limits=Limits(
            wall_ns=limits.build_ns,
            memory_bytes=limits.memory_bytes,
            processes=defaults.processes,
            output_bytes=defaults.output_bytes,
        ),
        run_limits=Limits(
            wall_ns=limits.run_ns,
            memory_bytes=limits.memory_bytes,
            processes=defaults.processes,
            output_bytes=defaults.output_bytes,
        ),
        plan=defaults.plan,
        baseline=task.baseline,
        target_speedup=task.target_speedup,
        generator=generator,
        budget_candidates=candidates,
        budget_ns=budget_ns,
        seed=options.seed or int.from_bytes(token[8:16], "big") >> 1,
        secret=token[16:48],
        in_flight=in_flight,
        search=search,
        idempotency_key=key,
        submitted_at=submitted_at,
        simulated=toolchain == "sim",
        validate_only=options.validate_only,
        regions=regions_of(first_regions(toolchain, device_form=in_device_form_of(task))),
        group=options.group,
        budget_micro_money=options.budget_micro_money if options.HasField("budget_micro_money") else None,
        budget_tokens=options.budget_tokens if options.HasField("budget_tokens") else None,
        budget_device_ns=options.budget_device_ns if options.HasField("budget_device_ns") else None,
        terms=_terms(generator, search, defaults),
        asks_again=defaults.asks_again if generator == "openai" else 0,
        rules=RULES,
    )
    check_budgets(spec)
    return spec


def _terms(generator: str, search: SearchPolicy, defaults: Defaults) -> tuple[ModelTerms, ...]:
    """Terms of all models that the campaign may ask."""
    if generator != "openai":
        return ()
    names = [*(name for name, _ in search.models), search.prompts.model]
    return tuple(one for one in defaults.terms if ANY_MODEL in names or one.name in names)


def _generator(task: TaskSpec, wanted: str, defaults: Defaults) -> str:
    """The generator asked for, else a configured model, else the task's recordings."""
    if wanted:
        if wanted not in ("openai", *defaults.generators):
            raise CallerError(
                f"there is no generator {wanted!r}", mend=f"choose one of {', '.join(defaults.generators)}"
            )
        if wanted not in defaults.generators:
            raise CallerError("no model is configured", mend="add [[llm.models]] to the daemon's configuration")
        if wanted == "recorded" and not task.has_recordings:
            raise CallerError(
                "the task has no recorded answers",
                mend="add recorded/ to the task, or choose another --generator",
            )
        return wanted
    if "openai" in defaults.generators:
        return "openai"
    if task.has_recordings and "recorded" in defaults.generators:
        return "recorded"
    raise CallerError(
        "no model is configured and the task has no recorded answers",
        mend="add [[llm.models]] to the daemon's configuration, or submit with --generator manual",
    )


def _search(generator: str, wanted: tuple[str, ...], defaults: Defaults) -> SearchPolicy:
    """The configured search, with the models asked for, and only with operators that the generator can answer."""
    models = _models(wanted, defaults)
    policy = defaults.search
    if generator == "recorded":
        # Recordings answer rewrites, patches and repairs; whatever else is asked would only use up the questions.
        # Repairs are off by default because new kernels of a model do as well; recorded ones cost nobody anything.
        drawn = (policy.operators.rewrite, policy.operators.patch)
        rewrite, patch = drawn if any(drawn) else (1.0, 0.0)
        operators = replace(
            policy.operators,
            rewrite=rewrite,
            patch=patch,
            crossover=0.0,
            repair_depth=max(1, policy.operators.repair_depth),
            template_every=0,
            simplify_every=0,
        )
        policy = replace(policy, operators=operators)
    if generator == "openai":
        return replace(policy, models=models)
    # Nobody else can be asked by name.
    return replace(policy, models=((ANY_MODEL, 1.0),), prompts=replace(policy.prompts, model=""))


def _models(wanted: tuple[str, ...], defaults: Defaults) -> tuple[tuple[str, float], ...]:
    """Models and their shares: those asked for alike, else the configured ones. Raises CallerError."""
    unknown = [name for name in wanted if name not in defaults.models]
    if unknown:
        known = ", ".join(defaults.models) or "none"
        raise CallerError(f"no model {unknown[0]!r} is configured", mend=f"configured models: {known}")
    if wanted:
        return tuple((name, 1.0) for name in dict.fromkeys(wanted))
    return defaults.shares or ((ANY_MODEL, 1.0),)
