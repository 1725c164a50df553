#include "config/engine_foreign_names.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <vector>

namespace foretoken {
namespace foreign_table {

constexpr auto kFlag = ForeignFlag::Takes::kNothing;
constexpr auto kValue = ForeignFlag::Takes::kValue;
constexpr auto kPerhaps = ForeignFlag::Takes::kPerhaps;

// What asks for the default there ("-c 0", "-n -1", "-s -1") is the default here.
std::string above_zero(const std::string& value) {
  return std::atof(value.c_str()) > 0 ? value : std::string();
}

std::string device_of_layers(const std::string& layers) { return layers == "0" ? "cpu" : "cuda"; }

std::string cache_type(const std::string& type) { return type == "q8_0" ? "int8" : "auto"; }

// llama.cpp's kinds of drafts: "draft-mtp", "ngram-simple", or several, "draft-mtp,ngram-mod", of
// which look-ups come first here; "none" is the default.
std::string method_of_type(const std::string& types) {
  std::string look_up, others;
  for (size_t begin = 0; begin <= types.size();) {
    const size_t end = std::min(types.find(',', begin), types.size());
    std::string kind = types.substr(begin, end - begin);
    begin = end + 1;
    if (kind == "none" || kind.empty()) continue;
    if (kind.starts_with("ngram")) {
      look_up = "ngram";
      continue;
    }
    if (kind.starts_with("draft-")) kind = kind.substr(6);
    if (kind == "draft" || kind == "simple") kind = "draft_model";
    others += (others.empty() ? "" : "+") + kind;
  }
  if (look_up.empty() || others.empty()) return look_up + others;
  return look_up + "+" + others;
}

constexpr const char* kByFit =
    "remove it; models run on one device as a whole, or on ranks with -tp";
constexpr const char* kConfig =
    "remove it; positions are scaled as config.json says, over which "
    "--hf-overrides lays changes";
constexpr const char* kNoSampler = "remove it; there is no such sampler";
constexpr const char* kExpertsOnDevice = "remove it; experts lie on the device with the rest";
constexpr const char* kDraftModel = "remove it; the draft model runs as the model does";
constexpr const char* kNothingOfTheKind = "remove it; there is nothing of the kind";

constexpr ForeignFlag kTable[] = {
    // llama.cpp: the model.
    {"-m", kValue, {"--model %"}, "", nullptr},
    {"-hf|-hfr|--hf-repo", kValue, {"--model %"}, "", nullptr},
    {"-hff|--hf-file", kValue, {"--model %"}, "fetch the file before, with hf download", nullptr},
    {"-hft|--hf-token", kValue, {}, "set the environment variable HF_TOKEN", nullptr},
    {"-mu|--model-url|-dr|--docker-repo",
     kValue,
     {},
     "fetch the file and name it with --model",
     nullptr},
    {"-dev|--main-gpu|-mg", kValue, {"--device cuda"}, "choose with CUDA_VISIBLE_DEVICES", nullptr},
    {"--list-devices", kFlag, {}, "foretoken inspect shows them", nullptr},
    {"-ngl|--gpu-layers|--n-gpu-layers", kValue, {"--device %"}, "", device_of_layers},
    {"-sm|--split-mode|-ts|--tensor-split", kValue, {}, kByFit, nullptr},
    {"-ot|--override-tensor|-fit|--fit|-fitt|--fit-target|-fitc|--fit-ctx|-ncffn|--n-cpu-ffn|"
     "--moe-cache-mib",
     kValue,
     {},
     kByFit,
     nullptr},
    {"-lm|--load-mode|-lzm|--lazy-mode", kValue, {}, "remove it; weights are read", nullptr},
    {"-cmoe|--cpu-moe", kFlag, {}, kExpertsOnDevice, nullptr},
    {"-ncmoe|--n-cpu-moe", kValue, {}, kExpertsOnDevice, nullptr},
    {"--mlock", kFlag, {}, "remove it; weights are read into memory", nullptr},
    {"--no-mmap|--mmap|-dio|--direct-io|--no-direct-io",
     kFlag,
     {},
     "remove it; weights are read, not mapped",
     nullptr},
    {"--numa|--numa-node|--prio|--prio-batch|-C|--cpu-mask|-Cr|--cpu-range|--cpu-strict|"
     "--cpu-strict-batch|--poll|--poll-batch|-Cb|--cpu-mask-batch|-Crb|--cpu-range-batch",
     kValue,
     {},
     "remove it; threads are bound as numactl or taskset start the program",
     nullptr},
    {"--lora|--lora-scaled",
     kValue,
     {"--enable-lora --lora-modules NAME=FOLDER"},
     "FOLDER is the adapter as PEFT saves it",
     nullptr},
    {"--control-vector|--control-vector-scaled|--control-vector-layer-range",
     kValue,
     {},
     "remove it; control vectors are not applied",
     nullptr},
    {"-mm|--image-min-tokens|--image-max-tokens|--media-path|--mmproj|-mmu|--mmproj-url|-mmdev|"
     "--mmproj-device|--mtmd-batch-max-tokens|--video-fps|--video-timestamp-interval|"
     "--video-ffmpeg-dir",
     kValue,
     {},
     "remove it; only texts are served",
     nullptr},
    {"--no-mmproj|--mmproj-auto|--no-mmproj-auto|--mmproj-offload|--no-mmproj-offload",
     kFlag,
     {},
     "remove it; only texts are served",
     nullptr},
    {"--embd-gemma-default|--fim-qwen-1.5b-default|--fim-qwen-3b-default|--fim-qwen-7b-default|"
     "--fim-qwen-7b-spec|--fim-qwen-14b-spec|--fim-qwen-30b-default|--gpt-oss-20b-default|"
     "--gpt-oss-120b-default|--vision-gemma-4b-default|--vision-gemma-12b-default",
     kFlag,
     {},
     "name the model itself, as in --model org/name:Q4_K_M",
     nullptr},
    {"--override-kv", kValue, {"--hf-overrides JSON"}, "its names are config.json's", nullptr},
    {"--rope-freq-base|--rope-freq-scale|--rope-scale|--yarn-orig-ctx|--yarn-ext-factor|"
     "--yarn-attn-factor|--yarn-beta-slow|--yarn-beta-fast",
     kValue,
     {},
     kConfig,
     nullptr},

    // llama.cpp: contexts and batches.
    {"-c|--ctx-size|--kv-unified-per-slot", kValue, {"--max-model-len %"}, "", above_zero},
    {"-b|--batch-size|-ub|--ubatch-size", kValue, {"--max-num-batched-tokens %"}, "", above_zero},
    {"-np|--parallel", kValue, {"--max-num-seqs %"}, "", above_zero},
    {"-t|--threads", kValue, {"--cpu-threads %"}, "", above_zero},
    {"-tb|--threads-batch", kValue, {}, "remove it; --cpu-threads holds for all steps", nullptr},
    {"-fa|--flash-attn", kPerhaps, {}, "remove it; attention never stores its scores", nullptr},
    {"-cb|--cont-batching", kFlag, {}, "remove it; batches always go on", nullptr},
    {"-nocb|--no-cont-batching", kFlag, {"--max-num-seqs 1"}, "", nullptr},
    {"-ctk|--cache-type-k|-ctv|--cache-type-v", kValue, {"--kv-cache-dtype %"}, "", cache_type},
    {"-kvu|-kvo|--kv-offload|--repack|--op-offload|--no-op-offload|--cache-idle-slots|"
     "--no-cache-idle-slots|--prefill-assistant|--no-prefill-assistant|--skip-chat-parsing|"
     "--no-skip-chat-parsing|--reuse-port|--kv-unified|--swa-full|-nkvo|--no-kv-offload|"
     "--context-shift|--no-context-shift|--warmup|--no-warmup|--check-tensors|--no-host|-nr|-no-"
     "kvu|"
     "--no-repack|--perf|--no-perf|"
     "--no-kv-unified",
     kFlag,
     {},
     "remove it; there is nothing to choose",
     nullptr},
    {"--keep|-dt|--defrag-thold|-cram|--cache-ram|-ctxcp|--ctx-checkpoints|--cache-reuse|"
     "--swa-checkpoints|-cms|--checkpoint-min-step",
     kValue,
     {},
     "remove it; blocks of prompts are kept and shared by themselves",
     nullptr},
    {"--prompt-cache|--slot-save-path", kValue, {}, "remove it; caches are not saved", nullptr},
    {"--no-cache-prompt", kFlag, {"--no-enable-prefix-caching"}, "", nullptr},
    {"--cache-prompt", kFlag, {"--enable-prefix-caching"}, "", nullptr},

    // llama.cpp: what is drawn. A server's own defaults lie over the model's.
    {"-n|--predict|--n-predict",
     kValue,
     {"--max-tokens %", "--override-generation-config '{\"max_new_tokens\": %}'"},
     "beside -r or --master-addr -n is --nnodes, as in vLLM",
     above_zero},
    {"-s", kValue, {"--seed %"}, "", above_zero},
    {"--temp|--temperature",
     kValue,
     {"--temperature %", "--override-generation-config '{\"temperature\": %}'"},
     "",
     nullptr},
    {"--top-k",
     kValue,
     {"--top-k %", "--override-generation-config '{\"top_k\": %}'"},
     "",
     nullptr},
    {"--top-p",
     kValue,
     {"--top-p %", "--override-generation-config '{\"top_p\": %}'"},
     "",
     nullptr},
    {"--min-p",
     kValue,
     {"--min-p %", "--override-generation-config '{\"min_p\": %}'"},
     "",
     nullptr},
    {"--repeat-penalty|--repetition-penalty",
     kValue,
     {"--repetition-penalty %", "--override-generation-config '{\"repetition_penalty\": %}'"},
     "",
     nullptr},
    {"--max-tokens|--max-new-tokens|--max-length",
     kValue,
     {"--max-tokens %", "--override-generation-config '{\"max_new_tokens\": %}'"},
     "",
     nullptr},
    {"--presence-penalty|--frequency-penalty|-l|--logit-bias|--ignore-eos|--embd-normalize",
     kPerhaps,
     {},
     "send it with each request",
     nullptr},
    {"--repeat-last-n", kValue, {}, "remove it; penalties look at the whole text", nullptr},
    {"--typical|--typical-p|--dry-sequence-breaker|--adaptive-target|--adaptive-decay|--mirostat|"
     "--mirostat-lr|--mirostat-ent|--dry-multiplier|--dry-base|--dry-allowed-length|"
     "--dry-penalty-last-n|--xtc-probability|--xtc-threshold|--top-nsigma|--top-n-sigma|--dynatemp-"
     "range|"
     "--dynatemp-exp|--samplers|--sampling-seq|--sampler-seq",
     kValue,
     {},
     kNoSampler,
     nullptr},
    {"-bs|--backend-sampling", kFlag, {}, "remove it; the device always draws", nullptr},
    {"--grammar|--grammar-file|-j|--json-schema|-jf|--json-schema-file",
     kValue,
     {},
     "send it with each request",
     nullptr},

    // llama.cpp: prompts and templates.
    {"-p", kValue, {"--prompt %"}, "clients send prompts", nullptr},
    {"-f|--file|-bf|--binary-file", kValue, {"--prompt-file %"}, "clients send prompts", nullptr},
    {"-sys|--system-prompt", kValue, {"--system %"}, "send it as the first message", nullptr},
    {"-sysf|--system-prompt-file",
     kValue,
     {},
     "use --system \"$(cat FILE)\" of foretoken chat",
     nullptr},
    {"-cnv|--conversation|-i|--interactive|-if|--interactive-first|-mli|--multiline-input",
     kFlag,
     {},
     "remove it; foretoken chat is for conversations",
     nullptr},
    {"-no-cnv|--no-conversation|-st|--single-turn|-e|--escape|--no-escape|-sp|--special|"
     "--no-display-prompt|--simple-io|--reasoning-preserve|--no-reasoning-preserve|--spm-infill|"
     "--lora-init-without-apply|--no-log-jsonl|--no-log-prefix|--no-log-timestamps|"
     "--no-cors-credentials|"
     "--verbose-prompt|--license|-cl|--cache-list|--completion-bash|--prompt-cache-all",
     kFlag,
     {},
     "remove it",
     nullptr},
    {"--jinja|--no-jinja", kFlag, {}, "remove it; the model's template is always used", nullptr},
    {"--chat-template-file", kValue, {"--chat-template %"}, "", nullptr},
    {"--chat-template-kwargs", kValue, {"--default-chat-template-kwargs %"}, "", nullptr},
    {"--reasoning-effort",
     kValue,
     {"--default-chat-template-kwargs '{\"reasoning_effort\": \"%\"}'"},
     "",
     nullptr},
    {"--reasoning-format", kValue, {}, "use --reasoning-parser of foretoken serve", nullptr},
    {"-rea|--reasoning",
     kValue,
     {},
     "remove it; --default-chat-template-kwargs '{\"enable_thinking\": false}' turns thinking off",
     nullptr},
    {"--reasoning-budget|--reasoning-budget-message",
     kValue,
     {},
     "remove it; requests turn thinking off with enable_thinking",
     nullptr},

    // llama.cpp: drafts.
    {"-md|--model-draft|--spec-draft-model|-hfd|-hfrd|--hf-repo-draft|--spec-draft-hf",
     kValue,
     {"--spec-method draft_model --spec-model %"},
     "",
     nullptr},
    {"--spec-type", kValue, {"--spec-method %"}, "", method_of_type},
    {"--spec-default", kFlag, {"--spec-method ngram"}, "", nullptr},
    {"--spec-ngram-size-n|--spec-ngram-size-m|--spec-ngram-min-hits|--spec-ngram-mod-n-match|"
     "--spec-ngram-mod-n-min|--spec-ngram-mod-n-max|-lcs|--lookup-cache-static|-lcd|"
     "--lookup-cache-dynamic|--spec-ngram-simple-size-n|--spec-ngram-simple-size-m|"
     "--spec-ngram-simple-min-hits|--spec-ngram-map-k-size-n|--spec-ngram-map-k-size-m|"
     "--spec-ngram-map-k-min-hits|--spec-ngram-map-k4v-size-n|--spec-ngram-map-k4v-size-m|"
     "--spec-ngram-map-k4v-min-hits",
     kValue,
     {},
     "remove it; --speculative-config '{\"method\": \"ngram\", \"prompt_lookup_max\": 4}' says how "
     "long a look-up is",
     nullptr},
    {"--draft|--draft-n|--draft-max|--spec-draft-n-max", kValue, {"--spec-tokens %"}, "", nullptr},
    {"--draft-min|--draft-n-min|--draft-p-min|--draft-p-split|--spec-draft-n-min|"
     "--spec-draft-p-min|--spec-draft-p-split",
     kValue,
     {},
     "remove it; lengths adapt to what pays (--spec-length-policy)",
     nullptr},
    {"-ngld|--spec-draft-ngl|--spec-draft-device|--spec-draft-threads|--spec-draft-type-k|"
     "--spec-draft-type-v|--gpu-layers-draft|--n-gpu-layers-draft|-cd|--ctx-size-draft|-devd|"
     "--device-draft|-td|--threads-draft|-ctkd|--cache-type-k-draft|-ctvd|"
     "--cache-type-v-draft|--spec-draft-poll|--spec-draft-cpu-mask|"
     "--spec-draft-override-tensor|-otd|--spec-draft-n-cpu-moe|--spec-draft-ncmoe|-ncmoed|"
     "--n-cpu-moe-draft|--spec-draft-threads-batch|-tbd|--threads-batch-draft|-Cd|"
     "--cpu-mask-draft|--spec-draft-cpu-range|-Crd|--cpu-range-draft|--spec-draft-cpu-strict|"
     "--cpu-strict-draft|--spec-draft-prio|--prio-draft|--poll-draft|"
     "--spec-draft-cpu-mask-batch|-Cbd|--cpu-mask-batch-draft|--spec-draft-cpu-strict-batch|"
     "--cpu-strict-batch-draft|--spec-draft-prio-batch|--prio-batch-draft|"
     "--spec-draft-poll-batch|--poll-batch-draft|--override-tensor-draft",
     kValue,
     {},
     kDraftModel,
     nullptr},
    {"--spec-draft-cpu-moe|--spec-draft-backend-sampling|--no-spec-draft-backend-sampling|"
     "-cmoed|--cpu-moe-draft",
     kFlag,
     {},
     kDraftModel,
     nullptr},
    {"--spec-draft-sampling", kValue, {}, "remove it; drafts never change the text", nullptr},

    // llama.cpp: the server.
    {"-a|--alias", kValue, {"--served-model-name %"}, "", nullptr},
    {"-to|--timeout", kValue, {"--request-timeout-seconds %"}, "", nullptr},
    {"--threads-http", kValue, {"--http-threads %"}, "", above_zero},
    {"--api-prefix", kValue, {"--root-path %"}, "", nullptr},
    {"--ssl-key-file", kValue, {"--ssl-keyfile %"}, "", nullptr},
    {"--ssl-cert-file", kValue, {"--ssl-certfile %"}, "", nullptr},
    {"--metrics|--ui|--props|--slots|--embedding|--embeddings|--rerank|--reranking|--webui",
     kFlag,
     {},
     "remove it; every server has all its routes",
     nullptr},
    {"--no-webui|--no-ui|--no-slots", kFlag, {}, "remove it; a proxy can close routes", nullptr},
    {"-sps|--webui-config|--ui-config|--models-preset|--sleep-idle-seconds|--tools|--rpc|"
     "--slot-prompt-similarity|--path|--models-dir|--models-max|--ui-config-file|"
     "--webui-config-file|--tools-runtime|--mcp-servers-config|--mcp-servers-json|--tags|"
     "--log-prompts-dir|--spec-synth-len|--spec-synth-rates",
     kValue,
     {},
     kNothingOfTheKind,
     nullptr},
    {"--ui-mcp-proxy|--webui-mcp-proxy|--no-ui-mcp-proxy|--no-webui-mcp-proxy|-ag|--agent|-no-ag|"
     "--no-agent|--models-autoload|--no-models-autoload",
     kFlag,
     {},
     kNothingOfTheKind,
     nullptr},
    {"--cors-origins|--cors-methods|--cors-headers",
     kValue,
     {},
     "use --allowed-origins, --allowed-methods and --allowed-headers of foretoken serve, JSON "
     "lists",
     nullptr},
    {"--cors-credentials", kFlag, {"--allow-credentials"}, "", nullptr},
    {"--sse-ping-interval", kValue, {"--sse-keep-alive-interval %"}, "", above_zero},
    {"--log-jsonl", kFlag, {"--log-format json"}, "", nullptr},
    {"-v|--verbose|--log-verbose", kFlag, {"--log-level debug"}, "", nullptr},
    {"-lv|--verbosity|--log-verbosity", kValue, {"--log-level debug"}, "", nullptr},
    {"--log-disable", kFlag, {"--log-level error"}, "", nullptr},
    {"--log-file", kValue, {}, "send stderr to the file: 2> FILE", nullptr},
    {"--log-colors|--log-prefix|--log-timestamps", kPerhaps, {}, "remove it", nullptr},
    {"--offline", kFlag, {}, "set the environment variable HF_HUB_OFFLINE=1", nullptr},
};

}  // namespace foreign_table

std::span<const ForeignFlag> foreign_flag_table() {
  static const std::vector<ForeignFlag> all = [] {
    std::vector<ForeignFlag> flags(std::begin(foreign_table::kTable),
                                   std::end(foreign_table::kTable));
    for (const auto& others : {sglang_flag_table(), launcher_flag_table()}) {
      flags.insert(flags.end(), others.begin(), others.end());
    }
    return flags;
  }();
  return all;
}

}  // namespace foretoken
