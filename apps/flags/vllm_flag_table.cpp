#include "apps/flags/vllm_flag_table.h"

namespace foretoken {
namespace {

constexpr auto kFlag = VllmFlag::Takes::kNothing;
constexpr auto kValue = VllmFlag::Takes::kValue;
constexpr auto kValues = VllmFlag::Takes::kValues;
constexpr bool kRefused = true;
constexpr bool kWarned = false;

constexpr const char* kNoContextRanks =
    "rows of prompts are not divided among ranks; leave it at 1";
constexpr const char* kOneByOne =
    "positions go to the ranks of --decode-context-parallel-size one by one; leave it at 1";
constexpr const char* kOneServer =
    "one process serves all data parallel engines of a host; use --data-parallel-size";
constexpr const char* kExpertsStay =
    "experts keep to their ranks, in order, and need no exchange of their own; remove it";
constexpr const char* kNoImages = "only texts are served";
constexpr const char* kNoTransfer = "KV blocks are not moved between servers; remove it";
constexpr const char* kNoUvicorn = "the server is not uvicorn; use --log-level";

constexpr VllmFlag kTable[] = {
    // The model.
    {"--tokenizer", kValue, "", kRefused,
     "the tokenizer is the model folder's own; put tokenizer.json there"},
    {"--tokenizer-mode", kValue, "auto|hf", kWarned,
     "the form of the tokenizer is found from its files"},
    {"--tokenizer-revision", kValue, "", kRefused,
     "the tokenizer comes with the model; use --revision"},
    {"--code-revision", kValue, "", kWarned, "no code of a model's repository is run"},
    {"--trust-remote-code", kFlag, "", kWarned, "no code of a model's repository is run"},
    {"--trust-request-chat-template", kFlag, "false", kRefused,
     "templates of requests are not taken; name one with --chat-template"},
    {"--chat-template-content-format", kValue, "auto", kWarned, "it is found from the template"},
    {"--allow-deprecated-quantization", kFlag, "", kWarned,
     "weights are taken as the model's files hold them"},
    {"--config-format", kValue, "auto|hf", kRefused, "only Hugging Face folders can be read"},
    {"--hf-config-path", kValue, "", kRefused,
     "config.json is the model folder's; lay changes over it with --hf-overrides"},
    {"--hf-token", kValue, "", kRefused, "set the environment variable HF_TOKEN"},
    {"--rope-scaling", kValue, "", kRefused, "use --hf-overrides '{\"rope_scaling\": ...}'"},
    {"--rope-theta", kValue, "", kRefused, "use --hf-overrides '{\"rope_theta\": ...}'"},
    {"--runner", kValue, "auto|generate", kRefused,
     "texts and embeddings come from one server; remove it"},
    {"--convert", kValue, "auto|none", kRefused, "remove it"},
    {"--task", kValue, "auto|generate", kRefused,
     "texts and embeddings come from one server; remove it"},
    {"--pooler-config", kValue, "", kRefused, "use --pooling"},
    {"--override-pooler-config", kValue, "", kRefused, "use --pooling"},
    {"--logprobs-mode", kValue, "raw_logprobs", kRefused,
     "log-probabilities are the model's own (raw_logprobs); remove it"},
    {"--logits-processors", kValues, "", kRefused,
     "processors are C++ objects of the library; a server takes none"},
    {"--enable-prompt-embeds", kFlag, "false", kRefused, "prompts are texts or token ids"},
    {"--disable-sliding-window", kFlag, "false", kRefused,
     "the window is the model's; lay changes over config.json with --hf-overrides"},
    {"--disable-cascade-attn", kFlag, "", kWarned, "there is no cascade attention"},
    {"--use-fp64-gumbel", kFlag, "", kWarned, "sampling is exact in integers"},
    {"--model-loader-extra-config", kValue, "", kWarned, "weights are read by up to 12 threads"},
    {"--ignore-patterns", kValues, "", kWarned, "only the files that are needed are fetched"},
    {"--use-tqdm-on-load", kFlag, "", kWarned, "progress is shown on a terminal"},
    {"--safetensors-load-strategy", kValue, "", kWarned, "files are read, not mapped"},
    {"--pt-load-map-location", kValue, "", kWarned, "tensors of *.bin are read like others"},
    {"--model-impl", kValue, "auto|vllm", kRefused, "models are this engine's own"},
    {"--io-processor-plugin", kValue, "", kRefused, "there are no plug-ins for requests"},
    {"--limit-mm-per-prompt", kValue, "", kWarned, kNoImages},
    {"--language-model-only", kFlag, "", kWarned, kNoImages},
    {"--mm-processor-kwargs", kValue, "", kWarned, kNoImages},
    {"--mm-processor-cache-gb", kValue, "", kWarned, kNoImages},
    {"--mm-encoder-tp-mode", kValue, "", kWarned, kNoImages},
    {"--skip-mm-profiling", kFlag, "", kWarned, kNoImages},
    {"--allowed-local-media-path", kValue, "", kWarned, kNoImages},
    {"--allowed-media-domains", kValues, "", kWarned, kNoImages},
    {"--media-io-kwargs", kValue, "", kWarned, kNoImages},
    {"--interleave-mm-strings", kFlag, "", kWarned, kNoImages},
    {"--fully-sharded-loras", kFlag, "false", kWarned,
     "adapters are cut as the model's matrices are"},
    {"--default-mm-loras", kValue, "", kRefused, kNoImages},

    // Parallel layouts.
    {"--data-parallel-size-local", kValue, "", kRefused, kOneServer},
    {"--data-parallel-rank", kValue, "0", kRefused, kOneServer},
    {"--data-parallel-start-rank", kValue, "0", kRefused, kOneServer},
    {"--data-parallel-address", kValue, "", kRefused, kOneServer},
    {"--data-parallel-rpc-port", kValue, "", kRefused, kOneServer},
    {"--data-parallel-backend", kValue, "mp", kRefused, kOneServer},
    {"--data-parallel-hybrid-lb", kFlag, "false", kRefused, kOneServer},
    {"--data-parallel-external-lb", kFlag, "false", kRefused, kOneServer},
    {"--prefill-context-parallel-size", kValue, "1", kRefused, kNoContextRanks},
    {"--cp-kv-cache-interleave-size", kValue, "1", kRefused, kOneByOne},
    {"--dcp-kv-cache-interleave-size", kValue, "1", kRefused, kOneByOne},
    {"--dcp-comm-backend", kValue, "ag_rs|a2a", kWarned,
     "what a rank sees goes to the ranks whose heads it is for"},
    {"--all2all-backend", kValue, "", kRefused, kExpertsStay},
    {"--enable-eplb", kFlag, "false", kRefused, kExpertsStay},
    {"--eplb-config", kValue, "", kRefused, kExpertsStay},
    {"--expert-placement-strategy", kValue, "linear", kRefused, kExpertsStay},
    {"--moe-backend", kValue, "auto", kRefused, "kernels are chosen by shape; remove it"},
    {"--enable-dbo", kFlag, "false", kRefused, "batches are not split in halves here; remove it"},
    {"--dbo-decode-token-threshold", kValue, "", kWarned, "batches are not split in halves"},
    {"--dbo-prefill-token-threshold", kValue, "", kWarned, "batches are not split in halves"},
    {"--disable-nccl-for-dp-synchronization", kFlag, "", kWarned,
     "it is chosen by what is fastest"},
    {"--worker-cls", kValue, "auto", kRefused, "workers cannot be replaced"},
    {"--worker-extension-cls", kValue, "", kRefused, "workers cannot be replaced"},
    {"--max-parallel-loading-workers", kValue, "", kWarned, "one process loads the model"},
    {"--worker-use-ray", kFlag, "false", kRefused, "there is no Ray here; remove it"},
    {"--engine-use-ray", kFlag, "false", kRefused, "there is no Ray here; remove it"},
    {"--ray-workers-use-nsight", kFlag, "false", kRefused, "there is no Ray here; use --profile"},
    {"--headless", kFlag, "", kWarned, "only --node-rank 0 serves"},
    {"--api-server-count", kValue, "1", kWarned, "one process serves; use --http-threads"},

    // Memory.
    {"--calculate-kv-scales", kFlag, "", kWarned,
     "scales of the KV cache are those of the checkpoint, or 1"},
    {"--prefix-caching-hash-algo", kValue, "", kWarned,
     "cached blocks are compared by their ids, not by a hash alone"},
    {"--cpu-offload-gb", kValue, "0", kRefused, "weights stay on the device; remove it"},
    {"--kv-offloading-size", kValue, "0", kRefused, "KV blocks stay on the device; remove it"},
    {"--kv-offloading-backend", kValue, "", kWarned, "KV blocks stay on the device"},
    {"--swap-space", kValue, "", kWarned, "preempted requests are computed again"},
    {"--kv-sharing-fast-prefill", kFlag, "false", kWarned, "there is no such path"},
    {"--mamba-cache-dtype", kValue, "", kWarned, "there are no recurrent layers"},
    {"--mamba-ssm-cache-dtype", kValue, "", kWarned, "there are no recurrent layers"},
    {"--mamba-block-size", kValue, "", kWarned, "there are no recurrent layers"},
    {"--kv-transfer-config", kValue, "", kRefused, kNoTransfer},
    {"--kv-events-config", kValue, "", kRefused, kNoTransfer},
    {"--ec-transfer-config", kValue, "", kRefused, kNoTransfer},

    // The schedule.
    {"--enable-chunked-prefill", kFlag, "true", kWarned, "long prompts always come in chunks"},
    {"--async-scheduling", kFlag, "true", kWarned,
     "steps are planned ahead; --steps-in-flight 1 turns that off"},
    {"--max-num-partial-prefills", kValue, "", kWarned, "any number of prompts may be in chunks"},
    {"--max-long-partial-prefills", kValue, "", kWarned,
     "use --long-prefill-token-threshold for the rows of long ones"},
    {"--num-scheduler-steps", kValue, "1", kWarned, "steps are planned ahead anyway"},
    {"--scheduler-cls", kValue, "", kRefused, "the scheduler cannot be replaced"},
    {"--disable-hybrid-kv-cache-manager", kFlag, "", kWarned,
     "windowed layers always have blocks of their own"},
    {"--preemption-mode", kValue, "", kWarned, "preempted requests are computed again"},
    {"--multi-step-stream-outputs", kFlag, "", kWarned, "tokens are sent as they come"},
    {"--num-lookahead-slots", kValue, "", kWarned, "blocks for drafts are reserved anyway"},
    {"--scheduler-delay-factor", kValue, "0|0.0", kWarned, "prompts are never held back"},
    {"--use-v2-block-manager", kFlag, "", kWarned, "there is one block manager"},
    {"--speculative-model", kValue, "", kRefused,
     "use --speculative-config '{\"model\": ..., \"num_speculative_tokens\": ...}'"},
    {"--num-speculative-tokens", kValue, "", kRefused, "use --spec-tokens"},
    {"--ngram-prompt-lookup-max", kValue, "", kRefused,
     "use --speculative-config '{\"method\": \"ngram\", \"prompt_lookup_max\": ...}'"},
    {"--ngram-prompt-lookup-min", kValue, "", kRefused,
     "use --speculative-config '{\"method\": \"ngram\", \"prompt_lookup_min\": ...}'"},
    {"--speculative-disable-by-batch-size", kValue, "", kWarned,
     "draft lengths adapt to what pays at each batch size"},

    // Kernels and graphs.
    {"--optimization-level", kValue, "", kWarned, kNoCompiler},
    {"--performance-mode", kValue, "", kWarned, kNoCompiler},
    {"--attention-config", kValue, "", kRefused, "use --attention-backend"},
    {"--linear-backend", kValue, "auto", kWarned, "products have one backend for each device"},
    {"--disable-flashinfer-prefill", kFlag, "", kWarned, "there is no FlashInfer here"},
    {"--max-context-len-to-capture", kValue, "", kWarned, "use --max-cudagraph-capture-size"},
    {"--max-seq-len-to-capture", kValue, "", kWarned, "use --max-cudagraph-capture-size"},
    {"--enable-flashinfer-autotune", kFlag, "", kWarned, "there is no FlashInfer here"},
    {"--kernel-config", kValue, "", kWarned, "kernels are chosen by shape"},
    {"--additional-config", kValue, "", kWarned, "there are no plug-ins that would read it"},
    {"--enable-sleep-mode", kFlag, "false", kRefused, "stop the server instead"},

    // Texts.
    {"--structured-outputs-config", kValue, "", kWarned, "grammars are llguidance's"},
    {"--guided-decoding-backend", kValue, "auto|guidance", kWarned, "grammars are llguidance's"},
    {"--enable-reasoning", kFlag, "", kWarned, "--reasoning-parser alone says so"},
    {"--tokenizer-pool-size", kValue, "", kWarned, "use --http-threads"},
    {"--reasoning-parser-plugin", kValue, "", kRefused, "parsers are built in"},
    {"--tool-parser-plugin", kValue, "", kRefused, "parsers are built in"},
    {"--exclude-tools-when-tool-choice-none", kFlag, "true", kWarned,
     "tools are left out of the prompt with tool_choice none"},
    {"--tool-server", kValue, "", kRefused, "tools run at the client"},
    {"--response-role", kValue, "assistant", kRefused, "answers are the assistant's"},
    {"--enable-prompt-tokens-details", kFlag, "true", kWarned, "usage always has them"},
    {"--enable-per-request-metrics", kFlag, "false", kWarned,
     "use --per-request-spec-decode-metrics summary"},
    {"--default-chat-template-kwargs", kValue, "", kRefused,
     "send chat_template_kwargs with each request"},

    // The server.
    {"--grpc-port", kValue, "", kRefused, "there is no gRPC; remove it"},
    {"--uvicorn-log-level", kValue, "", kWarned, kNoUvicorn},
    {"--log-config-file", kValue, "", kWarned, "use --log-level"},
    {"--disable-fastapi-docs", kFlag, "", kWarned, "there are no FastAPI pages"},
    {"--enable-ssl-refresh", kFlag, "false", kRefused,
     "certificates are read at start; start the server again for new ones"},
    {"--ssl-ciphers", kValue, "", kWarned, "OpenSSL's defaults for TLS 1.2 and 1.3 hold"},
    {"--middleware", kValues, "", kRefused, "put a proxy before the server"},
    {"--max-log-len", kValue, "", kWarned, "prompts are not logged"},
    {"--enable-log-outputs", kFlag, "false", kWarned, "outputs are not logged"},
    {"--enable-log-deltas", kFlag, "", kWarned, "outputs are not logged"},
    {"--enable-server-load-tracking", kFlag, "true", kWarned, "/load always tells the load"},
    {"--fingerprint-mode", kValue, "", kWarned, "answers have no fingerprint of the system"},
    {"--disable-frontend-multiprocessing", kFlag, "", kWarned, "there is one process"},
    {"--enable-offline-docs", kFlag, "", kWarned, "/openapi.json needs no outside resources"},
    {"--tokens-only", kFlag, "false", kRefused, "use --skip-tokenizer-init"},

    // Observation.
    {"--aggregate-engine-logging", kFlag, "", kWarned, "there is one engine"},
    {"--otlp-traces-endpoint", kValue, "", kWarned, "traces are not sent; use --profile"},
    {"--collect-detailed-traces", kValue, "", kWarned, "traces are not sent; use --profile"},
    {"--show-hidden-metrics-for-version", kValue, "", kWarned, "there are no hidden metrics"},
    {"--kv-cache-metrics", kFlag, "", kWarned, "there are no such metrics"},
    {"--cudagraph-metrics", kFlag, "", kWarned, "there are no such metrics"},
    {"--enable-mfu-metrics", kFlag, "", kWarned, "there are no such metrics"},
    {"--enable-logging-iteration-details", kFlag, "", kWarned, "use --profile"},
    {"--profiler-config", kValue, "", kRefused, "use --profile FILE"},
};

}  // namespace

std::span<const VllmFlag> vllm_flag_table() { return kTable; }

}  // namespace foretoken
