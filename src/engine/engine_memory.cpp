#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "device/device_traits.h"
#include "device/memory_role_scope.h"
#include "engine/engine_impl.h"
#include "engine/start/logits_rows.h"
#include "engine/start/make_drafters.h"

namespace foretoken {
namespace {

constexpr int kMaxPrediction = 16384;

// Of a plan: four requests that use every variable parameter to the full, or many that use few.
int max_init_words(int vocab_size, int max_prediction, int max_flex_words) {
  return 4 * (2 * kMaxLogitBias + kMaxBadWordInts + (vocab_size + 31) / 32 + max_prediction +
              max_flex_words);
}

// Of each group, which no sequence has.
int num_branch_blocks(const EngineConfig& config) {
  return num_branches(config) > 0 ? num_branches(config) * branch_blocks(config) : 0;
}

}  // namespace

// Ranks that find the same memory free.
int EngineImpl::local_shares(const EngineConfig& config) const {
  if (!device_traits(device_->type()).uses_host_memory || config.kv_cache_memory_bytes > 0) {
    return 1;
  }
  return std::max(ranks_.size() / std::max(config.parallel.nnodes, 1), 1);
}

// Without blocks.
StepMemoryConfig EngineImpl::step_memory_config(const EngineConfig& config,
                                                int max_model_len) const {
  const int num_groups = static_cast<int>(model_->kv_groups().size());
  const int vocab_size = model_->config().vocab_size;
  const int max_blocks = (max_model_len + config.block_size - 1) / config.block_size;
  const int max_updates =
      num_groups * (max_blocks + config.max_num_batched_tokens / config.block_size +
                    2 * config.max_num_seqs + 64);
  const bool looks_up = std::any_of(drafters_.begin(), drafters_.end(),
                                    [](const auto& drafter) { return drafter->traits().looks_up; });
  const int max_flex_words = flex_ != nullptr && flex_->asks_requests() ? kMaxFlexWords : 0;
  const int max_prediction = looks_up ? std::min(max_model_len, kMaxPrediction) : 0;
  return {.num_slots = config.max_num_seqs + num_branches(config),
          .num_branches = num_branches(config),
          .branch_blocks = num_branches(config) > 0 ? branch_blocks(config) : 0,
          .num_blocks = 0,
          .block_size = config.block_size,
          .max_blocks = max_blocks,
          .vocab_size = vocab_size,
          .max_prediction = max_prediction,
          .max_flex_words = max_flex_words,
          .windowed = num_groups > 1,
          .max_rows = config.max_num_batched_tokens,
          .max_logits_rows = config.max_num_batched_tokens,
          .num_lanes = config.parallel.enable_dbo ? 2 : 1,
          .limits = {config.max_num_seqs, config.max_num_batched_tokens + config.max_num_seqs,
                     max_updates, max_init_words(vocab_size, max_prediction, max_flex_words)},
          .result_limits = {.max_spans = config.max_num_seqs,
                            .max_rows = config.max_logprobs > 0 ? config.max_num_batched_tokens : 0,
                            .max_top = config.max_logprobs,
                            .hidden = model_->config().hidden_size,
                            .max_states = tokens_ ? config.max_num_batched_tokens : 0}};
}

// Tables, logits and other memory that steps take after the KV cache was sized, for the longest
// sequences that there may be.
int64_t EngineImpl::bytes_beside_kv(const EngineConfig& config) const {
  const int max_len =
      config.max_model_len == -1 ? model_->config().max_context : config.max_model_len;
  ModelRunnerConfig runner;
  runner.max_rows = config.max_num_batched_tokens;
  runner.max_logits_rows = max_logits_rows(config);
  runner.logits_tile = logits_tile(config);
  runner.max_processor_rows = config.max_processor_rows;
  runner.max_len = max_len;
  runner.stages = ranks_.stages();
  return ModelRunner::device_bytes(*model_, step_memory_config(config, max_len), runner);
}

// Both decisions look at the same budget, since free memory changes from call to call.
Status EngineImpl::size_kv_cache(EngineConfig& config) {
  DrafterDemand drafters{.max_draft_tokens = max_draft_tokens(config)};
  for (const auto& drafter : drafters_) {
    if (!ranks_.stages().is_last()) break;
    drafters.block_bytes += drafter->bytes_per_block(config.block_size);
  }
  const KvDemand demand = kv_demand(model_->kv_groups(), config.block_size, drafters);
  // Stages have different numbers of layers; each gets what the largest needs.
  const int64_t own_alone = config.max_model_len > 0 ? kv_bytes_alone(config, demand) : 0;
  FT_ASSIGN_OR_RETURN(const int64_t alone, ranks_.most(own_alone, "sizing the KV cache"));
  FT_ASSIGN_OR_RETURN(const int64_t own_budget,
                      kv_budget(config, {.device = device_->name(),
                                         .of_host = device_traits(device_->type()).uses_host_memory,
                                         .total = device_->total_memory(),
                                         .free_at_start = free_at_start_,
                                         .free_now = device_->free_memory(),
                                         .still_to_take = bytes_beside_kv(config),
                                         .one_sequence = alone * local_shares(config)}));
  FT_ASSIGN_OR_RETURN(const int64_t budget,
                      ranks_.least(own_budget / local_shares(config), "sizing the KV cache"));
  if (config.max_model_len == -1) {
    const int longest = model_->config().max_context;
    FT_ASSIGN_OR_RETURN(config.max_model_len,
                        choose_max_model_len(config, demand, budget, longest));
    if (ranks_.is_first())
      FT_LOG(info, "--max-model-len auto: {} of the {} tokens that the model allows",
             config.max_model_len, longest);
    FT_ASSIGN_OR_RETURN(const int64_t least,
                        ranks_.least(config.max_model_len, "choosing the longest sequence"));
    config.max_model_len = info_.max_model_len = static_cast<int>(least);
  }
  const int64_t of_branches =
      num_branch_blocks(config) * (demand.block_bytes + demand.window_block_bytes);
  FT_ASSIGN_OR_RETURN(num_blocks_, choose_num_blocks(config, demand, budget - of_branches));
  // Stages have different numbers of layers.
  FT_ASSIGN_OR_RETURN(const int64_t full, ranks_.least(num_blocks_.full, "sizing the KV cache"));
  FT_ASSIGN_OR_RETURN(const int64_t windowed,
                      ranks_.least(num_blocks_.windowed, "sizing the KV cache"));
  num_blocks_ = {static_cast<int>(full), static_cast<int>(windowed)};
  return {};
}

Status EngineImpl::make_memory(const EngineConfig& config) {
  const std::vector<KvGroupSpec> groups = model_->kv_groups();
  StepMemoryConfig memory_config = step_memory_config(config, config.max_model_len);
  memory_config.num_blocks = num_blocks_.full;
  memory_config.num_window_blocks = num_blocks_.windowed;
  max_blocks_ = memory_config.max_blocks;
  FT_ASSIGN_OR_RETURN(memory_, StepMemory::make(*device_, memory_config));
  if (flex_ != nullptr) flex_->set_requests(memory_->batch.lists.flex);
  const MemoryRoleScope scope(*device_, MemoryRole::kBlocks);
  const int of_branches = num_branch_blocks(config);
  FT_ASSIGN_OR_RETURN(
      kv_cache_,
      KvCache::create(*device_, groups[0], num_blocks_.full + of_branches, config.block_size));
  if (groups.size() > 1) {
    FT_ASSIGN_OR_RETURN(window_cache_,
                        KvCache::create(*device_, groups[1], num_blocks_.windowed + of_branches,
                                        config.block_size));
  }
  info_.num_blocks = num_blocks_.full - 1;
  info_.kv_cache_bytes =
      kv_cache_->num_bytes() + (window_cache_ != nullptr ? window_cache_->num_bytes() : 0);
  info_.token_page_bytes = memory_->token_page_bytes();
  info_.block_table_bytes = memory_->block_table_bytes();
  FT_RETURN_IF_ERROR(give_drafters_memory(config));
  FT_RETURN_IF_ERROR(share_taps());
  const int64_t tokens = int64_t{info_.num_blocks} * config.block_size;
  if (!ranks_.is_first()) return {};
  FT_LOG(info, "KV cache: {} tokens in {} MiB, room for {:.1f} sequences of {} tokens", tokens,
         info_.kv_cache_bytes >> 20,
         static_cast<double>(tokens) / static_cast<double>(config.max_model_len),
         config.max_model_len);
  if (info_.state_bytes > 0) {
    FT_LOG(info, "states of {} sequences: {} MiB", config.max_num_seqs, info_.state_bytes >> 20);
  }
  if (info_.num_state_snapshots > 0) {
    FT_LOG(info, "{} snapshots of states for prefix caching: {} MiB", info_.num_state_snapshots,
           info_.state_snapshot_bytes >> 20);
  }
  return {};
}

// Only the last stage drafts.
Status EngineImpl::give_drafters_memory(const EngineConfig& config) {
  if (!ranks_.stages().is_last()) return {};
  for (size_t i = 0; i < drafters_.size(); ++i) {
    Drafter& drafter = *drafters_[i];
    FT_RETURN_IF_ERROR(
        drafter.take_memory(num_blocks_.full + num_branch_blocks(config), config.block_size));
    info_.drafters.push_back(
        {.name = drafter_names_[i],
         .num_speculative_tokens = drafter.traits().max_draft_tokens,
         .looks_up = drafter.traits().looks_up,
         .leads = config.speculative[i].leads,
         .kv_cache_bytes = drafter.bytes_per_block(config.block_size) * num_blocks_.full,
         .memory_bytes = drafter.memory_bytes()});
    info_.kv_cache_bytes += info_.drafters.back().kv_cache_bytes;
    info_.drafter_bytes += info_.drafters.back().memory_bytes;
  }
  return {};
}

// The stages before the last one hear which hidden states its drafters want of them.
Status EngineImpl::share_taps() {
  if (!ranks_.stages().is_cut()) return {};
  const std::vector<int32_t>& own = model_->tapped_layers();
  const std::string mine(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(int32_t));
  FT_ASSIGN_OR_RETURN(const std::string bytes, ranks_.of_first(mine, "sharing what drafters tap"));
  if (ranks_.stages().is_last()) return {};
  std::vector<int32_t> layers(bytes.size() / sizeof(int32_t));
  if (!layers.empty()) std::memcpy(layers.data(), bytes.data(), bytes.size());
  model_->pass_on(std::move(layers));
  return {};
}

}  // namespace foretoken
