#include "engine/step/shape/graph_cache.h"

#include "base/log.h"
#include "kernels/op.h"

namespace foretoken {

GraphCache::GraphCache(Queue& queue) : queue_(queue) { recordings_.reserve(kMax); }

Recorder::StaysOut GraphCache::stays_out(StepLaunch launch) {
  if (launch != StepLaunch::kPieces) return nullptr;
  return [](uint16_t op) { return op == static_cast<uint16_t>(Op::kAttention); };
}

std::optional<Recording> GraphCache::finish(Recorder& recorder, int64_t start_ns) {
  Result<Recording> recording = recorder.finish();
  capture_ns_ += now_ns() - start_ns;
  if (recording.ok()) return std::move(recording).value();
  if (!has_warned_) {
    FT_LOG(warn,
           "the device cannot record a step as a graph ({}); such steps run op by op, as all do "
           "with --enforce-eager",
           recording.status().message());
  }
  has_warned_ = true;
  return std::nullopt;
}

const Recording* GraphCache::add(const StepShape& shape, std::optional<Recording> recording) {
  const ForeignAllocationScope once;
  const auto& added = recordings_.emplace(shape, std::move(recording)).first->second;
  return added ? &*added : nullptr;
}

void GraphCache::forget_drafts() {
  std::erase_if(recordings_, [](const auto& entry) {
    return entry.first.drafts != std::array<DraftShape, kMaxDrafters>{};
  });
}

}  // namespace foretoken
