#include "config/engine_names.h"

namespace foretoken {
namespace vllm_table {

constexpr auto kFlag = VllmName::Takes::kNothing;
constexpr auto kValue = VllmName::Takes::kValue;
constexpr auto kValues = VllmName::Takes::kValues;
constexpr bool kRefused = true;
constexpr bool kWarned = false;

constexpr const char* kNoContextRanks =
    "rows of prompts are not divided among ranks; leave it out, or at 1";
constexpr const char* kOneByOne =
    "positions go to the ranks of --decode-context-parallel-size one by one; leave it out, or at 1";
constexpr const char* kOneProcess =
    "one process runs all data parallel engines of a host; use --data-parallel-size";
constexpr const char* kExpertsStay =
    "experts keep to their ranks, in order, and need no exchange of their own; leave it out";
constexpr const char* kNoImages = "prompts are texts or token ids";
constexpr const char* kNoTransfer =
    "KV blocks are not moved between servers; leave it out, or keep them in host memory with "
    "--kv-offloading-size";
constexpr const char* kNoUvicorn = "the server is not uvicorn; use --log-level";
constexpr const char* kNoCode = "no code of a model's repository is run";
constexpr const char* kOneRoom = "texts and embeddings come from one engine; leave it out";
constexpr const char* kOnDevice =
    "weights stay on the device; leave it out (KV blocks go to host memory with "
    "--kv-offloading-size)";
constexpr const char* kNoRecurrence = "there are no recurrent layers";
constexpr const char* kWorkers = "workers cannot be replaced; leave it out";
constexpr const char* kReaders = "weights are read by up to 12 threads";
constexpr const char* kNoMetrics = "there are no such metrics";
constexpr const char* kNoTraces = "traces are not sent; use --profile";
constexpr const char* kByShape = "kernels are chosen by shape";

constexpr VllmName kTable[] = {
    // The model.
    {"tokenizer", kValue, "MODEL", kRefused,
     "the tokenizer is the model folder's own; put tokenizer.json there", kCommandLine},
    {"tokenizer_mode", kValue, "auto|hf|slow|fast", kWarned,
     "the form of the tokenizer is found from its files"},
    {"tokenizer_revision", kValue, "", kRefused,
     "the tokenizer comes with the model; use --revision"},
    {"code_revision", kValue, "", kWarned, kNoCode},
    {"trust_remote_code", kFlag, "", kWarned, kNoCode},
    {"trust_request_chat_template", kFlag, "false", kRefused,
     "templates of requests are not taken; name one with --chat-template", kCommandLine},
    {"chat_template_content_format", kValue, "auto", kWarned, "it is found from the template",
     kCommandLine},
    {"allow_deprecated_quantization", kFlag, "", kWarned,
     "weights are taken as the model's files hold them"},
    {"config_format", kValue, "auto|hf", kRefused, "only Hugging Face folders can be read"},
    {"hf_config_path", kValue, "MODEL", kRefused,
     "config.json is the model folder's; lay changes over it with --hf-overrides"},
    {"hf_token", kValue, "true", kRefused, "set the environment variable HF_TOKEN"},
    {"rope_scaling", kValue, "", kRefused, "use --hf-overrides '{\"rope_scaling\": ...}'"},
    {"rope_theta", kValue, "", kRefused, "use --hf-overrides '{\"rope_theta\": ...}'"},
    {"runner", kValue, "auto|generate", kRefused, kOneRoom, kCommandLine},
    {"convert", kValue, "auto|none|embed", kRefused, kOneRoom},
    {"task", kValue, "auto|generate", kRefused, kOneRoom, kCommandLine},
    {"pooler_config", kValue, "", kRefused, "use --pooling", kCommandLine},
    {"override_pooler_config", kValue, "", kRefused, "use --pooling", kCommandLine},
    {"logprobs_mode", kValue, "raw_logprobs", kRefused,
     "log-probabilities are the model's own (raw_logprobs); leave it out"},
    {"logits_processors", kValues, "", kRefused,
     "processors are C++ objects of the library; a server takes none", kCommandLine},
    {"logits_processors", kValues, "", kRefused,
     "give callables to SamplingParams(logits_processors=...)", kPython},
    {"lora_modules", kValues, "", kRefused, "give lora_request=LoRARequest(...) with the prompts",
     kPython},
    {"enable_prompt_embeds", kFlag, "false", kRefused, "prompts are texts or token ids"},
    {"disable_sliding_window", kFlag, "false", kRefused,
     "the window is the model's; lay changes over config.json with --hf-overrides"},
    {"disable_cascade_attn", kFlag, "true|false", kWarned, "there is no cascade attention"},
    {"use_fp64_gumbel", kFlag, "", kWarned, "sampling is exact in integers"},
    {"model_loader_extra_config", kValue, "", kWarned, kReaders},
    {"ignore_patterns", kValues, "", kWarned, "only the files that are needed are fetched"},
    {"use_tqdm_on_load", kFlag, "true|false", kWarned, "progress is shown on a terminal"},
    {"safetensors_load_strategy", kValue, "lazy", kWarned, kReaders},
    {"pt_load_map_location", kValue, "", kWarned, "tensors of *.bin are read like others"},
    {"model_impl", kValue, "auto|vllm", kRefused, "models are this engine's own"},
    {"io_processor_plugin", kValue, "", kRefused, "there are no plug-ins for requests",
     kCommandLine},
    {"limit_mm_per_prompt", kValue, "", kWarned, kNoImages},
    {"language_model_only", kFlag, "", kWarned, kNoImages},
    {"mm_processor_kwargs", kValue, "", kWarned, kNoImages},
    {"mm_processor_cache_gb", kValue, "0|4", kWarned, kNoImages},
    {"disable_mm_preprocessor_cache", kFlag, "", kWarned, kNoImages},
    {"disable_chunked_mm_input", kFlag, "", kWarned, kNoImages},
    {"mm_encoder_tp_mode", kValue, "", kWarned, kNoImages},
    {"skip_mm_profiling", kFlag, "", kWarned, kNoImages},
    {"allowed_local_media_path", kValue, "", kWarned, kNoImages},
    {"allowed_media_domains", kValues, "", kWarned, kNoImages},
    {"media_io_kwargs", kValue, "", kWarned, kNoImages},
    {"interleave_mm_strings", kFlag, "", kWarned, kNoImages},
    {"fully_sharded_loras", kFlag, "false", kWarned,
     "adapters are cut as the model's matrices are"},
    {"default_mm_loras", kValue, "", kRefused, kNoImages},

    // Parallel layouts.
    {"data_parallel_size_local", kValue, "", kRefused, kOneProcess},
    {"data_parallel_rank", kValue, "0", kRefused, kOneProcess},
    {"data_parallel_start_rank", kValue, "0", kRefused, kOneProcess},
    {"data_parallel_address", kValue, "", kRefused, kOneProcess},
    {"data_parallel_rpc_port", kValue, "", kRefused, kOneProcess},
    {"data_parallel_backend", kValue, "mp", kRefused, kOneProcess},
    {"data_parallel_hybrid_lb", kFlag, "false", kRefused, kOneProcess},
    {"data_parallel_external_lb", kFlag, "false", kRefused, kOneProcess},
    {"prefill_context_parallel_size", kValue, "1", kRefused, kNoContextRanks},
    {"cp_kv_cache_interleave_size", kValue, "1", kRefused, kOneByOne},
    {"dcp_kv_cache_interleave_size", kValue, "1", kRefused, kOneByOne},
    {"dcp_comm_backend", kValue, "ag_rs|a2a", kWarned,
     "what a rank sees goes to the ranks whose heads it is for"},
    {"all2all_backend", kValue, "", kRefused, kExpertsStay},
    {"enable_eplb", kFlag, "false", kRefused, kExpertsStay},
    {"eplb_config", kValue, "", kRefused, kExpertsStay},
    {"expert_placement_strategy", kValue, "linear", kRefused, kExpertsStay},
    {"moe_backend", kValue, "auto", kRefused, "kernels are chosen by shape; leave it out"},
    {"disable_nccl_for_dp_synchronization", kFlag, "", kWarned,
     "how engines agree is chosen by what is fastest"},
    {"worker_cls", kValue, "auto", kRefused, kWorkers},
    {"worker_extension_cls", kValue, "", kRefused, kWorkers},
    {"distributed_executor_backend", kValue, "uni", kRefused,
     "ranks are threads of this process; leave it out", kPython},
    {"max_parallel_loading_workers", kValue, "", kWarned, kReaders},
    {"worker_use_ray", kFlag, "false", kRefused, "there is no Ray here; leave it out"},
    {"engine_use_ray", kFlag, "false", kRefused, "there is no Ray here; leave it out"},
    {"ray_workers_use_nsight", kFlag, "false", kRefused, "there is no Ray here; use --profile"},
    {"headless", kFlag, "", kWarned, "only --node-rank 0 serves", kCommandLine},
    {"api_server_count", kValue, "1", kWarned, "one process serves; use --http-threads",
     kCommandLine},

    // Memory.
    {"calculate_kv_scales", kFlag, "", kWarned,
     "scales of the KV cache are those of the checkpoint, or 1"},
    {"prefix_caching_hash_algo", kValue, "builtin|sha256|sha256_cbor|xxhash|xxhash_cbor", kWarned,
     "cached blocks are compared by their ids, not by a hash alone"},
    {"cpu_offload_gb", kValue, "0", kRefused, kOnDevice},
    {"swap_space", kValue, "0|4", kWarned,
     "preempted requests find their blocks in the prefix cache, and behind it in host memory with "
     "--kv-offloading-size"},
    {"kv_sharing_fast_prefill", kFlag, "false", kWarned, "there is no such path"},
    {"mamba_cache_dtype", kValue, "", kWarned, kNoRecurrence},
    {"mamba_ssm_cache_dtype", kValue, "", kWarned, kNoRecurrence},
    {"mamba_block_size", kValue, "", kWarned, kNoRecurrence},
    {"kv_transfer_config", kValue, "", kRefused, kNoTransfer},
    {"kv_events_config", kValue, "", kRefused, kNoTransfer},
    {"ec_transfer_config", kValue, "", kRefused, kNoTransfer},

    // The schedule.
    {"enable_chunked_prefill", kFlag, "true", kWarned, "long prompts always come in chunks"},
    {"async_scheduling", kFlag, "true", kWarned,
     "steps are planned ahead; --steps-in-flight 1 turns that off", kCommandLine},
    {"disable_async_output_proc", kFlag, "", kWarned, "outputs are always made beside the steps"},
    {"max_num_partial_prefills", kValue, "1", kWarned, "any number of prompts may be in chunks"},
    {"max_long_partial_prefills", kValue, "1", kWarned,
     "use --long-prefill-token-threshold for the rows of long ones"},
    {"num_scheduler_steps", kValue, "1", kWarned, "steps are planned ahead anyway"},
    {"scheduler_cls", kValue, "", kRefused, "the scheduler cannot be replaced"},
    {"disable_hybrid_kv_cache_manager", kFlag, "", kWarned,
     "windowed layers always have blocks of their own"},
    {"preemption_mode", kValue, "", kWarned, "preempted requests are computed again"},
    {"multi_step_stream_outputs", kFlag, "", kWarned, "tokens are sent as they come"},
    {"num_lookahead_slots", kValue, "0", kWarned, "blocks for drafts are reserved anyway"},
    {"scheduler_delay_factor", kValue, "0|0.0", kWarned, "prompts are never held back"},
    {"use_v2_block_manager", kFlag, "true", kWarned, "there is one block manager"},
    {"speculative_model", kValue, "", kRefused,
     "use --speculative-config '{\"model\": ..., \"num_speculative_tokens\": ...}'"},
    {"num_speculative_tokens", kValue, "", kRefused,
     "use --speculative-config '{\"num_speculative_tokens\": ...}'"},
    {"ngram_prompt_lookup_max", kValue, "", kRefused,
     "use --speculative-config '{\"method\": \"ngram\", \"prompt_lookup_max\": ...}'"},
    {"ngram_prompt_lookup_min", kValue, "", kRefused,
     "use --speculative-config '{\"method\": \"ngram\", \"prompt_lookup_min\": ...}'"},
    {"speculative_disable_by_batch_size", kValue, "", kWarned,
     "draft lengths adapt to what pays at each batch size"},

    // Kernels and graphs.
    {"optimization_level", kValue, "0", kWarned, kNoCompiler},
    {"performance_mode", kValue, "", kWarned, kNoCompiler},
    {"attention_config", kValue, "", kRefused, "use --attention-backend"},
    {"linear_backend", kValue, "auto", kWarned, "products have one backend for each device"},
    {"disable_flashinfer_prefill", kFlag, "", kWarned, "use --attention-backend"},
    {"max_context_len_to_capture", kValue, "", kWarned, "use --max-cudagraph-capture-size"},
    {"max_seq_len_to_capture", kValue, "8192", kWarned, "use --max-cudagraph-capture-size"},
    {"enable_flashinfer_autotune", kFlag, "", kWarned, kByShape},
    {"kernel_config", kValue, "", kWarned, kByShape},
    {"additional_config", kValue, "", kWarned, "there are no plug-ins that would read it"},
    {"enable_sleep_mode", kFlag, "", kRefused, "an engine does not sleep; end it instead"},

    // Texts.
    {"structured_outputs_config", kValue, "", kWarned, "grammars are llguidance's"},
    {"guided_decoding_backend", kValue, "auto|guidance", kWarned, "grammars are llguidance's"},
    {"reasoning_parser", kValue, "", kWarned, "offline outputs are the model's text as it is",
     kPython},
    {"stream_interval", kValue, "1", kWarned, "every step may give an output", kPython},
    {"disable_log_requests", kFlag, "true|false", kWarned, "requests are not logged", kPython},
    {"enable_log_requests", kFlag, "", kWarned, "requests are not logged", kPython},
    {"enable_reasoning", kFlag, "", kWarned, "--reasoning-parser alone says so", kCommandLine},
    {"tokenizer_pool_size", kValue, "", kWarned, "use --http-threads", kCommandLine},
    {"reasoning_parser_plugin", kValue, "", kRefused, "parsers are built in", kCommandLine},
    {"tool_parser_plugin", kValue, "", kRefused, "parsers are built in", kCommandLine},
    {"exclude_tools_when_tool_choice_none", kFlag, "true", kWarned,
     "tools are left out of the prompt with tool_choice none", kCommandLine},
    {"tool_server", kValue, "", kRefused, "tools run at the client", kCommandLine},
    {"response_role", kValue, "assistant", kRefused, "answers are the assistant's", kCommandLine},
    {"enable_prompt_tokens_details", kFlag, "true", kWarned, "usage always has them", kCommandLine},
    {"enable_per_request_metrics", kFlag, "false", kWarned,
     "use --per-request-spec-decode-metrics summary", kCommandLine},
    {"default_chat_template_kwargs", kValue, "", kRefused,
     "send chat_template_kwargs with each request", kCommandLine},

    // The server.
    {"grpc_port", kValue, "", kRefused, "there is no gRPC; leave it out", kCommandLine},
    {"uvicorn_log_level", kValue, "", kWarned, kNoUvicorn, kCommandLine},
    {"log_config_file", kValue, "", kWarned, "use --log-level", kCommandLine},
    {"disable_fastapi_docs", kFlag, "", kWarned, "there are no FastAPI pages", kCommandLine},
    {"ssl_ciphers", kValue, "", kWarned, "OpenSSL's defaults for TLS 1.2 and 1.3 hold",
     kCommandLine},
    {"middleware", kValues, "", kRefused, "put a proxy before the server", kCommandLine},
    {"max_log_len", kValue, "", kWarned, "prompts are not logged", kCommandLine},
    {"enable_log_outputs", kFlag, "false", kWarned, "outputs are not logged", kCommandLine},
    {"enable_log_deltas", kFlag, "", kWarned, "outputs are not logged", kCommandLine},
    {"enable_server_load_tracking", kFlag, "true", kWarned, "/load always tells the load",
     kCommandLine},
    {"fingerprint_mode", kValue, "", kWarned, "answers have no fingerprint of the system",
     kCommandLine},
    {"disable_frontend_multiprocessing", kFlag, "", kWarned, "there is one process", kCommandLine},
    {"enable_offline_docs", kFlag, "", kWarned, "/openapi.json needs no outside resources",
     kCommandLine},
    {"tokens_only", kFlag, "false", kRefused, "use --skip-tokenizer-init", kCommandLine},

    // Observation.
    {"aggregate_engine_logging", kFlag, "", kWarned, "there is one engine"},
    {"otlp_traces_endpoint", kValue, "", kWarned, kNoTraces},
    {"collect_detailed_traces", kValue, "", kWarned, kNoTraces},
    {"show_hidden_metrics_for_version", kValue, "", kWarned, "there are no hidden metrics"},
    {"kv_cache_metrics", kFlag, "", kWarned, kNoMetrics},
    {"cudagraph_metrics", kFlag, "", kWarned, kNoMetrics},
    {"enable_mfu_metrics", kFlag, "", kWarned, kNoMetrics},
    {"enable_logging_iteration_details", kFlag, "", kWarned, "use --profile"},
    {"profiler_config", kValue, "", kRefused, "use --profile FILE"},
};

constexpr const char* kCompilerFields[] = {"mode",
                                           "level",
                                           "backend",
                                           "custom_ops",
                                           "splitting_ops",
                                           "compile_sizes",
                                           "compile_mm_encoder",
                                           "inductor_compile_config",
                                           "inductor_passes",
                                           "use_inductor",
                                           "use_inductor_graph_partition",
                                           "pass_config",
                                           "cache_dir",
                                           "debug_dump_path",
                                           "dynamic_shapes_config",
                                           "cudagraph_num_of_warmups",
                                           "cudagraph_copy_inputs",
                                           "cudagraph_specialize_lora"};

}  // namespace vllm_table

std::span<const VllmName> vllm_names() { return vllm_table::kTable; }

std::span<const char* const> vllm_compiler_fields() { return vllm_table::kCompilerFields; }

}  // namespace foretoken
