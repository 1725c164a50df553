#include "config/engine_foreign_names.h"

namespace foretoken {
namespace launcher_table {

constexpr auto kFlag = ForeignFlag::Takes::kNothing;
constexpr auto kValue = ForeignFlag::Takes::kValue;
constexpr auto kPerhaps = ForeignFlag::Takes::kPerhaps;

constexpr const char* kNothingOfTheKind = "remove it; there is nothing of the kind";
constexpr const char* kPrompts = "long prompts are always computed in chunks";

constexpr ForeignFlag kTable[] = {
    // trtllm-serve.
    {"--max-batch-size", kValue, {"--max-num-seqs %"}, "", nullptr},
    {"--max-num-tokens", kValue, {"--max-num-batched-tokens %"}, "", nullptr},
    {"--max-seq-len", kValue, {"--max-model-len %"}, "", nullptr},
    {"--kv-cache-free-gpu-memory-fraction|--free-gpu-memory-fraction",
     kValue,
     {"--gpu-memory-utilization %"},
     "",
     nullptr},
    {"--extra-llm-api-options",
     kValue,
     {},
     "write its settings as flags into a file for --config",
     nullptr},
    {"--server-role|--metadata-server-config-file|"
     "--custom-module-dirs|--disagg-cluster-uri|--gpus-per-node|--max-beam-width|"
     "--num-postprocess-workers|--cluster-size|--moe-expert-parallel-size",
     kValue,
     {},
     kNothingOfTheKind,
     nullptr},
    {"--tool-parser", kValue, {"--tool-call-parser %"}, "", nullptr},

    // Text Generation Inference, MLX and vLLM's own positional name.
    {"--model-id|--hf-model|--repo-id", kValue, {"--model %"}, "", nullptr},
    {"--num-shard", kValue, {"--tensor-parallel-size %"}, "", nullptr},
    {"--sharded|--json-output|--disable-custom-kernels|--disable-grammar-support|"
     "--messages-api-enabled|--usage-stats|--prefix-caching|--ngrok",
     kPerhaps,
     {},
     "remove it",
     nullptr},
    {"--max-input-length|--max-input-tokens",
     kValue,
     {},
     "remove it; --max-model-len holds for prompt and answer together",
     nullptr},
    {"--max-batch-total-tokens", kValue, {"--kv-cache-memory-bytes BYTES"}, "", nullptr},
    {"--max-batch-prefill-tokens", kValue, {"--max-num-batched-tokens %"}, "", nullptr},
    {"--max-concurrent-requests", kValue, {"--max-num-active-seqs %"}, "", nullptr},
    {"--quantize", kValue, {"--quantization %"}, "without it, files load as they are", nullptr},
    {"--speculate|--num-draft-tokens", kValue, {"--spec-tokens %"}, "", nullptr},
    {"--draft-model|--draft-model-path|--draft-model-id",
     kValue,
     {"--spec-method draft_model --spec-model %"},
     "",
     nullptr},
    {"--hostname", kValue, {"--host %"}, "", nullptr},
    {"--cors-allow-origin", kValue, {"--allowed-origins '[\"%\"]'"}, "", nullptr},
    {"--cuda-memory-fraction", kValue, {"--gpu-memory-utilization %"}, "", nullptr},
    {"--huggingface-hub-cache|--weights-cache-override", kValue, {"--download-dir %"}, "", nullptr},
    {"--validation-workers|--max-best-of|--max-stop-sequences|--max-top-n-tokens|"
     "--waiting-served-ratio|--max-waiting-tokens|--max-client-batch-size|--watermark-gamma|"
     "--watermark-delta|--shard-uds-path",
     kValue,
     {},
     kNothingOfTheKind,
     nullptr},
    {"--otlp-endpoint", kValue, {"--otlp-traces-endpoint %"}, "", nullptr},
    {"--otlp-service-name",
     kValue,
     {},
     "remove it; the variable OTEL_SERVICE_NAME says it",
     nullptr},
    {"--cuda-graphs", kValue, {"--cudagraph-capture-sizes %"}, "", nullptr},
    {"--payload-limit", kValue, {"--max-body-bytes %"}, "", nullptr},
    {"--graceful-termination-timeout", kValue, {"--shutdown-timeout %"}, "", nullptr},
    {"--lora-adapters", kValue, {"--enable-lora --lora-modules %"}, "", nullptr},
    {"--rope-factor", kValue, {"--hf-overrides '{\"rope_scaling\": ...}'"}, "", nullptr},
    {"--tokenizer-config-path|--custom-tokenizer",
     kValue,
     {},
     "remove it; the tokenizer is the model folder's own",
     nullptr},
    {"--backend", kValue, {}, "remove it; there is one", nullptr},
    {"--ngrok-authtoken|--ngrok-edge", kValue, {}, kNothingOfTheKind, nullptr},
    {"--enable-prefill-logprobs",
     kFlag,
     {},
     "remove it; requests ask for prompt_logprobs",
     nullptr},
    {"--enable-chunked-prefill|--enable-chunked-context", kFlag, {}, kPrompts, nullptr},
};

}  // namespace launcher_table

std::span<const ForeignFlag> launcher_flag_table() { return launcher_table::kTable; }

}  // namespace foretoken
