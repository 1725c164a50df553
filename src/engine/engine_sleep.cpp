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

Status recalled_sleep() {
  return aborted("the engine goes on: it was woken, or the call given up, before it slept");
}

double seconds_since(int64_t begin_ns) { return static_cast<double>(now_ns() - begin_ns) / 1e9; }

}  // namespace

Status Engine::sleep(int, bool, int64_t*, const std::stop_token&) {
  return unsupported("this engine does not sleep; start it with --enable-sleep-mode");
}

Status Engine::wake_up(const std::vector<std::string>&) {
  return Engine::sleep(1, true, nullptr, {});
}

Status EngineImpl::sleep(int level, bool ends_requests, int64_t* bytes,
                         const std::stop_token& recall) {
  if (sleep_ == nullptr) return Engine::sleep(level, ends_requests, bytes, recall);
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
  if (level == 1) FT_RETURN_IF_ERROR(check_host_room());
  const int64_t begin = now_ns();
  const RestGate::Entered entered = loop_->rest(ends_requests, recall);
  if (entered == RestGate::Entered::kEnded) return aborted("the engine is shutting down");
  const std::lock_guard lock(sleep_->mutex);
  if (entered == RestGate::Entered::kLeft || !loop_->is_resting()) return recalled_sleep();
  FT_RETURN_IF_ERROR(put_away(level == 1, bytes));
  FT_LOG(info, "sleeps at level {}: {} MiB given back in {:.2f} s", sleep_level_.load(),
         sleep_->all.bytes >> 20, seconds_since(begin));
  return {};
}

// The engine thread rests, and goes on where nothing was put away.
Status EngineImpl::put_away(bool keeps_weights, int64_t* bytes) {
  const Status status = loop_->error().ok() ? give_back_everywhere(keeps_weights) : loop_->error();
  if (!status.ok()) {
    if (sleep_level_.load() == 0) loop_->wake();
    return status;
  }
  sleep_level_.store(sleep_->all.weights_are_lost ? 2 : 1);
  if (bytes != nullptr) *bytes = sleep_->all.bytes;
  return {};
}

// All ranks or, where the engine was awake, none.
Status EngineImpl::give_back_everywhere(bool keeps_weights) {
  const Status status =
      order_all({.kind = SleepOrder::Kind::kGiveBack, .keeps_weights = keeps_weights});
  if (status.ok() || sleep_level_.load() > 0) return status;
  const Status undone = order_all({.kind = SleepOrder::Kind::kTake});
  if (undone.ok()) return status;
  sleep_level_.store(sleep_->all.weights_are_lost ? 2 : 1);
  return {status.code(), status.message() + "; and it does not wake up again: " + undone.message()};
}

// The system would rather end the process than refuse memory that it has promised.
Status EngineImpl::check_host_room() {
  if (device_traits(device_->type()).uses_host_memory) return {};
  {
    const std::lock_guard lock(sleep_->mutex);
    if (sleep_->all.weights_are_away) return {};
  }
  const int ranks_here = std::max(ranks_.size() / std::max(sleep_->config.parallel.nnodes, 1), 1);
  const int64_t wanted = (info_.weight_bytes + info_.drafter_bytes) * ranks_here;
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
  if (sleep_level_.load() == 0) {
    loop_->wake();  // who waits until requests have ended, to sleep then
    return {};
  }
  FT_RETURN_IF_ERROR(loop_->error());
  const int64_t begin = now_ns();
  FT_RETURN_IF_ERROR(take_everywhere({.kind = SleepOrder::Kind::kTake,
                                      .weights = is_named(tags, kWeightsTag),
                                      .blocks = is_named(tags, kBlocksTag)}));
  if (sleep_->all.weights_are_away || sleep_->all.blocks_are_away) return {};
  sleep_level_.store(0);
  loop_->wake();
  FT_LOG(info, "is awake after {:.2f} s", seconds_since(begin));
  return {};
}

// All ranks or none: those that have taken what others could not give it back.
Status EngineImpl::take_everywhere(const SleepOrder& order) {
  const SleepOutcome before = sleep_->all;
  const Status status = order_all(order);
  if (status.ok() || ranks_.is_alone() || !loop_->error().ok()) return status;
  const Status undone = order_all({.kind = SleepOrder::Kind::kGiveBack,
                                   .weights = order.weights && before.weights_are_away,
                                   .blocks = order.blocks && before.blocks_are_away,
                                   .keeps_weights = !before.weights_are_lost});
  if (!undone.ok()) FT_LOG(warn, "of ranks that woke up: {}", undone.message());
  return status;
}

// Of rank 0: what came of it on all ranks.
Status EngineImpl::order_all(const SleepOrder& order) {
  if (feed_ == nullptr) {
    sleep_->all = obey(order);
    return sleep_->all.status;
  }
  FT_RETURN_IF_ERROR(feed_->order(order));
  FT_ASSIGN_OR_RETURN(sleep_->all, outcome_of_all(ranks_.control(), obey(order)));
  return sleep_->all.status;
}

// Of one rank, whose queue is empty.
SleepOutcome EngineImpl::obey(const SleepOrder& order) {
  SleepOutcome& own = sleep_->own;
  own.bytes = 0;
  own.status = order.kind == SleepOrder::Kind::kTake ? take(order) : give_back(order);
  return own;
}

Status EngineImpl::give_back(const SleepOrder& order) {
  SleepOutcome& own = sleep_->own;
  if (!ranks_.is_first() && !own.weights_are_away && !own.blocks_are_away) prepare_sleep();
  FT_ASSIGN_OR_RETURN(own.bytes,
                      device_->give_back({order.weights, order.blocks, order.keeps_weights}));
  own.weights_are_away |= order.weights;
  own.weights_are_lost |= order.weights && !order.keeps_weights;
  own.blocks_are_away |= order.blocks;
  return {};
}

// All that is meant, or nothing.
Status EngineImpl::take(const SleepOrder& order) {
  SleepOutcome& own = sleep_->own;
  const bool weights = order.weights && own.weights_are_away;
  const bool blocks = order.blocks && own.blocks_are_away;
  if (weights) FT_RETURN_IF_ERROR(device_->bring_back(MemoryRole::kWeights));
  Status status = weights && own.weights_are_lost ? read_weights_again() : Status();
  if (status.ok() && blocks) status = device_->bring_back(MemoryRole::kBlocks);
  if (!status.ok()) {
    if (!weights) return status;
    const auto given = device_->give_back({true, false, !own.weights_are_lost});
    if (!given.ok()) FT_LOG(warn, "{}", given.status().message());
    return status;
  }
  own.weights_are_away &= !weights;
  own.weights_are_lost &= !weights;
  own.blocks_are_away &= !blocks;
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
  FT_RETURN_IF_ERROR(check_kept_configs(sleep_->configs));
  device_->begin_again();
  const Status status = start_threads([this] { return load_beside(); });
  const bool is_same = device_->end_again();
  if (!status.ok() || is_same) return status;
  return invalid_argument(
      "the files of the model or of a drafter have other tensors than at the start; put the former "
      "ones back and wake the engine again, or start another one");
}

// Before a rank's memory goes: of rank 0 the engine thread's.
void EngineImpl::prepare_sleep() {
  for (const auto& drafter : drafters_) drafter->forget_texts(*queue_);
  (void)queue_->drain();
}

}  // namespace foretoken
