"""LLM.generate: prompts, parameters, outputs."""

from __future__ import annotations

import math
import threading

import pytest
from conftest import PROMPTS, SMALL

from foretoken import LLM, RequestOutput, SamplingParams, TextPrompt, TokensPrompt
from foretoken.metrics import Counter


def ids(outputs: list[RequestOutput]) -> list[list[list[int]]]:
    return [[choice.token_ids for choice in output.outputs] for output in outputs]


def num_finished(llm: LLM) -> int:
    (metric,) = (m for m in llm.get_metrics() if m.name == "vllm:request_success")
    assert isinstance(metric, Counter)
    return metric.value


def test_outputs_follow_prompts(llm: LLM) -> None:
    outputs = llm.generate(PROMPTS, SamplingParams(temperature=0, max_tokens=12), use_tqdm=False)
    assert [output.prompt for output in outputs] == PROMPTS
    tokenizer = llm.get_tokenizer()
    for output in outputs:
        choice = output.outputs[0]
        assert output.finished and choice.finished()
        assert output.prompt_token_ids == tokenizer.encode(output.prompt or "")
        assert choice.finish_reason in ("stop", "length")
        assert 1 <= len(choice.token_ids) <= 12
        assert choice.text == tokenizer.decode(choice.token_ids, skip_special_tokens=True)
        assert output.metrics is not None
        assert output.metrics.num_generation_tokens == len(choice.token_ids)
        assert 0 < output.metrics.first_token_latency <= output.metrics.last_token_latency


def test_forms_of_a_prompt_are_equal(llm: LLM) -> None:
    text = PROMPTS[0]
    tokens = llm.get_tokenizer().encode(text)
    params = SamplingParams(temperature=0, max_tokens=8)
    wanted = ids(llm.generate(text, params, use_tqdm=False))
    forms = [
        [text],
        TextPrompt(prompt=text),
        TokensPrompt(prompt_token_ids=tokens),
        [{"prompt_token_ids": tokens}],
        tokens,
        [tokens],
    ]
    for form in forms:
        assert ids(llm.generate(form, params, use_tqdm=False)) == wanted
    by_keyword = llm.generate(prompt_token_ids=[tokens], sampling_params=params, use_tqdm=False)
    assert ids(by_keyword) == wanted
    assert by_keyword[0].prompt is None and by_keyword[0].prompt_token_ids == tokens


def test_parameters_of_each_prompt(llm: LLM) -> None:
    params = [SamplingParams(temperature=0, max_tokens=n, ignore_eos=True) for n in (1, 5, 9)]
    outputs = llm.generate(PROMPTS[:3], params, use_tqdm=False, priority=[2, 1, 0])
    assert [len(output.outputs[0].token_ids) for output in outputs] == [1, 5, 9]
    assert all(output.outputs[0].finish_reason == "length" for output in outputs)
    with pytest.raises(ValueError, match="3 prompts need as many parameters, not 2"):
        llm.generate(PROMPTS[:3], params[:2])
    with pytest.raises(ValueError, match="as many priorities"):
        llm.generate(PROMPTS[:3], params, priority=[1])


def test_choices_and_seeds(llm: LLM) -> None:
    params = SamplingParams(n=3, temperature=0.9, seed=7, max_tokens=10, ignore_eos=True)
    first, second = (llm.generate(PROMPTS[:2], params, use_tqdm=False) for _ in range(2))
    assert ids(first) == ids(second)
    assert [choice.index for choice in first[0].outputs] == [0, 1, 2]
    assert len({tuple(choice.token_ids) for choice in first[0].outputs}) > 1
    other = SamplingParams(n=3, temperature=0.9, seed=8, max_tokens=10, ignore_eos=True)
    assert ids(llm.generate(PROMPTS[:2], other, use_tqdm=False)) != ids(first)


def test_max_tokens_none_fills_the_context(llm: LLM) -> None:
    params = SamplingParams(temperature=0, max_tokens=None, ignore_eos=True)
    output = llm.generate(PROMPTS[0], params, use_tqdm=False)[0]
    assert len(output.prompt_token_ids) + len(output.outputs[0].token_ids) == 512


def test_stops(llm: LLM) -> None:
    free = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)
    choice = llm.generate(PROMPTS[0], free, use_tqdm=False)[0].outputs[0]
    word = choice.text.split()[2]
    stopped = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True, stop=word)
    ended = llm.generate(PROMPTS[0], stopped, use_tqdm=False)[0].outputs[0]
    assert (ended.finish_reason, ended.stop_reason) == ("stop", word)
    assert ended.text == choice.text[: choice.text.index(word)]
    token = choice.token_ids[4]
    by_id = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True, stop_token_ids=[token])
    ended = llm.generate(PROMPTS[0], by_id, use_tqdm=False)[0].outputs[0]
    assert (ended.finish_reason, ended.stop_reason) == ("stop", token)
    assert ended.token_ids == choice.token_ids[: choice.token_ids.index(token) + 1]


