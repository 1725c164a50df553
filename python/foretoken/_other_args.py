"""vLLM's engine arguments that this engine does not act on."""

from __future__ import annotations

from typing import Any

_NO_CONTEXT_RANKS = "rows of prompts are not divided among ranks; leave it out, or use 1"
_ONE_BY_ONE = "positions go to ranks one by one; leave it out, or use 1"
_THREADS = "ranks are threads of this process; leave it out"
_NO_IMAGES = "prompts are text"
_NO_TRANSFER = "transfer of KV blocks is not built; leave it out"
_ALWAYS = "it always is so here"
_NO_PYTHON = "there are no workers in Python"
_LOGS = "the engine logs little; set FORETOKEN_LOGGING_LEVEL"

# Name: values that ask for nothing, and the sentence for all others.
NOT_BUILT: dict[str, tuple[tuple[Any, ...], str]] = {
    "prefill_context_parallel_size": ((None, 1), _NO_CONTEXT_RANKS),
    "cp_kv_cache_interleave_size": ((None, 1), _ONE_BY_ONE),
    "dcp_kv_cache_interleave_size": ((None, 1), _ONE_BY_ONE),
    "cpu_offload_gb": ((None, 0), "weights stay on the device; leave it out"),
    "kv_offloading_size": ((None, 0), "offloading is not built; leave it out"),
    "lora_modules": ((None,), "give lora_request=LoRARequest(...) with the prompts instead"),
    "fully_sharded_loras": ((None, False, True), "adapters are cut as the model's matrices are"),
    "tokenizer_revision": ((None,), "the tokenizer is the model's own; leave it out"),
    "tokenizer_mode": (
        (None, "auto", "hf", "slow", "fast"),
        "only tokenizer.json is read; use auto",
    ),
    "config_format": ((None, "auto", "hf"), "only config.json is read; use auto"),
    "rope_scaling": ((None, {}), "give it inside hf_overrides"),
    "rope_theta": ((None,), "give it inside hf_overrides"),
    "disable_sliding_window": ((None, False), "windows are part of the model; leave it out"),
    "kv_transfer_config": ((None,), _NO_TRANSFER),
    "ec_transfer_config": ((None,), _NO_TRANSFER),
    "kv_events_config": ((None,), _NO_TRANSFER),
    "enable_prompt_embeds": ((None, False), "prompts are text or token ids; leave it out"),
    "logits_processors": (
        (None,),
        "give callables to SamplingParams(logits_processors=...) instead",
    ),
    "enable_sleep_mode": ((None, False), "sleeping is not built; leave it out"),
    "enable_dbo": ((None, False), "dual batch overlap is not built; leave it out"),
    "convert": ((None, "auto", "none", "embed"), "only embeddings are built; use embed"),
    "scheduler_cls": ((None,), _NO_PYTHON),
    "worker_cls": ((None, "auto"), _NO_PYTHON),
    "model_impl": ((None, "auto", "vllm"), "models are built in; use auto"),
    "hf_token": ((None, True), "set the environment variable HF_TOKEN instead"),
    "hf_config_path": ((None,), "config.json lies with the model; leave it out"),
    "prefix_caching_hash_algo": (
        (None, "builtin", "sha256", "sha256_cbor", "xxhash", "xxhash_cbor"),
        "blocks are compared by their ids",
    ),
    "logprobs_mode": ((None, "raw_logprobs"), "log-probabilities are raw; use raw_logprobs"),
}

# Name: values that ask for nothing, and why the others have no effect.
WITHOUT_EFFECT: dict[str, tuple[tuple[Any, ...], str]] = {
    "trust_remote_code": ((None, False), "code of a model repository is never run"),
    "code_revision": ((None,), "code of a model repository is never run"),
    "swap_space": ((None, 0, 4), "preempted sequences are computed again"),
    "enable_chunked_prefill": ((None, True), "long prompts are always computed in chunks"),
    "max_num_partial_prefills": ((None, 1), "any number of prompts may be in chunks"),
    "max_long_partial_prefills": ((None, 1), "any number of prompts may be in chunks"),
    "long_prefill_token_threshold": ((None, 0), "chunks follow max_num_batched_tokens"),
    "disable_chunked_mm_input": ((None, False), _NO_IMAGES),
    "disable_hybrid_kv_cache_manager": ((None, False), _ALWAYS),
    "max_seq_len_to_capture": ((None, 8192), "graphs do not depend on lengths"),
    "disable_async_output_proc": ((None, False), _ALWAYS),
    "use_v2_block_manager": ((None, True), _ALWAYS),
    "num_lookahead_slots": ((None, 0), "drafts reserve their own positions"),
    "max_parallel_loading_workers": ((None,), "weights are read by one stream"),
    "model_loader_extra_config": ((None, {}), "weights are read by one stream"),
    "ignore_patterns": ((None,), "only wanted files are fetched"),
    "use_tqdm_on_load": ((None, True, False), "nothing is printed while loading"),
    "safetensors_load_strategy": ((None, "lazy"), "weights are read by one stream"),
    "distributed_executor_backend": ((None, "uni"), _THREADS),
    "data_parallel_backend": ((None, "mp"), _THREADS),
    "worker_extension_cls": ((None, ""), _NO_PYTHON),
    "additional_config": ((None, {}), "nothing reads it"),
    "allowed_local_media_path": ((None, ""), _NO_IMAGES),
    "allowed_media_domains": ((None,), _NO_IMAGES),
    "limit_mm_per_prompt": ((None, {}), _NO_IMAGES),
    "mm_processor_kwargs": ((None, {}), _NO_IMAGES),
    "mm_processor_cache_gb": ((None, 4, 0), _NO_IMAGES),
    "disable_mm_preprocessor_cache": ((None, False), _NO_IMAGES),
    "skip_mm_profiling": ((None, False), _NO_IMAGES),
    "structured_outputs_config": ((None,), "one grammar library serves all forms"),
    "guided_decoding_backend": ((None, "auto"), "one grammar library serves all forms"),
    "reasoning_parser": ((None, ""), "offline outputs are the model's text as it is"),
    "attention_config": ((None,), "give attention_backend"),
    "kv_cache_metrics": ((None, False), _LOGS),
    "show_hidden_metrics_for_version": ((None,), _LOGS),
    "otlp_traces_endpoint": ((None,), _LOGS),
    "collect_detailed_traces": ((None,), _LOGS),
    "disable_log_requests": ((None, True), _LOGS),
    "enable_log_requests": ((None, False), _LOGS),
    "enable_mfu_metrics": ((None, False), _LOGS),
    "disable_cascade_attn": ((None, False, True), _ALWAYS),
    "optimization_level": ((None, 0, 1, 2, 3), "there is no compiler here"),
    "calculate_kv_scales": ((None, False), "scales of the cache are those of the checkpoint, or 1"),
    "stream_interval": ((None, 1), "every step may give an output"),
}
