#include <cstdlib>
#include <utility>

#include "base/text/ascii_text.h"
#include "config/engine_foreign_names.h"

namespace foretoken {
namespace launcher_table {

constexpr auto kFlag = ForeignFlag::Takes::kNothing;
constexpr auto kValue = ForeignFlag::Takes::kValue;
constexpr auto kPerhaps = ForeignFlag::Takes::kPerhaps;

// What asks for the default there ("--chunked-prefill-size -1") is the default here.
std::string above_zero(const std::string& value) {
  return std::atof(value.c_str()) > 0 ? value : std::string();
}

std::string method_of_algorithm(const std::string& given) {
  std::string algorithm = lower_case(given);
  constexpr std::pair<const char*, const char*> kMethods[] = {{"nextn", "mtp"},
                                                              {"standalone", "draft_model"}};
  for (const auto& [theirs, ours] : kMethods) {
    if (algorithm == theirs) return ours;
  }
  return algorithm;
}

// "host:port" as the value of --master-addr, and the flag of the port.
std::string master_address(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return address;
  return address.substr(0, colon) + " --master-port " + address.substr(colon + 1);
}

std::string generation_config(const std::string& defaults) {
  return defaults == "openai" ? "vllm" : "auto";
}

std::string policy(const std::string& name) { return name == "priority" ? name : "fcfs"; }

constexpr const char* kNothingOfTheKind = "remove it; there is nothing of the kind";
constexpr const char* kPrompts = "long prompts are always computed in chunks";

constexpr ForeignFlag kTable[] = {
    // SGLang.
    {"--model-path", kValue, {"--model %"}, "", nullptr},
    {"--tokenizer-path", kValue, {}, "remove it; the tokenizer is the model folder's own", nullptr},
    {"--tp-size|--tp", kValue, {"--tensor-parallel-size %"}, "", nullptr},
    {"--pp-size|--pp", kValue, {"--pipeline-parallel-size %"}, "", nullptr},
    {"--dp-size|--dp", kValue, {"--data-parallel-size %"}, "", nullptr},
    {"--ep-size|--ep|--expert-parallel-size",
     kValue,
     {"--enable-expert-parallel"},
     "experts are dealt out to all ranks of --tensor-parallel-size",
     nullptr},
    {"--dist-init-addr|--nccl-init-addr", kValue, {"--master-addr %"}, "", master_address},
    {"--nccl-port", kValue, {"--master-port %"}, "", nullptr},
    {"--base-gpu-id", kValue, {}, "set CUDA_VISIBLE_DEVICES", nullptr},
    {"--mem-fraction-static", kValue, {"--gpu-memory-utilization %"}, "", nullptr},
    {"--context-length", kValue, {"--max-model-len %"}, "", nullptr},
    {"--max-running-requests", kValue, {"--max-num-seqs %"}, "", nullptr},
    {"--max-queued-requests", kValue, {"--max-num-queued-reqs %"}, "", nullptr},
    {"--chunked-prefill-size|--max-prefill-tokens",
     kValue,
     {"--max-num-batched-tokens %"},
     "",
     above_zero},
    {"--max-total-tokens", kValue, {"--kv-cache-memory-bytes BYTES"}, "", nullptr},
    {"--page-size", kValue, {"--block-size %"}, "", nullptr},
    {"--schedule-policy", kValue, {"--scheduling-policy %"}, "", policy},
    {"--schedule-conservativeness", kValue, {}, "remove it", nullptr},
    {"--random-seed", kValue, {"--seed %"}, "", nullptr},
    {"--disable-radix-cache", kFlag, {"--no-enable-prefix-caching"}, "", nullptr},
    {"--disable-cuda-graph", kFlag, {"--enforce-eager"}, "", nullptr},
    {"--disable-overlap-schedule", kFlag, {"--steps-in-flight 1"}, "", nullptr},
    {"--enable-two-batch-overlap", kFlag, {"--enable-dbo"}, "", nullptr},
    {"--enable-hierarchical-cache|--enable-lmcache",
     kFlag,
     {"--kv-offloading-size GIB"},
     "",
     nullptr},
    {"--hicache-size", kValue, {"--kv-offloading-size %"}, "", nullptr},
    {"--hicache-ratio|--hicache-write-policy|--hicache-io-backend|--hicache-mem-layout|"
     "--hicache-storage-backend",
     kValue,
     {},
     "remove it; --kv-offloading-size says how much",
     nullptr},
    {"--cuda-graph-bs", kValue, {"--cudagraph-capture-sizes %"}, "", nullptr},
    {"--cuda-graph-max-bs", kValue, {"--max-cudagraph-capture-size %"}, "", nullptr},
    {"--enable-torch-compile|--disable-cuda-graph-padding|--enable-dp-lm-head|"
     "--enable-nan-detection|--enable-mixed-chunk|--enable-metrics|--is-embedding|"
     "--skip-server-warmup|--enable-p2p-check|--enable-cache-report|"
     "--enable-single-batch-overlap|--enable-flashinfer-allreduce-fusion|--enable-multimodal|"
     "--enable-request-time-stats-logging|--enable-streaming-session|--disable-prefill-cuda-graph|"
     "--enable-custom-logit-processor|--stream-output|--enable-weights-cpu-backup|--enable-pdmux|"
     "--enable-dynamic-batch-tokenizer|--enable-session-cache|--enable-fp32-lm-head|"
     "--disable-fast-image-processor|--pre-warm-nccl|--enable-prefill-delayer|--enable-trace|"
     "--schedule-low-priority-values-first|--language-only|--encoder-only|--grpc-mode",
     kFlag,
     {},
     "remove it",
     nullptr},
    {"--cuda-graph-backend-decode|--cuda-graph-backend-prefill|--torch-compile-max-bs|"
     "--log-requests-level|--decode-log-interval|--completion-template|--file-storage-path|"
     "--weight-version|--warmups|--load-balance-method|--mamba-ssm-dtype|--max-mamba-cache-size|"
     "--priority-scheduling-preemption-threshold|--swa-full-tokens-ratio|--crash-dump-folder|"
     "--radix-eviction-policy|--trace-level|--offload-mode|--rl-on-policy-target|--forward-hooks|"
     "--lora-eviction-policy|--lora-backend|--detokenizer-worker-num|--gc-threshold|"
     "--modelopt-quant|--rl-quant-profile|--triton-attention-num-kv-splits|--elastic-ep-backend|"
     "--prefill-delayer-max-delay-passes",
     kValue,
     {},
     kNothingOfTheKind,
     nullptr},
    {"--prefill-attention-backend|--decode-attention-backend|--mm-attention-backend|"
     "--speculative-draft-attention-backend|--nsa-prefill-backend|--nsa-decode-backend",
     kValue,
     {"--attention-backend NAME"},
     "it holds for all steps",
     nullptr},
    {"--disaggregation-mode|--disaggregation-transfer-backend|--disaggregation-bootstrap-port",
     kValue,
     {},
     "remove it; one engine computes prompts and answers",
     nullptr},
    {"--enable-priority-scheduling", kFlag, {"--scheduling-policy priority"}, "", nullptr},
    {"--fastapi-root-path", kValue, {"--root-path %"}, "", nullptr},
    {"--tokenizer-worker-num", kValue, {"--http-threads %"}, "", nullptr},
    {"--max-loras-per-batch", kValue, {"--max-loras %"}, "", nullptr},
    {"--max-loaded-loras", kValue, {"--max-cpu-loras %"}, "", nullptr},
    {"--allow-auto-truncate",
     kFlag,
     {},
     "send \"truncate_prompt_tokens\": -1 with each request",
     nullptr},
    {"--enable-dp-attention|--enable-attention-dp",
     kFlag,
     {},
     "remove it; engines of --data-parallel-size have KV blocks of their own",
     nullptr},
    {"--enable-deterministic-inference", kFlag, {"--batch-invariant on"}, "", nullptr},
    {"--speculative-algorithm|--speculative-algo",
     kValue,
     {"--spec-method %"},
     "",
     method_of_algorithm},
    {"--speculative-draft-model-path", kValue, {"--spec-model %"}, "", nullptr},
    {"--speculative-num-steps", kValue, {"--spec-tokens %"}, "", nullptr},
    {"--speculative-num-draft-tokens|--speculative-eagle-topk",
     kValue,
     {},
     "remove it; drafts are chains, --spec-tokens long",
     nullptr},
    {"--speculative-accept-threshold-single|--speculative-accept-threshold-acc|"
     "--speculative-token-map|--speculative-attention-mode",
     kValue,
     {},
     "remove it; drafts never change the text",
     nullptr},
    {"--speculative-draft-model-revision",
     kValue,
     {},
     "remove it; --speculative-config '{\"model\": ..., \"revision\": ...}' names it",
     nullptr},
    {"--speculative-draft-model-quantization|--speculative-draft-load-format|"
     "--speculative-dflash-draft-window-size",
     kValue,
     {},
     "remove it; a drafter is as its own files have it",
     nullptr},
    {"--speculative-dflash-block-size",
     kValue,
     {},
     "remove it; a block has a row more than --spec-tokens drafts",
     nullptr},
    {"--speculative-ngram-max-match-window-size|--speculative-ngram-max-trie-depth",
     kValue,
     {},
     "remove it; --speculative-config '{\"method\": \"ngram\", \"prompt_lookup_max\": 4}' says it",
     nullptr},
    {"--speculative-ngram-min-match-window-size",
     kValue,
     {},
     "remove it; --speculative-config '{\"method\": \"ngram\", \"prompt_lookup_min\": 4}' says it",
     nullptr},
    {"--speculative-ngram-min-bfs-breadth|--speculative-ngram-max-bfs-breadth|"
     "--speculative-ngram-match-type|--speculative-ngram-branch-length|"
     "--speculative-ngram-capacity",
     kValue,
     {},
     "remove it; look-ups draft chains (--spec-method suffix drafts from past answers, too)",
     nullptr},
    {"--speculative-moe-runner-backend|--speculative-moe-a2a-backend",
     kValue,
     {},
     "remove it; kernels are chosen by shape",
     nullptr},
    {"--speculative-adaptive|--enable-spec-v2",
     kFlag,
     {},
     "remove it; lengths adapt to what pays (--spec-length-policy)",
     nullptr},
    {"--preferred-sampling-params", kValue, {"--override-generation-config %"}, "", nullptr},
    {"--sampling-defaults", kValue, {"--generation-config %"}, "", generation_config},
    {"--json-model-override-args", kValue, {"--hf-overrides %"}, "", nullptr},
    {"--grammar-backend|--sampling-backend", kValue, {}, "remove it; there is one", nullptr},
    {"--constrained-json-disable-any-whitespace",
     kFlag,
     {},
     "send disable_any_whitespace in structured_outputs of each request",
     nullptr},
    {"--constrained-json-whitespace-pattern",
     kValue,
     {},
     "send whitespace_pattern in structured_outputs of each request",
     nullptr},
    {"--moe-a2a-backend|--moe-runner-backend|--deepep-mode",
     kValue,
     {},
     "remove it; kernels are chosen by shape",
     nullptr},
    {"--watchdog-timeout|--dist-timeout", kValue, {"--step-timeout-seconds %"}, "", nullptr},
    {"--log-requests", kFlag, {"--enable-log-requests"}, "", nullptr},
    {"--lora-paths", kValue, {"--enable-lora --lora-modules %"}, "", nullptr},

    // trtllm-serve.
    {"--max-batch-size", kValue, {"--max-num-seqs %"}, "", nullptr},
    {"--max-num-tokens", kValue, {"--max-num-batched-tokens %"}, "", nullptr},
    {"--max-seq-len", kValue, {"--max-model-len %"}, "", nullptr},
    {"--kv-cache-free-gpu-memory-fraction|--free-gpu-memory-fraction",
     kValue,
     {"--gpu-memory-utilization %"},
     "",
     nullptr},
    {"--extra-llm-api-options|--server-role|--metadata-server-config-file|"
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
     "--waiting-served-ratio|--max-waiting-tokens|--max-client-batch-size|--otlp-endpoint|"
     "--otlp-service-name|--watermark-gamma|--watermark-delta|--shard-uds-path",
     kValue,
     {},
     kNothingOfTheKind,
     nullptr},
    {"--enable-chunked-prefill|--enable-chunked-context", kFlag, {}, kPrompts, nullptr},
};

}  // namespace launcher_table

std::span<const ForeignFlag> launcher_flag_table() { return launcher_table::kTable; }

}  // namespace foretoken
