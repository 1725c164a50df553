#include "spec/guessed_costs.h"

#include <algorithm>

#include "spec/touched_experts.h"

namespace foretoken {
namespace {

constexpr int kManyRows = 1024;
constexpr int64_t kLeastStepNs = 50'000;
constexpr int64_t kLookUpShare = 20;  // of a step, for a drafter without weights
constexpr int64_t kMaxNs = int64_t{1} << 30;

TimeCurve line(int64_t ns) {
  TimeCurve curve;
  curve.add(1, ns);
  curve.add(kManyRows, ns * kManyRows);
  return curve;
}

// Rows that cost row_ns each, and read as much of all_ns as they touch of the experts.
TimeCurve expert_curve(int64_t row_ns, int64_t all_ns, const CostsToGuess::Experts& experts) {
  TimeCurve curve;
  for (int rows = 1; rows <= kManyRows; rows *= 2) {
    const auto touched = static_cast<int64_t>(static_cast<double>(all_ns) *
                                              touched_share(experts.count, experts.top_k, rows));
    curve.add(rows, row_ns * rows + touched);
  }
  return curve;
}

}  // namespace

CostTable guessed_cost_table(const CostsToGuess& what) {
  const auto read_ns = [&](int64_t bytes) {
    const double ns = static_cast<double>(bytes) * 1e9 / static_cast<double>(what.bytes_per_second);
    return static_cast<int64_t>(std::min(ns, static_cast<double>(kMaxNs)));
  };
  const CostsToGuess::Experts& experts = what.experts;
  const int64_t row_ns = std::max(read_ns(what.weight_bytes - experts.weight_bytes), kLeastStepNs);
  CostTable times;
  times.target = experts.weight_bytes > 0
                     ? expert_curve(row_ns, read_ns(experts.weight_bytes), experts)
                     : line(row_ns);
  const int64_t step_ns = times.target.at(1);
  for (const CostsToGuess::Drafter& drafter : what.drafters) {
    const int64_t pass_ns = std::max(read_ns(drafter.weight_bytes), step_ns / kLookUpShare);
    times.drafters.push_back({drafter.name, drafter.one_pass,
                              drafter.has_kv ? line(pass_ns) : TimeCurve(), line(pass_ns)});
  }
  return times;
}

}  // namespace foretoken
