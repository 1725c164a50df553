"""What requests give back; names of vLLM's outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from foretoken.metrics import RequestMetrics


@dataclass
class Logprob:
    """Log-probability of a token under the model, before anything shaped the logits."""

    logprob: float
    rank: int | None = None  # 1: no token is likelier
    decoded_token: str | None = None


# By position: the token that stands there first, then the likeliest ones.
SampleLogprobs = list[dict[int, Logprob]]
PromptLogprobs = list["dict[int, Logprob] | None"]  # None for the first token


@dataclass
class CompletionOutput:
    """One choice of a request."""

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None = None
    logprobs: SampleLogprobs | None = None
    finish_reason: str | None = None  # stop, length, abort or error
    stop_reason: int | str | None = None  # the stop token id or string; None for EOS
    error: str | None = None  # why, where finish_reason is error

    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass
class RequestOutput:
    """A request for text: its prompt and its choices."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    prompt_logprobs: PromptLogprobs | None
    outputs: list[CompletionOutput]
    finished: bool
    metrics: RequestMetrics | None = None
    num_cached_tokens: int | None = None
    lora_request: None = field(default=None, repr=False)
    encoder_prompt: None = field(default=None, repr=False)
    encoder_prompt_token_ids: None = field(default=None, repr=False)


@dataclass
class PoolingOutput:
    """The pooled state of a prompt."""

    data: list[float]


@dataclass
class EmbeddingOutput:
    """The embedding of a prompt."""

    embedding: list[float] = field(repr=False)

    @property
    def hidden_size(self) -> int:
        return len(self.embedding)


@dataclass
class ScoringOutput:
    """Similarity of a pair of texts: the cosine of their embeddings."""

    score: float


_Output = TypeVar("_Output")


@dataclass
class PoolingRequestOutput(Generic[_Output]):
    """A request for a state of its prompt."""

    request_id: str
    outputs: _Output
    prompt_token_ids: list[int]
    num_cached_tokens: int = 0
    finished: bool = True


class EmbeddingRequestOutput(PoolingRequestOutput[EmbeddingOutput]):
    pass


class ScoringRequestOutput(PoolingRequestOutput[ScoringOutput]):
    pass
