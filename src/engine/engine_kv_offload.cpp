#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "compat/compat.h"
#include "engine/engine_impl.h"
#include "engine/start/resolve_config.h"

// KV blocks in host memory, and the scheduler, which decides about them.

namespace foretoken {
namespace {

// Shorter prompts end soon enough.
int paced_prompt_len(const EngineConfig& config) {
  constexpr int kLeast = 256;
  if (config.long_prefill_token_threshold != -1) return 0;
  return std::max(config.max_num_batched_tokens / 4, kLeast);
}

// Half of a wave of the device's products, for which it has tiles of half the size, and of a
// mixture so many that an expert multiplies a tile of 128; 0 where these are most of a step.
int share_rows(const EngineConfig& config, int wave_rows, const ExpertConfig& experts) {
  constexpr int kTileRows = 128;
  if (paced_prompt_len(config) == 0 || wave_rows == 0) return 0;
  int rows = wave_rows / 2;
  if (experts.count > 0) {
    const int wanted = kTileRows * experts.count / std::max(experts.top_k, 1);
    rows *= std::max((wanted + rows - 1) / rows, 1);
  }
  return 2 * rows <= config.max_num_batched_tokens ? rows : 0;
}

}  // namespace

// What a block of the full group has but for ids and its header.
std::vector<BlockPart> EngineImpl::parts_of_blocks() const {
  std::vector<BlockPart> parts = kv_cache_->block_parts();
  for (const auto& drafter : drafters_) {
    if (!ranks_.stages().is_last()) break;
    for (const BlockPart& part : drafter->block_parts()) parts.push_back(part);
  }
  return parts;
}

// Everything that a KV block has, of either group, and a snapshot of states.
KvOffloadParts EngineImpl::offload_parts(int block_size) const {
  const BatchState& batch = memory_->batch;
  KvOffloadPart full{
      .num_places = num_blocks_.full, .headers = batch.page_headers, .arrays = parts_of_blocks()};
  full.arrays.push_back({reinterpret_cast<std::byte*>(batch.token_pages),
                         int64_t{batch.block_size} * static_cast<int64_t>(sizeof(int32_t))});
  int64_t expected = kv_cache_->bytes_per_block() + full.arrays.back().bytes;
  for (const auto& drafter : drafters_) {
    if (!ranks_.stages().is_last()) break;
    expected += drafter->bytes_per_block(block_size);
  }
  KvOffloadPart windowed{.num_places = num_blocks_.windowed};
  if (window_cache_ != nullptr) {
    windowed.arrays = window_cache_->block_parts();
    expected += window_cache_->bytes_per_block();
  }
  int64_t bytes_of_all = 0;
  for (const KvOffloadPart* part : {&full, &windowed}) {
    for (const BlockPart& array : part->arrays) bytes_of_all += array.bytes;
  }
  FT_CHECK_MSG(bytes_of_all == expected, "everything that a KV block has must move");
  KvOffloadPart states{.first_place = 0, .num_places = static_cast<int>(info_.num_state_snapshots)};
  if (state_store_ != nullptr) states.arrays = state_store_->parts();
  return {std::move(full), std::move(windowed), std::move(states)};
}

Status EngineImpl::make_kv_offload(const ResolvedConfig& config) {
  if (config.kv_offloading_size == 0 && config.kv_offloading_tokens == 0) return {};
  if (config.kv_offloading_backend != "native" && ranks_.is_first()) {
    FT_LOG(warn, "--kv-offloading-backend {} has no effect: the engine itself keeps the blocks",
           config.kv_offloading_backend);
  }
  if (config.kv_offloading_size > 0 && config.kv_offloading_tokens > 0 && ranks_.is_first()) {
    FT_LOG(warn,
           "--kv-offloading-tokens {} says how much host memory keeps; --kv-offloading-size {} "
           "beside it has no effect, leave one of the two out",
           config.kv_offloading_tokens, config.kv_offloading_size);
  }
  // What the loaded model has decided.
  Combination decided = config.parts;
  decided.prefix_caching = config.enable_prefix_caching;
  FT_RETURN_IF_ERROR(compat(decided));
  const KvOffloadParts parts = offload_parts(config.block_size);
  constexpr double kGiB = 1 << 30;
  const int64_t bytes =
      config.kv_offloading_tokens > 0
          ? bytes_of_blocks(parts, (config.kv_offloading_tokens - 1) / config.block_size + 1)
          : static_cast<int64_t>(config.kv_offloading_size * kGiB / ranks_.size());
  FT_ASSIGN_OR_RETURN(host_images_, count_images(parts, bytes));
  // Stages have different numbers of layers; all keep the same.
  for (int& count : host_images_) {
    FT_ASSIGN_OR_RETURN(const int64_t least, ranks_.least(count, "sizing the KV offload"));
    count = static_cast<int>(least);
  }
  const int max_moves =
      memory_->limits().max_block_updates + static_cast<int>(info_.num_state_snapshots);
  FT_ASSIGN_OR_RETURN(kv_offload_,
                      KvOffload::make(*device_, *queue_, parts, host_images_, max_moves));
  info_.num_host_blocks = host_images_[static_cast<size_t>(HostPart::kFull)];
  info_.host_block_bytes = ranks_.size() * (kv_offload_->image_bytes(HostPart::kFull) +
                                            kv_offload_->image_bytes(HostPart::kWindowed));
  const int num_states = host_images_[static_cast<size_t>(HostPart::kStates)];
  const int64_t state_bytes =
      num_states * kv_offload_->image_bytes(HostPart::kStates) * ranks_.size();
  if (!ranks_.is_first()) return {};
  FT_LOG(info, "KV offload: {} tokens in {} MiB of host memory",
         info_.num_host_blocks * config.block_size,
         (info_.num_host_blocks * info_.host_block_bytes) >> 20);
  if (num_states > 0) {
    FT_LOG(info, "KV offload: {} snapshots of states in {} MiB", num_states, state_bytes >> 20);
  }
  return {};
}

void EngineImpl::make_scheduler(const ResolvedConfig& config) {
  const std::vector<KvGroupSpec> groups = model_->kv_groups();
  const auto wave_rows = static_cast<int>(device_->rows_of_a_wave(model_->config().hidden_size));
  SchedulerConfig scheduler{
      .num_blocks = num_blocks_.full,
      .num_window_blocks = num_blocks_.windowed,
      .window = groups.size() > 1 ? groups[1].window : 0,
      .block_size = config.block_size,
      .max_num_seqs = config.max_num_seqs,
      .max_num_batched_tokens = config.max_num_batched_tokens,
      .long_prefill_token_threshold = std::max(config.long_prefill_token_threshold, 0),
      .paced_prompt_len = paced_prompt_len(config),
      .wave_rows = wave_rows,
      .share_rows =
          config.whole_prompts ? 0 : share_rows(config, wave_rows, model_->config().experts),
      .max_logits_rows = config.max_num_batched_tokens,
      .max_init_words = memory_->limits().max_words,
      .max_block_assignments = memory_->limits().max_block_updates,
      .prefix_caching = config.enable_prefix_caching,
      .num_host_blocks = host_images_[static_cast<size_t>(HostPart::kFull)],
      .num_host_windows = host_images_[static_cast<size_t>(HostPart::kWindowed)],
      .num_host_states = host_images_[static_cast<size_t>(HostPart::kStates)],
      .num_snapshots = static_cast<int>(info_.num_state_snapshots),
      .whole_prompts = config.whole_prompts,
      .num_stages = config.parallel.pipeline_parallel_size,
      .num_adapter_slots = num_adapter_slots_,
      .policy = config.policy};
  for (const auto& drafter : drafters_) {
    const DrafterTraits& traits = drafter->traits();
    scheduler.drafters.push_back({.looks_up = traits.looks_up,
                                  .has_kv = traits.has_kv,
                                  .keeps_written = traits.keeps_written,
                                  .entries_ahead = traits.entries_ahead,
                                  .max_len = traits.max_len,
                                  .keeps_states = traits.keeps_states});
  }
  scheduler_ = std::make_unique<Scheduler>(scheduler);
}

}  // namespace foretoken