def test_logprobs(llm: LLM) -> None:
    params = SamplingParams(temperature=0, max_tokens=6, logprobs=3, prompt_logprobs=2)
    output = llm.generate(PROMPTS[0], params, use_tqdm=False)[0]
    choice = output.outputs[0]
    assert choice.logprobs is not None and len(choice.logprobs) == len(choice.token_ids)
    total = 0.0
    for token, row in zip(choice.token_ids, choice.logprobs):
        assert next(iter(row)) == token and row[token].rank == 1 and len(row) == 3
        assert sum(math.exp(entry.logprob) for entry in row.values()) <= 1 + 1e-5
        total += row[token].logprob
    assert choice.cumulative_logprob == pytest.approx(total)
    assert output.prompt_logprobs is not None
    assert len(output.prompt_logprobs) == len(output.prompt_token_ids)
    assert output.prompt_logprobs[0] is None
    for token, entries in zip(output.prompt_token_ids[1:], output.prompt_logprobs[1:]):
        assert entries is not None and next(iter(entries)) == token and 2 <= len(entries) <= 3
        assert isinstance(entries[token].decoded_token, str)


def test_default_parameters_are_the_models() -> None:
    wanted = {"temperature": 0.0, "top_k": 7, "max_new_tokens": 3}
    made = LLM(override_generation_config=wanted, **SMALL)
    params = made.get_default_sampling_params()
    assert (params.temperature, params.top_k, params.max_tokens) == (0.0, 7, 3)
    params.max_tokens = 4
    output = made.generate(PROMPTS[0], params, use_tqdm=False)[0]
    assert len(output.outputs[0].token_ids) == 4
    assert len(made.generate(PROMPTS[0], use_tqdm=False)[0].outputs[0].token_ids) == 3


def test_a_fault_ends_the_call_alone(llm: LLM) -> None:
    with pytest.raises(ValueError, match="the prompt is empty"):
        llm.generate([PROMPTS[0], ""], use_tqdm=False)  # the first is queued and aborted
    params = SamplingParams(max_tokens=1)
    llm.generate(PROMPTS[0], params, use_tqdm=False)
    finished = num_finished(llm)
    with pytest.raises(ValueError, match="prompt token id 9999999"):
        llm.generate({"prompt_token_ids": [9999999]}, use_tqdm=False)
    with pytest.raises(ValueError, match="maximum context length is 512"):
        llm.generate({"prompt_token_ids": [5] * 600}, use_tqdm=False)
    with pytest.raises(TypeError, match="prompts must be text"):
        llm.generate(7)
    with pytest.raises(TypeError, match="must hold integers"):
        llm.generate({"prompt_token_ids": [1, "a"]})
    with pytest.raises(NotImplementedError, match="multi_modal_data"):
        llm.generate({"prompt": "a", "multi_modal_data": {"image": 1}})
    assert llm.generate(PROMPTS[0], params, use_tqdm=False)[0].finished
    assert num_finished(llm) == finished + 1


def test_truncation(llm: LLM) -> None:
    tokens = llm.get_tokenizer().encode(" ".join(PROMPTS))
    params = SamplingParams(temperature=0, max_tokens=4, truncate_prompt_tokens=6)
    output = llm.generate({"prompt_token_ids": tokens}, params, use_tqdm=False)[0]
    assert output.prompt_token_ids == tokens[-6:]
    plain = SamplingParams(temperature=0, max_tokens=4)
    assert ids([output]) == ids(llm.generate(tokens[-6:], plain, use_tqdm=False))


def test_prefix_cache_is_told(llm: LLM) -> None:
    prompt = {"prompt_token_ids": list(range(100, 180)), "cache_salt": "told"}
    params = SamplingParams(temperature=0, max_tokens=2)
    first, second = (llm.generate(prompt, params, use_tqdm=False)[0] for _ in range(2))
    assert first.num_cached_tokens == 0 and second.num_cached_tokens == 64
    salted = {**prompt, "cache_salt": "other"}
    assert llm.generate(salted, params, use_tqdm=False)[0].num_cached_tokens == 0


def test_progress_bar(llm: LLM) -> None:
    class Bar:
        made: list["Bar"] = []

        def __init__(self, total: int, **_: object) -> None:
            self.total, self.count, self.closed = total, 0, False
            self.made.append(self)

        def set_postfix_str(self, text: str, refresh: bool) -> None:
            assert "output:" in text

        def update(self, count: int) -> None:
            self.count += count

        def close(self) -> None:
            self.closed = True

    llm.generate(PROMPTS, SamplingParams(max_tokens=2), use_tqdm=Bar)
    (bar,) = Bar.made
    assert (bar.total, bar.count, bar.closed) == (len(PROMPTS), len(PROMPTS), True)


def test_threads_share_an_engine(llm: LLM) -> None:
    params = SamplingParams(temperature=0, max_tokens=8)
    wanted = ids(llm.generate(PROMPTS, params, use_tqdm=False))
    found: list[object] = []

    def work() -> None:
        found.append(ids(llm.generate(PROMPTS, params, use_tqdm=False)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4
