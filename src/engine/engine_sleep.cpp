#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread_limit.h"
#include "device/cpu/host_memory.h"
#include "device/device_traits.h"
#include "device/memory_role_scope.h"
#include "engine/engine_impl.h"
#include "engine/start/make_drafters.h"

// How an engine gives its memory back and takes it again.

namespace foretoken {
namespace {

constexpr const char* kWeightsTag = "weights";
constexpr const char* kBlocksTag = "kv_cache";

Status check_tags(const std::vector<std::string>& tags) {
  for (const std::string& tag : tags) {
    if (tag == kWeightsTag || tag == kBlocksTag) continue;
    return invalid_argument("'" + tag + "' is no tag of what sleeps; use '" + kWeightsTag +
                            "' or '" + kBlocksTag + "', or leave the tags out");
  }
  return {};
}

bool is_named(const std::vector<std::string>& tags, const char* tag) {
  return tags.empty() || std::find(tags.begin(), tags.end(), tag) != tags.end();
}

double seconds_since(int64_t begin_ns) { return static_cast<double>(now_ns() - begin_ns) / 1e9; }

}  // namespace

Status Engine::sleep(int, bool, int64_t*) {
  return unsupported("this engine does not sleep; start it with --enable-sleep-mode");
}

Status Engine::wake_up(const std::vector<std::string>&) { return Engine::sleep(1, true, nullptr); }

Status EngineImpl::sleep(int level, bool ends_requests, int64_t* bytes) {
  if (sleep_ == nullptr) return Engine::sleep(level, ends_requests, bytes);
  if (level != 1 && level != 2) {
    return invalid_argument("level " + std::to_string(level) +
                            " of sleep does not exist; use 1, which keeps weights in host memory, "
                            "or 2, which reads them again");
  }
  if (outputs_->on_output_thread()) {
    return invalid_argument(
        "sleep() was called from an output callback of this engine, for which it would wait; call "
        "it from another thread");
  }
  const std::lock_guard lock(sleep_->mutex);
  if (level == 1 && !sleep_->weights_are_away) FT_RETURN_IF_ERROR(check_host_room());
  const int64_t begin = now_ns();
  if (!loop_->rest(ends_requests)) return aborted("the engine is shutting down");
  Result<int64_t> freed = loop_->error().ok() ? device_->give_back(level == 1) : loop_->error();
  if (!freed.ok()) {
    if (sleep_level_.load() == 0) loop_->wake();
    return freed.status();
  }
  sleep_->weights_are_away = sleep_->blocks_are_away = true;
  sleep_->weights_are_lost = sleep_->weights_are_lost || level == 2;
  sleep_level_.store(sleep_->weights_are_lost ? 2 : 1);
  if (bytes != nullptr) *bytes = freed.value();
  FT_LOG(info, "sleeps at level {}: {} MiB given back in {:.2f} s", sleep_level_.load(),
         freed.value() >> 20, seconds_since(begin));
  return {};
}

// The system would rather end the process than refuse memory that it has promised.
Status EngineImpl::check_host_room() const {
  if (device_traits(device_->type()).uses_host_memory) return {};
  const int64_t wanted = info_.weight_bytes + info_.drafter_bytes + info_.scratch_bytes;
  const int64_t free = cpu::host_memory().free;
  if (wanted <= free) return {};
  return resource_exhausted("weights of " + std::to_string(wanted >> 20) +
                            " MiB would go to host memory, of which " + std::to_string(free >> 20) +
                            " MiB are free; use level 2, which keeps none, or end other programs");
}

Status EngineImpl::wake_up(const std::vector<std::string>& tags) {
  if (sleep_ == nullptr) return Engine::wake_up(tags);
  FT_RETURN_IF_ERROR(check_tags(tags));
  const std::lock_guard lock(sleep_->mutex);
  if (sleep_level_.load() == 0) return {};
  const int64_t begin = now_ns();
  if (sleep_->weights_are_away && is_named(tags, kWeightsTag)) {
    FT_RETURN_IF_ERROR(device_->bring_back(MemoryRole::kWeights));
    if (sleep_->weights_are_lost) FT_RETURN_IF_ERROR(read_weights_again());
    sleep_->weights_are_away = sleep_->weights_are_lost = false;
  }
  if (sleep_->blocks_are_away && is_named(tags, kBlocksTag)) {
    FT_RETURN_IF_ERROR(device_->bring_back(MemoryRole::kBlocks));
    sleep_->blocks_are_away = false;
  }
  if (sleep_->weights_are_away || sleep_->blocks_are_away) return {};
  sleep_level_.store(0);
  loop_->wake();
  FT_LOG(info, "is awake after {:.2f} s", seconds_since(begin));
  return {};
}

// A model and drafters like those that run, whose weights lie at the same addresses; what else they
// have is the same and not needed.
Status EngineImpl::load_beside() {
  const MemoryRoleScope scope(*device_, MemoryRole::kWeights);
  ResolvedConfig config = sleep_->config;
  LoadOptions options = sleep_->options;
  const Sharding second_lane = ranks_.sharding(1);
  if (options.second_lane != nullptr) options.second_lane = &second_lane;
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                      load_model(*device_, ModelFiles(config.model), options));
  const auto drafters =
      make_drafters(config, drafter_parts(*model, options, sleep_->drafter_folders));
  return drafters.status();
}

Status EngineImpl::read_weights_again() {
  device_->begin_again();
  const Status status = start_threads([this] { return load_beside(); });
  const bool is_same = device_->end_again();
  if (!status.ok() || is_same) return status;
  return invalid_argument(
      "the files of the model or of a drafter have other tensors than at the start; put the former "
      "ones back and wake the engine again, or start another one");
}

// Of the engine thread, before it rests.
void EngineImpl::prepare_sleep() {
  for (const auto& drafter : drafters_) drafter->forget_texts(*queue_);
  (void)queue_->drain();
}

}  // namespace foretoken
