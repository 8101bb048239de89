"""What the configuration says about models, as campaigns keep it: windows as bounds, prices as whole numbers."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from kfd.core.search.terms import ModelTerms
from kfd.llm.config import ModelConfig
from kfd.prompting.tokens import prompt_room

__all__ = ["terms_from"]


def terms_from(model: ModelConfig) -> ModelTerms:
    """Terms of one model. Prices are rounded up to a millionth of the currency for a million tokens."""
    return ModelTerms(
        name=model.name,
        max_input_tokens=prompt_room(model.context_tokens, model.max_tokens),
        max_output_tokens=model.max_tokens,
        raised_output_tokens=model.max_tokens_ceiling or model.max_tokens,
        input_price=_micro(model.input_price),
        output_price=_micro(model.output_price),
        is_limited=model.max_tokens_name != "none",
    )


def _micro(price: float | None) -> int | None:
    if price is None:
        return None
    return int((Decimal(str(price)) * 1_000_000).to_integral_value(ROUND_CEILING))
