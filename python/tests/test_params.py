"""Fields of SamplingParams and arguments of engines: what they do, and their faults."""

from __future__ import annotations

import argparse
import copy
import pickle
from typing import Any

import pytest
from conftest import PROMPTS, SMALL

from foretoken import LLM, EngineArgs, SamplingParams, StructuredOutputsParams
from foretoken.utils import FlexibleArgumentParser


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": -1}, "temperature is -1"),
        ({"temperature": float("nan")}, "temperature|NaN"),
        ({"top_p": 0}, "top_p is 0"),
        ({"top_k": -2}, "top_k is -2"),
        ({"min_p": 1.5}, "min_p is 1.5"),
        ({"presence_penalty": 3}, "presence_penalty is 3"),
        ({"n": 0}, "n is 0"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"min_tokens": 9, "max_tokens": 3}, "min_tokens is 9"),
        ({"stop": [""]}, "an empty text, which ends nothing"),
        ({"stop": ["a"], "detokenize": False}, "stop strings need text"),
        ({"logit_bias": {-5: 1.0}}, "logit_bias"),
        ({"allowed_token_ids": []}, "allowed_token_ids must not be empty"),
        ({"seed": "five"}, "seed"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"bad_words": [""]}, "bad_words"),
        ({"logprobs": -2}, "logprobs is -2"),
        ({"logits_processors": [3]}, "must be callables"),
        ({"stop": object()}, "cannot hold"),
    ],
)
def test_faults_of_sampling_params(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SamplingParams(**fields)


def test_what_is_not_built_is_said() -> None:
    for fields in ({"best_of": 2}, {"use_beam_search": True}, {"flat_logprobs": True}):
        with pytest.raises(NotImplementedError, match=next(iter(fields))):
            SamplingParams(**fields)
    with pytest.raises(TypeError):
        SamplingParams(temprature=1)  # type: ignore[call-arg]


def test_copies() -> None:
    params = SamplingParams(stop="x", logit_bias={3: 1.5}, seed=4)
    for twin in (params.clone(), copy.deepcopy(params), pickle.loads(pickle.dumps(params))):
        assert twin == params and twin.stop is not params.stop
    assert SamplingParams.from_optional(top_p=None, top_k=5) == SamplingParams(top_k=5)


def test_bias_words_and_ids(llm: LLM) -> None:
    def answer(**fields: Any) -> list[int]:
        params = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True, **fields)
        return llm.generate(PROMPTS[0], params, use_tqdm=False)[0].outputs[0].token_ids

    free = answer()
    # As in vLLM, what is more than 100 is 100.
    assert answer(logit_bias={77: 200.0}) == answer(logit_bias={77: 100.0}) == [77] * 8
    assert set(answer(allowed_token_ids=[40, 41])) <= {40, 41}
    tokenizer = llm.get_tokenizer()
    for token in free:
        word = tokenizer.decode(token).strip()
        assert not word or token not in answer(bad_words=[word])
    shaped = answer(presence_penalty=1.5, frequency_penalty=1.0)
    assert len(set(shaped)) >= len(set(free))


def test_structured_outputs(llm: LLM) -> None:
    with pytest.raises(ValueError, match="none is given"):
        StructuredOutputsParams()
    with pytest.raises(ValueError, match="regex and choice"):
        StructuredOutputsParams(regex="a", choice=["b"])
    form = StructuredOutputsParams(choice=["Positive", "Negative"])
    params = SamplingParams(temperature=0, max_tokens=16, structured_outputs=form)
    assert SamplingParams(max_tokens=16, temperature=0, guided_decoding=form) == params
    try:
        output = llm.generate(PROMPTS[0], params, use_tqdm=False)[0]
    except NotImplementedError as error:
        pytest.skip(f"the engine has no grammars: {error}")
    assert output.outputs[0].text in ("Positive", "Negative")
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    form = StructuredOutputsParams(json=schema, disable_any_whitespace=True)
    params = SamplingParams(temperature=0, max_tokens=32, structured_outputs=form)
    text = llm.generate(PROMPTS[0], params, use_tqdm=False)[0].outputs[0].text
    assert text.startswith('{"a":')


