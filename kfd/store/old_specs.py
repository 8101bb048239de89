"""Specs of campaigns that an older kfd stored, in today's words."""

from __future__ import annotations

from typing import Any

from kfd.base.codec import encode
from kfd.core.search.hints import HintPolicy
from kfd.core.search.operators import OperatorPolicy
from kfd.core.search.proposals import ANY_MODEL, SearchPolicy
from kfd.core.search.strategies import ParentWeights

__all__ = ["translated"]


def translated(spec: Any) -> Any:
    """A stored spec with ``search`` in place of ``emitter`` and ``models``; any other is returned as it is.

    What the emitter did not know stays off, so that a campaign ends as it was begun. Raises ValueError for an emitter
    that cannot be read.
    """
    if not isinstance(spec, dict) or "emitter" not in spec:
        return spec
    rest = {key: value for key, value in spec.items() if key not in ("emitter", "models")}
    try:
        emitter, weights = spec["emitter"], spec["emitter"]["selection"]
        policy = SearchPolicy(
            parents=ParentWeights(uniform=weights["uniform"], fitness=weights["fitness"], curiosity=0.0),
            operators=OperatorPolicy(
                rewrite=emitter["rewrite"],
                patch=emitter["patch"],
                repair_depth=emitter["repair_depth"],
                template_every=0,
            ),
            hints=HintPolicy(limit=0),
            inspirations=emitter["inspirations"],
            models=tuple((name, 1.0) for name in spec["models"]) or ((ANY_MODEL, 1.0),),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the search settings of an older kfd cannot be read: {error!r}") from error
    return {**rest, "search": encode(policy)}
