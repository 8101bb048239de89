"""Budgets of a campaign before it begins: what cannot hold, or would let nothing happen, is refused with what to do."""

from __future__ import annotations

from kfd.base.failure import CallerError
from kfd.base.instant import MINUTE, seconds_text
from kfd.base.money import money_text
from kfd.core.campaign.spending import MAX_VERIFICATIONS, call_bound_of
from kfd.core.campaign.state import CampaignSpec
from kfd.core.search.proposals import ANY_MODEL
from kfd.core.search.terms import cost_of

__all__ = ["MOST_DEVICE_NS", "MOST_MICRO_MONEY", "MOST_TOKENS", "check_budgets"]

MOST_MICRO_MONEY = 10**15
MOST_TOKENS = 10**13
MOST_DEVICE_NS = 10 * 366 * 24 * 60 * MINUTE
"""The largest budgets that can be given: a thousand million, ten million million tokens, ten years."""

LEAST_RUNS = 1 + 1 + 2 + MAX_VERIFICATIONS
"""Admission, initial kernel, one candidate with its confirmation, and the end."""


def check_budgets(spec: CampaignSpec) -> None:
    """Raise CallerError for a budget that is none, that bounds nothing here, or that nothing could be begun under."""
    limits = (
        ("--budget-money", spec.budget_micro_money, MOST_MICRO_MONEY, money_text),
        ("--budget-tokens", spec.budget_tokens, MOST_TOKENS, str),
        ("--budget-device", spec.budget_device_ns, MOST_DEVICE_NS, seconds_text),
    )
    given = [(flag, value, most, text) for flag, value, most, text in limits if value is not None]
    for flag, value, most, text in given:
        if not 0 < value <= most:
            raise CallerError(f"{flag} is above 0 and at most {text(most)}", mend=f"give another {flag}, or none")
    if spec.validate_only and given:
        raise CallerError("a validation asks nothing and ends by itself", mend=f"leave out {given[0][0]}")
    _check_models(spec)
    least = LEAST_RUNS * spec.run_limits.wall_ns
    if spec.budget_device_ns is not None and spec.budget_device_ns < least:
        raise CallerError(
            f"{LEAST_RUNS} runs of up to {seconds_text(spec.run_limits.wall_ns)} are kept in hand for the task, one "
            f"candidate and the end: {seconds_text(spec.budget_device_ns)} of device time let nothing begin",
            mend=f"give --budget-device {seconds_text(least)} or more, or lower limits.run_seconds of the task",
        )


def _check_models(spec: CampaignSpec) -> None:
    money, tokens = spec.budget_micro_money, spec.budget_tokens
    if money is None and tokens is None:
        return
    flag = "--budget-money" if money is not None else "--budget-tokens"
    if spec.generator != "openai":
        raise CallerError(f"answers from {spec.generator} cost no money and no tokens", mend=f"leave out {flag}")
    named = {one.name for one in spec.terms}
    unknown = [name for name, _ in spec.search.models if name not in (*named, ANY_MODEL)]
    if unknown or not named:
        who = unknown[0] if unknown else "the models"
        raise CallerError(
            f"the terms of {who} are not known, so that {flag} cannot hold",
            mend=f"add [[llm.models]] to the daemon's configuration, or leave out {flag}",
        )
    for one in spec.terms:
        if money is not None and one.price is None:
            raise CallerError(
                f"the model {one.name} has no price, so that {flag} cannot hold",
                mend=f"give input_price and output_price of {one.name} in the daemon's configuration, choose other "
                f"models with --model, or bound --budget-tokens instead",
            )
        if not one.is_limited:
            raise CallerError(
                f"the answers of {one.name} have no limit (max_tokens_name is none), so that {flag} cannot hold",
                mend=f"set max_tokens_name of {one.name} in the daemon's configuration, or choose other models",
            )
        bound = call_bound_of(spec, one.name)
        most = cost_of(one, bound.input_tokens, bound.output_tokens)
        mend = (
            f"give more, choose other models with --model, or lower max_tokens, context_tokens or asks_again for "
            f"{one.name} in the daemon's configuration"
        )
        if money is not None and most.micro_money > money:
            cost = f"{money_text(most.micro_money)}, and {money_text(money)} are given"
            raise CallerError(f"one candidate of {one.name} may cost up to {cost}", mend=mend)
        if tokens is not None and most.tokens > tokens:
            cost = f"{most.tokens} tokens, and {tokens} are given"
            raise CallerError(f"one candidate of {one.name} may take up to {cost}", mend=mend)
