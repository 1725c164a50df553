#include "engine/start/agreed_config.h"

#include <foretoken/version.h>

#include <filesystem>

#include "base/text_file.h"

namespace foretoken {
namespace {

std::string model_identity(const std::string& model) {
  const Result<std::string> text = read_text_file(std::filesystem::path(model) / "config.json");
  return text.ok() ? group::digest(text.value()) : model;
}

std::string text_of(const SpeculativeConfig& drafter) {
  std::string text = drafter.method + " " + drafter.revision + " " + drafter.length_policy + " " +
                     drafter.rejection_sample_method + " " + drafter.draft_sample_method;
  if (!drafter.model.empty()) text += " " + model_identity(drafter.model);
  for (const int number :
       {drafter.num_speculative_tokens, drafter.prompt_lookup_min, drafter.prompt_lookup_max,
        drafter.max_model_len, drafter.draft_tensor_parallel_size, drafter.draft_vocab_size,
        int{drafter.use_heterogeneous_vocab}}) {
    text += " " + std::to_string(number);
  }
  for (const DraftSchedule& part : drafter.num_speculative_tokens_per_batch_size) {
    text += " " + std::to_string(part.first) + "-" + std::to_string(part.last) + ":" +
            std::to_string(part.num_speculative_tokens);
  }
  for (const auto& [name, value] : drafter.method_fields) {
    text += " " + name + "=" + std::to_string(value);
  }
  for (const double rate : drafter.synthetic_acceptance_rates) text += " " + std::to_string(rate);
  return text + " " + std::to_string(drafter.synthetic_acceptance_length);
}

std::string text_of(const std::vector<SpeculativeConfig>& drafters) {
  if (drafters.empty()) return "none";
  std::string text;
  for (const SpeculativeConfig& drafter : drafters) text += text_of(drafter) + ";";
  return drafters.front().method + " " + group::digest(text);
}

}  // namespace

group::AgreedParts agreed_parts(const EngineConfig& config) {
  const ParallelConfig& parallel = config.parallel;
  group::AgreedParts parts = {{"foretoken of version", kVersion},
                              {"a --model whose config.json is", model_identity(config.model)},
                              {"--revision", config.revision},
                              {"--device", config.device},
                              {"--dtype", config.dtype},
                              {"--quantization", config.quantization},
                              {"--kv-cache-dtype", config.kv_cache_dtype},
                              {"--load-format", config.load_format},
                              {"--hf-overrides", group::digest(config.hf_overrides)},
                              {"--attention-backend", config.attention_backend},
                              {"--batch-invariant", config.batch_invariant},
                              {"--scheduling-policy", config.scheduling_policy},
                              {"--cudagraph-mode", config.cudagraph_mode},
                              {"--speculative-config", text_of(config.speculative)},
                              {"--communicator", parallel.communicator}};
  const auto add = [&](const char* name, int64_t value) {
    parts.push_back({name, std::to_string(value)});
  };
  add("--disable-custom-all-reduce", parallel.disable_custom_all_reduce ? 1 : 0);
  add("--enable-expert-parallel", parallel.enable_expert_parallel ? 1 : 0);
  add("--tensor-parallel-size", parallel.tensor_parallel_size);
  add("--pipeline-parallel-size", parallel.pipeline_parallel_size);
  add("--decode-context-parallel-size", parallel.decode_context_parallel_size);
  add("--max-model-len", config.max_model_len);
  add("--max-num-seqs", config.max_num_seqs);
  add("--max-num-batched-tokens", config.max_num_batched_tokens);
  add("--long-prefill-token-threshold", config.long_prefill_token_threshold);
  add("--block-size", config.block_size);
  add("--enable-lora", config.enable_lora ? 1 : 0);
  add("--max-loras", config.max_loras);
  add("--max-lora-rank", config.max_lora_rank);
  add("--num-gpu-blocks-override", config.num_gpu_blocks_override);
  add("--kv-cache-memory-bytes", config.kv_cache_memory_bytes);
  add("--enable-prefix-caching", config.enable_prefix_caching ? 1 : 0);
  add("--enforce-eager", config.enforce_eager ? 1 : 0);
  add("--steps-in-flight", config.steps_in_flight);
  add("--max-logprobs", config.max_logprobs);
  add("--seed", static_cast<int64_t>(config.seed));
  return parts;
}

}  // namespace foretoken
