"""What a person configures about models. Unknown keys are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

__all__ = ["LlmConfig", "ModelConfig", "Section"]

_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$")]
_OWN_PARAMETERS = ("model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n")


class Section(BaseModel):
    """A section of the configuration: unknown keys and values of another kind are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _kind(cls, value: object, info: ValidationInfo) -> object:
        """Neither `true` nor `"3"` is a number, nor is `1` or `"yes"` a yes: somebody meant another key."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        kinds = get_args(annotation) or (annotation,)
        if bool in kinds and not isinstance(value, bool):
            raise ValueError("true or false is wanted")
        if (int in kinds or float in kinds) and isinstance(value, bool | str):
            raise ValueError("a number is wanted, without quotes")
        return value


class ModelConfig(Section):
    """One model behind one endpoint. What is not set is not sent: absent is not null (peer faults, F14)."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=(), use_attribute_docstrings=True)

    name: _Name
    """What people and records call it."""
    model: str = ""
    """What the provider calls it; empty means the same."""
    base_url: str = Field(pattern=r"^https?://")
    """Address of an OpenAI-compatible endpoint, up to and with ``/v1``."""
    weight: float = Field(default=1.0, ge=0, le=1e6)
    """Share of the asks that name no model, 0 or at least a millionth; 0 only for asks that name it."""
    key_file: Path | None = None
    """File that holds the key, readable by its owner only."""
    key_env: str | None = None
    """Name of the environment variable that holds the key."""
    max_tokens: int = Field(default=32_768, ge=16, le=10_000_000)
    """Longest answer, hidden reasoning included."""
    max_tokens_ceiling: int | None = Field(default=None, ge=16, le=10_000_000)
    """Longest answer when the one before was cut off by ``max_tokens``; unset, it is asked for again as long."""
    max_tokens_name: Literal["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    """Parameter that carries the limit; reasoning models want ``max_completion_tokens``."""
    context_tokens: int | None = Field(default=None, ge=256, le=100_000_000)
    """The model's window, prompt and answer together: prompts are trimmed to what ``max_tokens`` leaves of it. Unset
    means unknown: prompts are as long as kfd allows any."""
    input_price: float | None = Field(default=None, ge=0, le=1e6)
    """Money for a million tokens of prompts. Unset means unknown, which is not 0."""
    output_price: float | None = Field(default=None, ge=0, le=1e6)
    """Money for a million tokens of answers. Unset means unknown, which is not 0."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature, for models that take one."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling, for models that take it."""
    seed: int | None = None
    """Seed, for models that take one."""
    reasoning_effort: str | None = None
    """The provider's word for how long a reasoning model thinks."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further members of the request's body, as the provider documents them."""
    concurrency: int = Field(default=8, ge=1, le=1000)
    """Calls in flight at once."""
    stream: bool = True
    """Whether answers come in pieces; without it silence cannot be told from thinking."""

    @model_validator(mode="after")
    def _check(self) -> ModelConfig:
        if self.key_file is not None and self.key_env is not None:
            raise ValueError("give key_file or key_env, not both")
        if 0 < self.weight < 1e-6:
            raise ValueError("a weight is 0 or at least a millionth")
        taken = [name for name in self.extra if name in _OWN_PARAMETERS]
        if taken:
            raise ValueError(f"extra may not hold {', '.join(taken)}: kfd sets that itself")
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("give input_price and output_price, or neither")
        if self.max_tokens_ceiling is not None and self.max_tokens_ceiling < self.max_tokens:
            raise ValueError("max_tokens_ceiling is not below max_tokens")
        longest = self.max_tokens_ceiling or self.max_tokens
        if self.context_tokens is not None and self.context_tokens <= longest:
            raise ValueError(f"context_tokens leaves no room for a prompt beside an answer of {longest} tokens")
        return self

    @property
    def provider_model(self) -> str:
        """What the provider calls the model."""
        return self.model or self.name


class LlmConfig(Section):
    """All models and the limits of one logical call. Times are seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    models: tuple[ModelConfig, ...] = ()
    """The models; without any the generator ``openai`` is not offered."""
    deadline_s: float = Field(default=900, gt=0, le=86_400)
    """One logical call, waiting for a free place and our retries included."""
    connect_s: float = Field(default=10, gt=0, le=600)
    """Longest wait for a connection."""
    idle_s: float = Field(default=120, gt=0, le=3600)
    """Longest silence: before the headers and between two pieces; a server's keep-alive counts as a sign of
    life."""
    max_attempts: int = Field(default=6, ge=1, le=100)
    """Attempts of one logical call."""
    backoff_s: float = Field(default=1.0, gt=0, le=600)
    """First back-off; doubles with every attempt."""
    backoff_cap_s: float = Field(default=60, gt=0, le=3600)
    """Longest back-off."""
    asks_again: int = Field(default=1, ge=0, le=3)
    """How often a model is asked again, in the same conversation and with the reason, when its answer holds no usable
    kernel. Recordings and people are not."""
    retry_after_cap_s: float = Field(default=3600, gt=0, le=86_400)
    """Longest Retry-After that is believed."""

    @model_validator(mode="after")
    def _check(self) -> LlmConfig:
        names = [model.name for model in self.models]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"model {twice[0]} is there twice")
        if self.backoff_cap_s < self.backoff_s:
            raise ValueError(f"backoff_cap_s ({self.backoff_cap_s:g}) is below backoff_s ({self.backoff_s:g})")
        if self.models and not any(model.weight for model in self.models):
            raise ValueError("every model has weight 0: no ask could be answered")
        return self
