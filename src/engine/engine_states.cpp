#include <algorithm>

#include "base/log.h"
#include "compat/compat.h"
#include "device/device_traits.h"
#include "device/memory_role_scope.h"
#include "engine/engine_impl.h"
#include "engine/start/make_drafters.h"
#include "engine/start/resolve_config.h"
#include "model/layer/layer_spec.h"

// States of sequences that recurrent layers keep, and snapshots of them for the prefix cache.

namespace foretoken {
namespace {

// Where no number is given: four for each sequence, as far as this or an eighth of what is free
// holds them.
constexpr int kSnapshotsEach = 4;
constexpr int64_t kSnapshotBytesOnHost = int64_t{1} << 30;
constexpr int64_t kSnapshotBytes = int64_t{4} << 30;

int64_t snapshots_by_default(const Device& device, int num_seqs, int64_t bytes_each) {
  const bool on_host = device_traits(device.type()).uses_host_memory;
  const int64_t most = int64_t{kSnapshotsEach} * num_seqs;
  if (bytes_each == 0) return most;
  const int64_t bytes =
      std::min(on_host ? kSnapshotBytesOnHost : kSnapshotBytes, device.free_memory() / 8);
  return std::min(most, bytes / bytes_each);
}

}  // namespace

Status EngineImpl::take_states(ResolvedConfig& config) {
  const bool target = keeps_states(model_->config());
  const bool drafter = std::any_of(drafters_.begin(), drafters_.end(),
                                   [](const auto& each) { return each->traits().keeps_states; });
  if (!target && !drafter) return {};
  // Nobody has a slot, and no prefix is found, where an engine sleeps.
  const MemoryRoleScope scope(*device_, MemoryRole::kBlocks);
  const StateUse use{.num_slots = config.max_num_seqs,
                     .max_draft_tokens = max_draft_tokens(config)};
  FT_RETURN_IF_ERROR(model_->take_states(use));
  info_.state_bytes = model_->state_bytes(use);
  // A drafter alone begins its states anew behind a hit.
  if (!target || !config.enable_prefix_caching) return {};
  return take_snapshots(config);
}

// A prefix hit brings the entries of its positions; states behind them come from a snapshot.
Status EngineImpl::take_snapshots(ResolvedConfig& config) {
  std::vector<BlockPart> parts = model_->state_parts();
  for (const auto& drafter : drafters_) {
    if (!ranks_.stages().is_last()) break;
    for (const BlockPart& part : drafter->state_parts()) parts.push_back(part);
  }
  const int64_t bytes = StateStore::snapshot_bytes(parts);
  const int64_t own = config.max_state_snapshots >= 0
                          ? config.max_state_snapshots
                          : snapshots_by_default(*device_, config.max_num_seqs, bytes);
  FT_ASSIGN_OR_RETURN(const int64_t count, ranks_.least(own, "sizing the state snapshots"));
  if (count == 0) {
    config.enable_prefix_caching = false;
    if (ranks_.is_first()) {
      FT_LOG(info, "no snapshots of {} MiB each of the model's states: no prefix caching",
             bytes >> 20);
    }
    return {};
  }
  FT_ASSIGN_OR_RETURN(state_store_, StateStore::make(*device_, *queue_, parts, config.max_num_seqs,
                                                     static_cast<int>(count)));
  info_.num_state_snapshots = count;
  info_.state_snapshot_bytes = count * bytes;
  return {};
}

}  // namespace foretoken
