"""How the state of a prompt is pooled."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class PoolingParams:
    """Unset fields take the engine's pooler_config."""

    pooling_type: str | None = None  # LAST, MEAN, CLS or AUTO
    normalize: bool | None = None  # to length 1
    truncate_prompt_tokens: int | None = None
    dimensions: int | None = None
    use_activation: bool | None = None  # vLLM's name of normalize
    task: str | None = None

    def __post_init__(self) -> None:
        if self.dimensions is not None:
            raise NotImplementedError(
                "dimensions is for matryoshka models, which are not built; cut the embedding"
            )
        if self.task not in (None, "embed", "token_embed"):
            raise NotImplementedError(f"the pooling task {self.task!r} is not built; use 'embed'")
        if self.task == "token_embed":
            raise NotImplementedError("vectors of tokens are told by a server (/pooling); use task 'embed'")
        if self.normalize is None:
            self.normalize = self.use_activation
