#pragma once
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "base/thread_role.h"
#include "device/recording.h"
#include "engine/step/shape/step_shape.h"

namespace foretoken {

// The recordings of steps, by shape. Engine thread, or the start-up thread before it.
class GraphCache {
 public:
  explicit GraphCache(Queue& queue);

  // What `enqueue(queue)` enqueues for steps of this shape, recorded when it is first asked for.
  // Null where the shape says ops, where the device cannot record it (one warning tells of the
  // first such shape), or when there are so many recordings that a further one stays out.
  template <class F>
  const Recording* get(const StepShape& shape, const F& enqueue) {
    if (shape.launch == StepLaunch::kOps) return nullptr;
    const auto found = recordings_.find(shape);
    if (found != recordings_.end()) return found->second ? &*found->second : nullptr;
    if (recordings_.size() >= kMax) return nullptr;
    return add(shape, record(shape.launch, enqueue));
  }

  // A recording that is not kept; none where the device cannot record it.
  template <class F>
  std::optional<Recording> record(StepLaunch launch, const F& enqueue) {
    const ForeignAllocationScope once;
    const int64_t start = now_ns();
    Recorder recorder(queue_, stays_out(launch));
    enqueue(recorder);
    return finish(recorder, start);
  }

  // Forgets those that draft. None of them may be in flight.
  void forget_drafts();

  int size() const { return static_cast<int>(recordings_.size()); }
  int64_t capture_ns() const { return capture_ns_; }

 private:
  // That many find room without an allocation by the map itself.
  static constexpr size_t kMax = 1024;

  static Recorder::StaysOut stays_out(StepLaunch launch);
  std::optional<Recording> finish(Recorder& recorder, int64_t start_ns);
  const Recording* add(const StepShape& shape, std::optional<Recording> recording);

  Queue& queue_;
  std::unordered_map<StepShape, std::optional<Recording>, StepShapeHash> recordings_;
  int64_t capture_ns_ = 0;
  bool has_warned_ = false;
};

}  // namespace foretoken
