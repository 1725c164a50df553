"""The engine's own fields. tools/write_fields writes this file: do not edit it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class EngineFields:
    """What the engine is configured by; None takes its own default."""

    # Folder with config.json, *.safetensors and tokenizer.json, a GGUF file, or Hub id
    # org/name[@revision] (default: the bundled model)
    model: str = ""

    # Branch, tag or commit of a Hub id (default: main)
    revision: str | None = None

    # Cache folder of Hub files (default: as HF_HUB_CACHE or HF_HOME say)
    download_dir: str | None = None

    # cpu or cuda (default: cpu; of the Python package what FORETOKEN_DEVICE says)
    device: str | None = None

    # Threads of the CPU device (default: one a physical core)
    cpu_threads: int | None = None

    # auto, float32 or bfloat16; float16 and half are as auto
    dtype: Any = "auto"

    # fp8: round the matrices of layers to FP8 (E4M3, a scale for each output) while they are
    # loaded; or the method by which the files are quantised already (default: as the files are)
    quantization: str | None = None

    # dynamic: round what FP8 matrices of layers are multiplied with to FP8, too, with a scale
    # for each 128 columns of a row (W8A8); static: with the scales that the checkpoint was
    # calibrated with (input_scale); none: products take it as it is
    activation_scheme: str = "none"

    # auto, safetensors, gguf, dummy (random weights, config.json only), or dummy-TYPE:
    # quantised by a type of foretoken convert, as dummy-q4_k_m
    load_format: str = "auto"

    # JSON object laid over config.json (default: nothing)
    hf_overrides: Mapping[str, Any] | None = None

    # Sampling defaults: auto (the model's), vllm (none) or a folder with a
    # generation_config.json
    generation_config: str = "auto"

    # JSON object laid over it: {"temperature": 0.5} (default: nothing)
    override_generation_config: Mapping[str, Any] | None = None

    # File of a chat template, or the template itself (default: the model's)
    chat_template: str | None = None

    # Load no tokenizer: prompts and outputs are token ids
    skip_tokenizer_init: bool = False

    # Attention kernels, as foretoken inspect lists them (default: the first that fits and is as
    # batch_invariant says)
    attention_backend: str | None = None

    # auto, on: the same bits in every batch; off: prompts may take kernels of libraries, where
    # the build and the GPU have them. auto is on unless attention_backend names other kernels
    batch_invariant: str = "auto"

    # Seed of requests that have none
    seed: int = 0

    # Most tokens of prompt and output together: 4096, 32k, 1M, or auto for what memory allows
    # (default: as the model allows)
    max_model_len: int | str | None = None

    # Most sequences in a step; others wait (default: 64 on a CPU, 256 on CUDA)
    max_num_seqs: int | None = None

    # Most tokens in a step; longer prompts are computed in chunks (default: 512 on a CPU, 8192
    # on GPUs of 64 GiB and more, 2048 on others)
    max_num_batched_tokens: int | None = None

    # Most tokens of a prompt in a step that others share; 0: any (default: by device: a wave of
    # its products, or the time of the rest of the step)
    long_prefill_token_threshold: int | None = None

    # Most milliseconds between two tokens of a sequence: prompts beside it are cut to fit
    # (default: no bound)
    max_inter_token_latency_ms: int | None = None

    # fcfs (first come, first served) or priority
    scheduling_policy: str = "fcfs"

    # Most alternatives a token that a request may ask for, up to 1024; -1: all, 0: no logprobs
    max_logprobs: int = 20

    # Rows of logits that pass logits processors at once; 0: none can
    max_processor_rows: int = 32

    # Tokens of a KV block, whole ones of which prefixes share
    block_size: int = 16

    # Type of the KV cache: auto (what the checkpoint asks for, else the model's), or half the
    # memory of bfloat16: fp8 (e4m3, with the checkpoint's scales) or int8
    kv_cache_dtype: str = "auto"

    # Number of KV blocks (default: what memory allows)
    num_gpu_blocks_override: int | None = None

    # Memory of the KV cache (default: what gpu_memory_utilization leaves; on a CPU half of the
    # free memory times that, at most 4 GiB or one sequence)
    kv_cache_memory_bytes: int | None = None

    # Share of a GPU's memory for weights, scratch and KV cache; not looked at where
    # num_gpu_blocks_override or kv_cache_memory_bytes is given
    gpu_memory_utilization: float = 0.9

    # Share KV blocks of equal prefixes (default: on)
    enable_prefix_caching: bool | None = None

    # Most snapshots of recurrent layers' states, behind which such models find prefixes again;
    # 0: no prefix caching for them (default: four for each of max_num_seqs, in at most 1 GiB, 4
    # GiB on a GPU, or an eighth of the free memory)
    max_state_snapshots: int | None = None

    # GiB of host memory, of all ranks of an engine together, for KV blocks that the prefix
    # cache gives up (default: none)
    kv_offloading_size: float | None = None

    # The same, as the number of tokens whose KV blocks host memory keeps (default: as
    # kv_offloading_size says)
    kv_offloading_tokens: int | None = None

    # What keeps those blocks: native, the engine itself, which does so for lmcache, too
    kv_offloading_backend: str = "native"

    # The engine may be put to sleep (POST /sleep, LLM.sleep()): it gives back the device's
    # memory, of weights and KV cache, until it is woken
    enable_sleep_mode: bool = False

    # Steps queued ahead: 1 to 3
    steps_in_flight: int = 2

    # Give a device up that finishes no step for so long; 0: never
    step_timeout_seconds: int = 300

    # Run without recorded graphs, as cudagraph_mode NONE
    enforce_eager: bool = False

    # FULL (a step is one graph), PIECEWISE (all but attention), FULL_DECODE_ONLY or
    # FULL_AND_PIECEWISE (FULL only while no prompt is computed) or NONE
    cudagraph_mode: str = "FULL"

    # Numbers of token rows that graphs are made for; larger steps run without (default: 1, 2,
    # 4, ... max_num_batched_tokens)
    cudagraph_capture_sizes: list[int] | None = None

    # Most token rows of a graph (default: no bound)
    max_cudagraph_capture_size: int | None = None

    # Ranks that share each layer: devices, or groups of threads on the CPU (-tp)
    tensor_parallel_size: int = 1

    # Stages that an engine's layers are divided into (-pp)
    pipeline_parallel_size: int = 1

    # Tensor parallel ranks that keep the positions of a sequence in turn instead of all of them
    # each, where they would hold the same keys and values (-dcp)
    decode_context_parallel_size: int = 1

    # Engines side by side behind one balancer (-dp)
    data_parallel_size: int = 1

    # Deal the experts of a mixture out to the ranks of all engines, instead of cutting each of
    # them (-ep)
    enable_expert_parallel: bool = False

    # Dual batch overlap: the sequences of a step go through the layers in two lanes, so that
    # one computes while the other exchanges with other ranks
    enable_dbo: bool = False

    # With enable_dbo, fewest token rows of a step in two lanes where all sequences decode
    dbo_decode_token_threshold: int = 32

    # With enable_dbo, fewest token rows of a step in two lanes where a prompt is computed
    dbo_prefill_token_threshold: int = 512

    # On GPUs, exchange through NCCL even where they reach each other's memory
    disable_custom_all_reduce: bool = False

    # Requests may name adapters (LoRA) beside the model
    enable_lora: bool = False

    # Adapters that the sequences of a step may have together
    max_loras: int = 1

    # Largest rank of an adapter
    max_lora_rank: int = 16

    # Adapters that are kept in the host's memory (default: any number)
    max_cpu_loras: int | None = None

    # Type that adapters are kept in: auto, or the model's own
    lora_dtype: Any = "auto"

    # Adapters may have an embedding and an output matrix of their own (PEFT's modules_to_save):
    # each of max_loras places has room for both
    lora_modules_to_save: bool = False

    # Token ids behind the model's that adapters may have rows for, with lora_modules_to_save
    lora_extra_vocab_size: int = 0

    # JSON file of the costs that the length policy adaptive reckons with: read where it exists,
    # otherwise measured at start and written (default: that of step_time_cache)
    step_time_table: str | None = None

    # No lines about speculation in the log
    disable_log_stats: bool = False

    # File for what the engine's threads and the device did, step by step, as chrome://tracing
    # and ui.perfetto.dev show it, written when the engine ends; without graphs op by op
    # (default: none)
    profile: str | None = None

    # NVTX ranges of steps and ops even where no profiler is attached (cuda)
    enable_layerwise_nvtx_tracing: bool = False


# Fields whose values are translated on their way to the engine.
FORMS = {
    "dtype": "dtype",
    "hf_overrides": "json",
    "override_generation_config": "json",
    "max_model_len": "length",
    "lora_dtype": "dtype",
}

# Fields that compilation_config holds too.
GRAPH_FIELDS = (
    "cudagraph_mode",
    "cudagraph_capture_sizes",
    "max_cudagraph_capture_size",
)
