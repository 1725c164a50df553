#pragma once
#include <foretoken/engine.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "kernels/step_types.h"

namespace foretoken {

// What the engine thread does for a step.
enum class HostPhase : uint8_t { kPlan, kEncode, kSubmit, kWait, kReconcile, kCount };
const char* host_phase_name(HostPhase phase);

// Adds up where the time of steps goes. Written by the engine thread, read by any.
class StepClock {
 public:
  void count_planned() { add(num_planned_, 1); }
  void note_phase(HostPhase phase, int64_t ns) { add(host_ns_[static_cast<size_t>(phase)], ns); }

  // A step computed so many tokens (StepTokens).
  void note_tokens(int64_t num_tokens);

  // `stamps`: the ring. `step` is published, so that the one before has ended. `follows`: the gap
  // between the two counts. Steps come in order.
  void note_step(uint64_t step, bool follows, const StepStamps* stamps);

  StepTiming timing() const;
  StepTokens step_tokens() const;

 private:
  using Counter = std::atomic<int64_t>;
  // Gaps from 2^(i/8) ns up to the next.
  static constexpr int kPerOctave = 8;
  static constexpr int kNumBuckets = 40 * kPerOctave;

  // One writer.
  static void add(Counter& counter, int64_t more) {
    counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  void note_gap(int64_t ns);
  int64_t gap_quantile(double share, int64_t num_gaps) const;
  int64_t host_ns(HostPhase phase) const { return host_ns_[static_cast<size_t>(phase)].load(); }

  std::array<Counter, static_cast<size_t>(HostPhase::kCount)> host_ns_{};
  Counter num_planned_{0};
  Counter num_steps_{0};
  Counter device_ns_{0};
  Counter draft_ns_{0};
  Counter idle_ns_{0};
  Counter num_gaps_{0};
  std::array<Counter, kNumBuckets> gaps_{};
  std::array<Counter, StepTokens::kBounds.size() + 1> steps_of_tokens_{};
  Counter num_tokens_{0};
};

}  // namespace foretoken