def test_unknown_and_unbuilt_arguments() -> None:
    with pytest.raises(TypeError, match="did you mean 'max_model_len'"):
        LLM(max_model_length=100)
    with pytest.raises(NotImplementedError, match="prefill_context_parallel_size=2.*divided"):
        LLM(prefill_context_parallel_size=2)
    with pytest.raises(ValueError, match="decode_context_parallel_size 2 does not divide"):
        LLM(decode_context_parallel_size=2)
    with pytest.raises(ValueError, match="tensor_parallel_size is 0"):
        LLM(tensor_parallel_size=0)
    with pytest.raises(ValueError, match="quantization awq: .* are not quantised"):
        LLM(quantization="awq")
    with pytest.raises(NotImplementedError, match="tokenizer"):
        LLM(tokenizer="somewhere/else")
    with pytest.raises(ValueError, match="number such as 4096"):
        LLM(max_model_len="long")
    with pytest.raises(ValueError, match="max_num_seqs"):
        LLM(max_num_seqs="many")
    with pytest.raises(ValueError, match="'/no/such/folder' is neither a folder"):
        LLM("/no/such/folder")
    with pytest.warns(UserWarning, match="swap_space=9 has no effect"):
        EngineArgs.from_kwargs(swap_space=9)
    with pytest.raises(NotImplementedError, match="KV blocks are not moved between servers"):
        LLM(kv_transfer_config={"kv_connector": "NixlConnector", "kv_role": "kv_both"})
    offload = {"kv_connector": "OffloadingConnector"}
    assert EngineArgs(kv_transfer_config=offload).core_fields()["kv_transfer_config"] == offload
    with pytest.raises(NotImplementedError, match="worker_extension_cls.*cannot be replaced"):
        EngineArgs.from_kwargs(worker_extension_cls="package.Worker")
    with pytest.raises(ValueError, match="'cudagraph_mod' is unknown"):
        EngineArgs(compilation_config={"cudagraph_mod": "FULL"}).core_fields()


def test_arguments_that_ask_for_nothing() -> None:
    given = {"tensor_parallel_size": 1, "swap_space": 4, "trust_remote_code": False}
    assert EngineArgs.from_kwargs(**given).core_fields() == EngineArgs().core_fields()


def test_arguments_reach_the_engine() -> None:
    args = EngineArgs(
        max_model_len="1k",
        hf_overrides={"rope_theta": 5000.0},
        async_scheduling=False,
        compilation_config={"cudagraph_mode": "NONE"},
        dtype="float",
    )
    fields = args.core_fields()
    assert fields["max_model_len"] == 1000 and fields["steps_in_flight"] == 1
    assert fields["hf_overrides"] == '{"rope_theta": 5000.0}'
    assert fields["cudagraph_mode"] == "NONE" and fields["dtype"] == "float32"
    other = EngineArgs(long_prefill_token_threshold=5, enable_layerwise_nvtx_tracing=True)
    assert other.core_fields()["long_prefill_token_threshold"] == 5
    small = LLM(dtype="float32", **{**SMALL, "max_model_len": 64})
    config = small.llm_engine.model_config
    assert (config.max_model_len, config.dtype) == (64, "float32")
    with pytest.raises(ValueError, match="priority is 1.*scheduling_policy priority"):
        small.generate(PROMPTS[0], priority=[1], use_tqdm=False)


def test_command_line() -> None:
    parser = FlexibleArgumentParser()
    group = parser.add_argument_group("Engine arguments")
    EngineArgs.add_cli_args(group)
    line = ["--max_model_len", "64", "--no-enable-prefix-caching", "--hf-overrides", '{"a": 1}']
    args = parser.parse_args(line)
    assert isinstance(args, argparse.Namespace)
    made = EngineArgs.from_cli_args(args)
    assert (made.max_model_len, made.enable_prefix_caching) == (64, False)
    assert made.hf_overrides == {"a": 1}
    assert EngineArgs.from_kwargs(**vars(args)) == made


def test_no_tokenizer() -> None:
    bare = LLM(skip_tokenizer_init=True, **SMALL)
    output = bare.generate({"prompt_token_ids": [5, 6, 7]}, SamplingParams(), use_tqdm=False)[0]
    assert output.outputs[0].text == "" and output.outputs[0].token_ids
    with pytest.raises(NotImplementedError, match="tokenizer"):
        bare.generate("text", use_tqdm=False)
    with pytest.raises(NotImplementedError, match="no tokenizer .*skip_tokenizer_init"):
        bare.get_tokenizer()
