"""From updates of the engine to the outputs that users see."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from foretoken import _core
from foretoken.metrics import RequestMetrics
from foretoken.outputs import (
    CompletionOutput,
    Logprob,
    PoolingOutput,
    PoolingRequestOutput,
    PromptLogprobs,
    RequestOutput,
)
from foretoken.pooling_params import PoolingParams
from foretoken.sampling_params import RequestOutputKind, SamplingParams

Output = RequestOutput | PoolingRequestOutput[PoolingOutput]
_Row = list[tuple[int, float, int, str]]


class RequestError(RuntimeError):
    """The engine gave a request up; other requests are not touched."""


def _by_id(row: _Row) -> dict[int, Logprob]:
    entries: dict[int, Logprob] = {}
    for token, logprob, rank, text in row:
        entries.setdefault(token, Logprob(logprob, rank, text))
    return entries


@dataclass
class _Choice:
    """What is known of one choice and was not handed out in another delta."""

    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)
    cumulative_logprob: float = 0.0
    finish_reason: str | None = None
    stop_reason: str = ""
    error: str | None = None
    stats: _core.Stats | None = None
    news: bool = True


class RequestTracker:
    """One request: sums its updates up. One thread at a time."""

    def __init__(
        self,
        key: int,
        request_id: str,
        prompt: str | None,
        prompt_token_ids: list[int],
        params: SamplingParams | PoolingParams,
        kind: RequestOutputKind,
    ) -> None:
        self.key = key
        self.request_id = request_id
        self.finished = False
        self.error: str | None = None  # of the first choice that failed
        self._prompt = prompt
        self._prompt_token_ids = prompt_token_ids
        self._params = params
        self._kind = kind
        self._choices: dict[int, _Choice] = {}
        self._prompt_rows: list[_Row] = []
        self._embedding: list[float] = []
        self._arrival = time.time()
        self._started = time.monotonic()
        self._first: float | None = None
        self._last = 0.0

    @property
    def final_only(self) -> bool:
        return self._kind is RequestOutputKind.FINAL_ONLY

    @property
    def pools(self) -> bool:
        return isinstance(self._params, PoolingParams)

    def counts(self) -> tuple[int, int]:
        """Tokens of the prompt, and of all choices."""
        metrics = self._metrics()
        return metrics.num_prompt_tokens, metrics.num_generation_tokens

    def apply(self, update: _core.Update) -> None:
        self._last = time.monotonic() - self._started
        if self._first is None:
            self._first = self._last
        for news in update.choices:
            self._apply_choice(news)
        self.finished = self.finished or update.finished

    def _apply_choice(self, news: _core.ChoiceUpdate) -> None:
        choice = self._choices.setdefault(news.index, _Choice(news.index))
        choice.news = True
        choice.text += news.text
        choice.token_ids += news.token_ids
        choice.stats = news.stats
        if isinstance(self._params, SamplingParams):
            if self._params.logprobs is not None:
                rows = news.logprobs
                choice.rows += rows
                choice.cumulative_logprob += sum(row[0][1] for row in rows)
            if self._params.prompt_logprobs is not None:
                self._prompt_rows += news.prompt_logprobs
        else:
            self._embedding += news.embedding
        if news.finish_reason:
            choice.finish_reason = news.finish_reason
            choice.stop_reason = news.stop_reason
            choice.error = news.error or None
            self.error = self.error or choice.error

    def output(self) -> Output:
        """Everything so far, or with DELTA what is new since the last call."""
        metrics = self._metrics()
        ids = self._prompt_ids(metrics)
        if isinstance(self._params, PoolingParams):
            pooled = PoolingOutput(self._embedding)
            return PoolingRequestOutput(
                self.request_id, pooled, ids, metrics.num_cached_tokens, self.finished
            )
        delta = self._kind is RequestOutputKind.DELTA
        shown = [choice for choice in self._choices.values() if choice.news or not delta]
        outputs = [self._completion(choice, self._params) for choice in shown]
        if delta:
            for choice in shown:
                choice.text, choice.token_ids, choice.rows, choice.news = "", [], [], False
        return RequestOutput(
            self.request_id,
            self._prompt,
            ids,
            self._prompt_logprobs(ids, self._params),
            sorted(outputs, key=lambda output: output.index),
            self.finished,
            metrics,
            metrics.num_cached_tokens,
        )

    def _completion(self, choice: _Choice, params: SamplingParams) -> CompletionOutput:
        wanted = params.logprobs is not None
        return CompletionOutput(
            choice.index,
            choice.text,
            list(choice.token_ids),
            choice.cumulative_logprob if wanted else None,
            [_by_id(row) for row in choice.rows] if wanted else None,
            choice.finish_reason,
            self._stop_reason(choice, params),
            choice.error,
        )

    @staticmethod
    def _stop_reason(choice: _Choice, params: SamplingParams) -> int | str | None:
        reason = choice.stop_reason
        if not reason:
            return None
        if reason not in (params.stop or ()):
            return int(reason)
        ids = [token for token in params.stop_token_ids or () if str(token) == reason]
        return ids[0] if ids and choice.token_ids[-1:] == ids else reason

    def _prompt_logprobs(self, ids: list[int], params: SamplingParams) -> PromptLogprobs | None:
        if params.prompt_logprobs is None:
            return None
        first: PromptLogprobs = [None]
        rows: PromptLogprobs = [_by_id(row) for row in self._prompt_rows]
        return first + rows if rows or len(ids) == 1 else None

    def _prompt_ids(self, metrics: RequestMetrics) -> list[int]:
        """Those that were computed: truncation drops leading ones, of embeddings the last ones."""
        ids, kept = self._prompt_token_ids, metrics.num_prompt_tokens
        if not kept:
            return ids
        return ids[:kept] if self._embedding else ids[-kept:]

    def _metrics(self) -> RequestMetrics:
        metrics = RequestMetrics(
            arrival_time=self._arrival,
            first_token_latency=self._first or 0.0,
            last_token_latency=self._last,
        )
        for choice in self._choices.values():
            if choice.stats is not None:
                metrics.add(choice.stats)
        return metrics
