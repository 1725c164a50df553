"""Equal ids with and without speculation; its counts and its faults."""

from __future__ import annotations

import pytest
from conftest import NGRAM, PROMPTS, SMALL

from foretoken import LLM, SamplingParams, SpeculativeParams
from foretoken.metrics import Counter, Vector

PARAMS = [
    SamplingParams(temperature=0, max_tokens=40),
    SamplingParams(temperature=0.8, top_p=0.9, seed=3, max_tokens=40, n=2),
    SamplingParams(temperature=0.7, repetition_penalty=1.2, min_p=0.02, seed=5, max_tokens=40),
]


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("method", ["ngram", "eagle"])
def test_ids_do_not_depend_on_drafts(
    llm: LLM, drafting_llm: LLM, params: SamplingParams, method: str
) -> None:
    plain = llm.generate(PROMPTS, params, use_tqdm=False)
    chosen = params.clone()
    chosen.speculative = SpeculativeParams(method=method)
    drafted = drafting_llm.generate(PROMPTS, chosen, use_tqdm=False)
    for one, other in zip(plain, drafted):
        assert [c.token_ids for c in one.outputs] == [c.token_ids for c in other.outputs]
        assert [c.text for c in one.outputs] == [c.text for c in other.outputs]
    assert all(output.metrics and output.metrics.num_draft_tokens == 0 for output in plain)
    assert sum(output.metrics.num_draft_tokens for output in drafted if output.metrics) > 0


def test_counts(drafting_llm: LLM) -> None:
    params = SamplingParams(temperature=0, max_tokens=60, ignore_eos=True)
    params.speculative = SpeculativeParams(method="eagle")
    outputs = drafting_llm.generate(PROMPTS, params, use_tqdm=False)
    metrics = {metric.name: metric for metric in drafting_llm.get_metrics()}
    drafts, accepted = (
        metrics[f"vllm:spec_decode_num_{name}"] for name in ("drafts", "accepted_tokens")
    )
    per_pos = metrics["vllm:spec_decode_num_accepted_tokens_per_pos"]
    assert isinstance(drafts, Counter) and isinstance(accepted, Counter)
    assert isinstance(per_pos, Vector) and len(per_pos.values) == 3
    assert sum(per_pos.values) == accepted.value > 0
    total = sum(output.metrics.num_accepted_tokens for output in outputs if output.metrics)
    assert 0 < total <= accepted.value
    off = SamplingParams(temperature=0, max_tokens=20, speculative=SpeculativeParams(enabled=False))
    output = drafting_llm.generate(PROMPTS[0], off, use_tqdm=False)[0]
    assert output.metrics is not None and output.metrics.num_drafts == 0


def test_faults_are_named(llm: LLM, drafting_llm: LLM) -> None:
    with pytest.raises(ValueError, match="start it with speculative_config"):
        params = SamplingParams(speculative=SpeculativeParams(enabled=True))
        llm.generate(PROMPTS[0], params, use_tqdm=False)
    with pytest.raises(ValueError, match="'mtp' is not a drafter of this engine"):
        params = SamplingParams(speculative=SpeculativeParams(method="mtp"))
        drafting_llm.generate(PROMPTS[0], params, use_tqdm=False)
    with pytest.raises(ValueError, match="'num_speculative_tokens' must be at least 1|is 0"):
        LLM(speculative_config={**NGRAM, "num_speculative_tokens": 0}, **SMALL)
    with pytest.raises(ValueError, match="did you mean 'prompt_lookup_max'"):
        LLM(speculative_config={**NGRAM, "prompt_lookup_maxx": 3}, **SMALL)
