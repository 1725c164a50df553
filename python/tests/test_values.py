"""Values as callers have them: arrays, sets, halves of characters, and what cannot be sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import PROMPTS, SMALL

from foretoken import (
    LLM,
    AsyncLLM,
    EngineArgs,
    LLMEngine,
    SamplingParams,
    StructuredOutputsParams,
)
from foretoken.metrics import Counter

numpy = pytest.importorskip("numpy")
GREEDY = SamplingParams(temperature=0, max_tokens=6)
USER = [{"role": "user", "content": "Hi"}]


def texts(llm: LLM, prompts: object, params: SamplingParams) -> list[str]:
    return [output.outputs[0].text for output in llm.generate(prompts, params, use_tqdm=False)]


def test_numbers_and_sets_are_sent_as_plain_ones(llm: LLM) -> None:
    forms: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"temperature": numpy.float32(0), "max_tokens": numpy.int64(6)}, {}),
        ({"stop_token_ids": {443}}, {"stop_token_ids": [443]}),
        ({"allowed_token_ids": range(500)}, {"allowed_token_ids": list(range(500))}),
        ({"logit_bias": {numpy.int64(443): numpy.float32(100)}}, {"logit_bias": {443: 100}}),
        ({"logit_bias": {443: float("inf")}}, {"logit_bias": {443: 100}}),
        ({"structured_outputs": {"regex": "[0-9]{3}"}},
         {"structured_outputs": StructuredOutputsParams(regex="[0-9]{3}")}),
    ]
    for given, meant in forms:
        plain = SamplingParams(**{"temperature": 0, "max_tokens": 6, **meant})
        sent = SamplingParams(**{"temperature": 0, "max_tokens": 6, **given})
        assert texts(llm, PROMPTS[0], sent) == texts(llm, PROMPTS[0], plain), given


def test_arrays_are_lists(llm: LLM) -> None:
    ids = llm.get_tokenizer().encode(PROMPTS[0])
    wanted = texts(llm, [ids], GREEDY)
    for form in (numpy.array(ids), [numpy.array(ids)], numpy.array([ids]), numpy.array(PROMPTS[:1]),
                 {"prompt_token_ids": numpy.array(ids)}):
        assert texts(llm, form, GREEDY) == wanted, form
    assert llm.get_tokenizer().decode(numpy.array(ids)) == PROMPTS[0]


def test_arrays_of_sampling_params_are_lists(llm: LLM) -> None:
    for ids in ([443, 5], [443]):
        params = SamplingParams(stop_token_ids=numpy.array(ids), allowed_token_ids=numpy.array(ids))
        assert params.stop_token_ids == ids and params.allowed_token_ids == ids
    assert SamplingParams(bad_words=numpy.array(["a"])).bad_words == ["a"]
    first = llm.generate(PROMPTS[0], GREEDY, use_tqdm=False)[0].outputs[0].token_ids[0]
    stopped = SamplingParams(temperature=0, stop_token_ids=numpy.array([first]))
    (output,) = llm.generate(PROMPTS[0], stopped, use_tqdm=False)
    assert output.outputs[0].stop_reason == first


def test_stop_texts_are_whole(llm: LLM) -> None:
    assert SamplingParams(stop="a\ud83d").stop == ["a\ufffd"]
    only = SamplingParams(temperature=0, max_tokens=6, stop=numpy.array([" "]))
    assert only.stop == [" "]
    (output,) = llm.generate(PROMPTS[0], only, use_tqdm=False)
    assert output.outputs[0].stop_reason == " "
    whole = llm.get_tokenizer().encode("\ufffd", add_special_tokens=False)
    half = SamplingParams(max_tokens=9, stop="\ud83d", allowed_token_ids=whole, ignore_eos=True)
    (output,) = llm.generate(PROMPTS[0], half, use_tqdm=False)
    assert output.outputs[0].stop_reason in (None, "\ufffd")


def test_halves_of_characters_are_replaced(llm: LLM) -> None:
    assert texts(llm, "a\ud83d", GREEDY) == texts(llm, "a\ufffd", GREEDY)
    assert texts(llm, "a\ud83d\ude00", GREEDY) == texts(llm, "a\U0001f600", GREEDY)
    tokenizer = llm.get_tokenizer()
    assert tokenizer.encode("a\udc00") == tokenizer.encode("a\ufffd")
    cut = [{"role": "user", "content": "a\ud83d"}]
    assert tokenizer.apply_chat_template(cut, tokenize=False) == (
        tokenizer.apply_chat_template([{"role": "user", "content": "a\ufffd"}], tokenize=False))
    llm.chat(cut, SamplingParams(max_tokens=1, stop="\ud83d"), use_tqdm=False)


def test_what_cannot_be_sent_is_named(llm: LLM) -> None:
    for fields, message in (({"top_p": float("inf")}, "top_p is inf"),
                            ({"logit_bias": {5: float("nan")}}, "token 5 is nan")):
        with pytest.raises(ValueError, match=message):
            SamplingParams(**fields)
    with pytest.raises(ValueError, match="prompt token id 1267650600228229401496703205376"):
        llm.generate([[2**100]], GREEDY)
    for arguments, kind in (
        ({"chat_template_content_format": "xml"}, ValueError),
        ({"tokenization_kwargs": {"padding": True}}, NotImplementedError),
        ({"mm_processor_kwargs": {"crops": 4}}, NotImplementedError),
    ):
        with pytest.raises(kind, match=next(iter(arguments))):
            llm.chat(USER, GREEDY, **arguments)
    with pytest.raises(ValueError, match="a list of at least one message"):
        llm.chat("Hi", GREEDY)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="return_tensors"):
        llm.get_tokenizer().apply_chat_template(USER, return_tensors="pt")


def test_prompts_are_cut(llm: LLM) -> None:
    cut = {"truncate_prompt_tokens": 2}
    (output,) = llm.generate("The little dog", GREEDY, use_tqdm=False, tokenization_kwargs=cut)
    assert len(output.prompt_token_ids) == 2
    (pooled,) = llm.embed("The little dog", use_tqdm=False, tokenization_kwargs=cut)
    assert len(pooled.prompt_token_ids) == 2
    (pair,) = llm.score("The little dog", "A cat", use_tqdm=False, truncate_prompt_tokens=1)
    assert len(pair.prompt_token_ids) == 2


def test_schemas_of_classes(llm: LLM) -> None:
    class Answer:
        @staticmethod
        def model_json_schema() -> dict[str, Any]:
            return {"enum": ["yes"]}

    form: Any = StructuredOutputsParams.from_optional(json=Answer, regex=None, backend="auto")
    params = SamplingParams(max_tokens=20, structured_outputs=form)
    assert texts(llm, PROMPTS[0], params) == ['"yes"']


def test_messages_of_other_packages(llm: LLM) -> None:
    class Message:
        def model_dump(self, exclude_none: bool) -> dict[str, Any]:
            assert exclude_none
            return {"role": "user", "content": "Hi"}

    wanted = llm.chat(USER, GREEDY, use_tqdm=False)[0].outputs[0].text
    messages: Any = [Message()]
    for form in (messages, [messages], (messages,)):
        (output,) = llm.chat(form, GREEDY, use_tqdm=False)
        assert output.outputs[0].text == wanted


def test_requests_of_engines_are_cut_and_traced() -> None:
    cut = {"truncate_prompt_tokens": 2}
    engine = AsyncLLM(**SMALL)

    async def run() -> None:
        outputs = engine.generate(
            "The little dog", GREEDY, tokenization_kwargs=cut, trace_headers={"traceparent": "x"}
        )
        async for output in outputs:
            assert len(output.prompt_token_ids) == 2
        async for pooled in engine.encode("The little dog", tokenization_kwargs=cut):
            assert len(pooled.prompt_token_ids) == 2
        with pytest.raises(ValueError, match="data_parallel_rank 1 is out of range"):
            await engine.generate("a", GREEDY, data_parallel_rank=1).__anext__()
        async for output in engine.generate("a", GREEDY, data_parallel_rank=0):
            assert output.prompt == "a"
        assert not await engine.is_sleeping() and not await engine.is_paused()

    asyncio.run(run())
    engine.shutdown()
    stepped = LLMEngine.from_engine_args(EngineArgs(**SMALL))
    stepped.add_request("one", "The little dog", GREEDY, tokenization_kwargs=cut)
    outputs: list[Any] = []
    while stepped.has_unfinished_requests():
        outputs += stepped.step()
    assert len(outputs[-1].prompt_token_ids) == 2
    stepped.shutdown()


def test_stop_ids_that_spell_a_stop_text(llm: LLM) -> None:
    params = SamplingParams(temperature=0, max_tokens=9, stop="443", stop_token_ids=[443])
    (output,) = llm.generate("Once upon a time", params, use_tqdm=False)
    assert output.outputs[0].token_ids[-1] == 443 and output.outputs[0].stop_reason == 443


def test_requests_that_fail_are_warned_of(llm: LLM) -> None:
    broken = SamplingParams(max_tokens=3, structured_outputs=StructuredOutputsParams(regex="["))
    with pytest.warns(RuntimeWarning, match="1 of 2 requests failed"):
        outputs = llm.generate(PROMPTS[:2], [broken, GREEDY], use_tqdm=False)
    assert [output.outputs[0].finish_reason == "error" for output in outputs] == [True, False]


def test_the_prefix_cache_is_left_behind(llm: LLM) -> None:
    def num_cached() -> int:
        (metric,) = (m for m in llm.get_metrics() if m.name == "vllm:prefix_cache_hits")
        assert isinstance(metric, Counter)
        return metric.value

    prompt = "The dog sat on the mat and looked at the cat. " * 8
    texts(llm, prompt, GREEDY)
    before = num_cached()
    wanted = texts(llm, prompt, GREEDY)
    assert num_cached() > before
    before = num_cached()
    assert llm.reset_prefix_cache()
    assert texts(llm, prompt, GREEDY) == wanted and num_cached() == before
