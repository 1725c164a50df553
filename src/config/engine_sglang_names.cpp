#include <cstdlib>
#include <utility>

#include "base/text/ascii_text.h"
#include "config/engine_foreign_names.h"

namespace foretoken {
namespace sglang_table {

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
constexpr const char* kExpertRanks =
    "remove it; experts keep to their ranks, which --enable-expert-parallel deals out";
constexpr const char* kWholePrompts = "remove it; rows of prompts are not divided among ranks";
constexpr const char* kTexts = "remove it; only texts are served";

constexpr ForeignFlag kTable[] = {
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
    {"--base-gpu-id|--gpu-id-step", kValue, {}, "set CUDA_VISIBLE_DEVICES", nullptr},
    {"--mem-fraction-static|--mem-fraction", kValue, {"--gpu-memory-utilization %"}, "", nullptr},
    {"--context-length", kValue, {"--max-model-len %"}, "", nullptr},
    {"--max-running-requests", kValue, {"--max-num-seqs %"}, "", nullptr},
    {"--max-queued-requests", kValue, {"--max-num-queued-reqs %"}, "", nullptr},
    {"--chunked-prefill-size|--max-prefill-tokens",
     kValue,
     {"--max-num-batched-tokens %"},
     "",
     above_zero},
    {"--max-total-tokens",
     kValue,
     {"--kv-cache-memory-bytes BYTES"},
     "TGI's, which means prompt and answer together, is --max-model-len",
     nullptr},
    {"--page-size", kValue, {"--block-size %"}, "", nullptr},
    {"--schedule-policy", kValue, {"--scheduling-policy %"}, "", policy},
    {"--schedule-conservativeness", kValue, {}, "remove it", nullptr},
    {"--random-seed", kValue, {"--seed %"}, "", nullptr},
    {"--disable-radix-cache", kFlag, {"--no-enable-prefix-caching"}, "", nullptr},
    {"--disable-cuda-graph", kFlag, {"--enforce-eager"}, "", nullptr},
    {"--disable-overlap-schedule", kFlag, {"--steps-in-flight 1"}, "", nullptr},
    {"--enable-two-batch-overlap", kFlag, {"--enable-dbo"}, "", nullptr},
    {"--enable-hierarchical-cache|--enable-lmcache|--disaggregation-decode-enable-offload-kvcache",
     kFlag,
     {"--kv-offloading-size GIB"},
     "",
     nullptr},
    {"--hicache-size", kValue, {"--kv-offloading-size %"}, "", nullptr},
    {"--hicache-ratio|--hicache-write-policy|--hicache-io-backend|--hicache-mem-layout|"
     "--hicache-storage-backend|--hicache-storage-prefetch-policy|"
     "--hicache-storage-backend-extra-config",
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
     "--speculative-draft-attention-backend|--nsa-prefill-backend|--nsa-decode-backend|"
     "--nsa-prefill|--nsa-decode|--dsa-prefill-backend|--dsa-decode-backend",
     kValue,
     {"--attention-backend NAME"},
     "it holds for all steps",
     nullptr},
    {"--disaggregation-mode|--disaggregation-transfer-backend|--disaggregation-bootstrap-port|"
     "--disaggregation-ib-device|--num-reserved-decode-tokens|"
     "--disaggregation-decode-polling-interval|--encoder-transfer-backend|--encoder-urls|"
     "--pdmux-config-path|--sm-group-num",
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
    {"--speculative-draft-model-path|--speculative-draft-model",
     kValue,
     {"--spec-model %"},
     "",
     nullptr},
    {"--speculative-num-steps", kValue, {"--spec-tokens %"}, "", nullptr},
    {"--speculative-num-draft-tokens|--speculative-eagle-topk",
     kValue,
     {},
     "remove it; trees are \"num_branches\" of --speculative-config, --spec-tokens deep",
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
    {"--moe-a2a-backend|--moe-runner-backend|--deepep-mode|--fp8-gemm-backend|--fp4-gemm-backend|"
     "--flashinfer-mxfp4-moe-precision|--deepep-dispatcher-output-dtype|--deepep-config|"
     "--triton-attention-split-tile-size",
     kValue,
     {},
     "remove it; kernels are chosen by shape",
     nullptr},
    {"--watchdog-timeout|--dist-timeout", kValue, {"--step-timeout-seconds %"}, "", nullptr},
    {"--log-requests", kFlag, {"--enable-log-requests"}, "", nullptr},
    {"--lora-paths", kValue, {"--enable-lora --lora-modules %"}, "", nullptr},

    {"--disable-flashinfer-autotune|--enable-aiter-allreduce-fusion|"
     "--enable-fused-grouped-gemm-combine|--disable-flashinfer-cutlass-moe-fp4-allgather|"
     "--triton-attention-reduce-in-fp32|--flashinfer-mla-disable-ragged|"
     "--disable-shared-experts-fusion|--enable-fused-qk-norm-rope|"
     "--enable-attn-tp-input-scattered|--enable-flashinfer-cutlass-moe|"
     "--enable-flashinfer-cutedsl-moe|--enable-flashinfer-trtllm-moe|"
     "--enable-triton-kernel-moe|--enable-flashinfer-mxfp4-moe|--enable-flashinfer-mla|"
     "--enable-flashmla|--disable-mla|--disable-flashinfer|--disable-flashinfer-sampling|"
     "--enable-nccl-nvls|--enable-symm-mem|--enable-mscclpp|--enable-torch-symm-mem|"
     "--enable-quant-communications",
     kFlag,
     {},
     "remove it; kernels are chosen by shape",
     nullptr},
    {"--ep-num-redundant-experts|--ep-dispatch-algorithm|--init-expert-location|"
     "--eplb-algorithm|--eplb-rebalance-num-iterations|--eplb-rebalance-layers-per-chunk|"
     "--eplb-min-rebalancing-utilization-threshold|--expert-distribution-recorder-mode|"
     "--expert-distribution-recorder-buffer-size|--moe-dense-tp-size|"
     "--moe-data-parallel-size|--moe-dp-size|--mooncake-ib-device|"
     "--moe-cluster-parallel-size",
     kValue,
     {},
     kExpertRanks,
     nullptr},
    {"--enable-ep-moe|--enable-deepep-moe",
     kFlag,
     {"--enable-expert-parallel"},
     "experts are dealt out to all ranks of --tensor-parallel-size",
     nullptr},
    {"--enable-expert-distribution-metrics|--enable-elastic-expert-backup|"
     "--enable-deepep-waterfill|--elastic-ep-rejoin",
     kFlag,
     {},
     kExpertRanks,
     nullptr},
    {"--attention-context-parallel-size|--attn-cp-size|--dsa-prefill-cp-mode|"
     "--nsa-prefill-cp-mode|--cp-size",
     kValue,
     {},
     kWholePrompts,
     nullptr},
    {"--enable-dsa-prefill-context-parallel|--enable-nsa-prefill-context-parallel",
     kFlag,
     {},
     kWholePrompts,
     nullptr},
    {"--kt-weight-path|--kt-method|--kt-cpuinfer|--kt-threadpool-count|--kt-num-gpu-experts|"
     "--kt-max-deferred-experts-per-token",
     kValue,
     {},
     "remove it; experts lie on the device with the rest",
     nullptr},
    {"--dllm-algorithm|--dllm-algorithm-config",
     kValue,
     {},
     "remove it; models write from left to right",
     nullptr},
    {"--mm-max-concurrent-calls|--mm-per-request-timeout|--mm-process-config|"
     "--limit-mm-data-per-request|"
     "--extra-visual-gen-options",
     kValue,
     {},
     kTexts,
     nullptr},
    {"--enable-broadcast-mm-inputs-process|--mm-enable-dp-encoder|--enable-mm-global-cache|"
     "--enable-prefix-mm-cache|--keep-mm-feature-on-device|"
     "--enable-precise-embedding-interpolation",
     kFlag,
     {},
     kTexts,
     nullptr},
    {"--modelopt-checkpoint-restore-path|--modelopt-checkpoint-save-path|"
     "--modelopt-export-path",
     kValue,
     {},
     "remove it; foretoken convert writes quantised folders",
     nullptr},
    {"--quantize-and-serve", kFlag, {"--quantization METHOD"}, "", nullptr},
    {"--torchao-config", kValue, {"--quantization METHOD"}, "", nullptr},
    {"--model-checksum",
     kPerhaps,
     {},
     "remove it; files of the Hub are verified while they are fetched",
     nullptr},
    {"--admin-api-key", kValue, {"--api-key %"}, "one key opens all routes", nullptr},
    {"--hf-chat-template-name",
     kValue,
     {},
     "remove it; a template named tool_use serves requests with tools",
     nullptr},
    {"--log-level-http|--soft-watchdog-timeout",
     kValue,
     {},
     "remove it; --log-level and --step-timeout-seconds hold for all",
     nullptr},
    {"--log-requests-format", kValue, {"--log-format %"}, "", nullptr},
    {"--log-requests-target", kValue, {}, "send stderr to the file: 2> FILE", nullptr},
    {"--tokenizer-metrics-custom-labels-header|--tokenizer-metrics-allowed-custom-labels|"
     "--bucket-time-to-first-token|--bucket-inter-token-latency|"
     "--bucket-e2e-request-latency|--prompt-tokens-buckets|--generation-tokens-buckets|"
     "--gc-warning-threshold-secs|--export-metrics-to-file-dir|"
     "--uvicorn-access-log-exclude-prefixes|--load-watch-interval|--prometheus-port",
     kValue,
     {},
     "remove it; /metrics has all there is, on --port",
     nullptr},
    {"--enable-metrics-for-all-schedulers|--collect-tokens-histogram|--show-time-cost|"
     "--export-metrics-to-file",
     kFlag,
     {},
     "remove it; /metrics has all there is",
     nullptr},
    {"--crash-on-nan", kPerhaps, {}, "remove it; there is nothing to choose", nullptr},
    {"--sleep-on-idle|--enable-dynamic-chunking|--incremental-streaming-output|"
     "--abort-on-priority-when-disabled|--disable-hybrid-swa-memory|"
     "--enable-lora-overlap-loading|--enable-profile-cuda-graph|--enable-cudagraph-gc|"
     "--enable-layerwise-nvtx-marker|--enable-tokenizer-batch-encode|"
     "--disable-tokenizer-batch-decode|--disable-outlines-disk-cache|"
     "--enable-torch-compile-debug-mode|--disable-piecewise-cuda-graph|"
     "--enforce-piecewise-cuda-graph|--disable-chunked-prefix-cache|"
     "--weight-loader-disable-mmap|--weight-loader-prefetch-checkpoints|"
     "--prefill-round-robin-balance|--enable-multi-layer-eagle|"
     "--fail-fast-on-attention-window-too-large",
     kFlag,
     {},
     "remove it; there is nothing to choose",
     nullptr},
    {"--checkpoint-engine-wait-weights-before-ready|--delete-ckpt-after-loading|"
     "--enable-memory-saver|--enable-draft-weights-cpu-backup|"
     "--remote-instance-weight-loader-start-seed-via-transfer-engine|--enable-hip-attention",
     kFlag,
     {},
     kNothingOfTheKind,
     nullptr},
    {"--enable-return-hidden-states",
     kFlag,
     {},
     "remove it; /pooling tells the last state of a text",
     nullptr},
    {"--allow-request-chat-template",
     kFlag,
     {},
     "remove it; templates of requests are not taken",
     nullptr},
    {"--prefill-max-requests|--prefill-delayer-token-usage-low-watermark|"
     "--prefill-delayer-queue-min-ratio|--prefill-delayer-max-delay-ms|"
     "--prefill-delayer-forward-passes-buckets|--prefill-delayer-wait-seconds-buckets|"
     "--pp-max-micro-batch-size|--max-micro-batch-size|--pp-async-batch-depth|"
     "--custom-sigquit-handler|--max-lora-chunk-size|--lora-drain-wait-threshold|"
     "--mamba-full-memory-ratio|--mamba-scheduler-strategy|--mamba-track-interval|"
     "--hierarchical-sparse-attention-extra-config|--multi-item-scoring-delimiter|"
     "--tbo-token-distribution-threshold|--piecewise-cuda-graph-tokens|"
     "--piecewise-cuda-graph-compiler|--piecewise-cuda-graph-max-tokens|"
     "--num-continuous-decode-steps|--scheduler-recv-interval|"
     "--dynamic-batch-tokenizer-batch-size|--dynamic-batch-tokenizer-batch-timeout|"
     "--debug-tensor-dump-output-folder|--debug-tensor-dump-layers|"
     "--debug-tensor-dump-input-file|--debug-tensor-dump-inject|--custom-weight-loader|"
     "--weight-loader-prefetch-num-threads|--remote-instance-weight-loader-seed-instance-ip|"
     "--remote-instance-weight-loader-seed-instance-service-port|"
     "--remote-instance-weight-loader-send-weights-group-ports|"
     "--remote-instance-weight-loader-backend|--decrypted-config-file|"
     "--decrypted-draft-config-file|--msprobe-dump-config|--hybrid-kvcache-ratio|"
     "--hip-attention-config",
     kValue,
     {},
     kNothingOfTheKind,
     nullptr},
};

}  // namespace sglang_table

std::span<const ForeignFlag> sglang_flag_table() { return sglang_table::kTable; }

}  // namespace foretoken
