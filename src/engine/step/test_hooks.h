#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "device/queue.h"
#include "kernels/step_types.h"
#include "sched/step_plan.h"

namespace foretoken {

// Faults and probes planted by tests; all off in production.
struct TestHooks {
  bool reuse_ring_entry = false;  // a plan is also written over the entry of the step before
  // Of ModelRunnerConfig (both budgets) and GrammarThread.
  std::optional<int64_t> mask_budget_ns = std::nullopt;
  std::optional<int64_t> slow_mask_ns = std::nullopt;
  std::optional<double> repair_share = std::nullopt;
  // Stands between the engine and its queue.
  std::function<std::unique_ptr<Queue>(std::unique_ptr<Queue> real)> wrap_queue = nullptr;
  // Engine thread: changes what the length policy grants step `step`.
  std::function<void(uint64_t step, std::array<DraftGrant, kMaxDrafters>& grants)> grants = nullptr;
  // Engine thread: sees the published result of each span, before anything is made of it.
  std::function<void(uint64_t step, const Span& span, const SpanResult& result)> on_result =
      nullptr;
};

}  // namespace foretoken
