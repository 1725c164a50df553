#include "engine/engine_parts.h"

#include <gtest/gtest.h>

#include "draft/registry.h"
#include "engine/dialled_engine.h"
#include "engine/start/resolve_config.h"
#include "model/registry.h"

namespace foretoken {
namespace {

Result<std::unique_ptr<Drafter>> make_ngram(const EngineParts& parts, const std::string& folder,
                                            int num_draft_tokens) {
  const SpeculativeConfig speculative = ngram_config(num_draft_tokens);
  return make_drafter({.config = speculative,
                       .device = *parts.device,
                       .target = *parts.model,
                       .target_folder = folder,
                       .folder = folder,
                       .max_model_len = EngineParts::kMaxLen,
                       .max_rows = EngineParts::kMaxRows + EngineParts::kNumSlots,
                       .max_spans = EngineParts::kNumSlots,
                       .token_map = {},
                       .token_map_back = {},
                       .draft_vocab_ids = {}});
}

}  // namespace

Result<std::unique_ptr<EngineParts>> EngineParts::make(const std::string& model_folder,
                                                       int num_draft_tokens,
                                                       const GraphConfig& graphs,
                                                       int captures_left) {
  auto parts = std::make_unique<EngineParts>();
  EngineConfig config;
  config.device = engine_test_device();
  FT_ASSIGN_OR_RETURN(parts->device, open_configured_device(config));
  FT_ASSIGN_OR_RETURN(parts->queue, parts->device->make_queue());
  parts->counting = std::make_unique<test::CountingQueue>(*parts->queue);
  parts->counting->captures_left = captures_left;
  const int num_blocks = kNumSlots * kMaxLen / kBlockSize + 1;
  LoadOptions options;
  options.max_rows = kMaxRows;
  options.max_logits_rows = kMaxRows;
  FT_ASSIGN_OR_RETURN(parts->model, load_model(*parts->device, model_folder, options));
  const StepMemoryConfig memory_config{
      .num_slots = kNumSlots,
      .num_blocks = num_blocks,
      .block_size = kBlockSize,
      .max_blocks = kMaxLen / kBlockSize,
      .vocab_size = parts->model->config().vocab_size,
      .max_rows = kMaxRows,
      .max_logits_rows = kMaxRows,
      .limits = {kNumSlots, kMaxRows + kNumSlots, 256, 8192},
      .result_limits = {kNumSlots, kMaxRows, kMaxTop, parts->model->config().hidden_size}};
  if (num_draft_tokens > 0) {
    FT_ASSIGN_OR_RETURN(parts->drafter, make_ngram(*parts, model_folder, num_draft_tokens));
    parts->limits.drafters = {{"ngram", num_draft_tokens}};
    parts->grants.push_back({.num_draft_tokens = num_draft_tokens});
  }
  FT_ASSIGN_OR_RETURN(parts->memory, StepMemory::make(*parts->device, memory_config));
  const std::vector<KvGroupSpec> groups = parts->model->kv_groups();
  FT_CHECK_MSG(groups.size() == 1, "the parts are made for models without windowed layers");
  FT_ASSIGN_OR_RETURN(parts->kv_cache,
                      KvCache::create(*parts->device, groups[0], num_blocks, kBlockSize));
  parts->scheduler = std::make_unique<Scheduler>(SchedulerConfig{
      .num_blocks = num_blocks,
      .block_size = kBlockSize,
      .max_num_seqs = kNumSlots,
      .max_num_batched_tokens = kMaxRows,
      .max_init_words = memory_config.limits.max_words,
      .max_block_assignments = memory_config.limits.max_block_updates,
      .drafters = std::vector<SchedulerDrafter>(num_draft_tokens > 0 ? 1 : 0, {.looks_up = true})});
  parts->policy = std::make_unique<LengthController>(
      LengthControllerConfig{.mode = LengthMode::kFixed,
                             .schedule = {},
                             .drafters = std::vector<LengthControllerConfig::PolicyDrafter>(
                                 num_draft_tokens > 0 ? 1 : 0,
                                 {.max_draft_tokens = num_draft_tokens, .looks_up = true})},
      parts->step_times);
  std::vector<Drafter*> drafters;
  if (parts->drafter != nullptr) drafters.push_back(parts->drafter.get());
  parts->runner = std::make_unique<ModelRunner>(
      *parts->device, *parts->counting, *parts->model, KvCaches{parts->kv_cache.get(), nullptr},
      std::move(drafters), *parts->memory,
      ModelRunnerConfig{.max_rows = kMaxRows,
                        .max_logits_rows = kMaxRows,
                        .logits_tile = 16,
                        .max_processor_rows = 4,
                        .max_len = kMaxLen,
                        .max_catch_up_rows = kMaxRows + kNumSlots,
                        .graphs = graphs,
                        .hooks = {}});
  FT_RETURN_IF_ERROR(parts->runner->start());
  FT_RETURN_IF_ERROR(parts->runner->capture_usual_steps());
  parts->limits = {.max_model_len = kMaxLen,
                   .max_blocks = kMaxLen / kBlockSize,
                   .vocab_size = parts->model->config().vocab_size,
                   .drafters = std::move(parts->limits.drafters),
                   .max_logprobs = kMaxTop,
                   .max_processor_rows = 4,
                   .hidden_size = parts->model->config().hidden_size,
                   .seed = 0,
                   .eos_token_ids = parts->model->config().eos_token_ids};
  return parts;
}

EngineParts::~EngineParts() {
  if (queue != nullptr) (void)queue->drain();
}

std::unique_ptr<RequestState> EngineParts::record(Request request, uint64_t number) const {
  auto built = build_request(std::move(request), nullptr, limits, nullptr, number);
  EXPECT_TRUE(built.ok()) << built.status().message();
  return built.ok() ? std::move(built.value().front()) : nullptr;
}

}  // namespace foretoken
