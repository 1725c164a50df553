#include "spec/guessed_costs.h"

#include <algorithm>
#include <utility>

#include "spec/touched_experts.h"

namespace foretoken {
namespace {

constexpr int kManyRows = 1024;
constexpr int64_t kLeastStepNs = 50'000;
constexpr int64_t kLookUpShare = 20;  // of a step, for a drafter without weights
constexpr int64_t kMaxNs = int64_t{1} << 30;

// What `rows` rows take whose first one takes row_ns.
int64_t rows_ns(int64_t row_ns, int64_t rows, int64_t rows_per_step) {
  return row_ns + row_ns * (rows - 1) / rows_per_step;
}

TimeCurve line(int64_t ns, int64_t rows_per_step) {
  TimeCurve curve;
  curve.add(1, ns);
  curve.add(kManyRows, rows_ns(ns, kManyRows, rows_per_step));
  return curve;
}

// Rows that cost row_ns, and read as much of all_ns as they touch of the experts.
TimeCurve expert_curve(int64_t row_ns, int64_t all_ns, const CostsToGuess& what) {
  TimeCurve curve;
  for (int rows = 1; rows <= kManyRows; rows *= 2) {
    const double share = touched_share(what.experts.count, what.experts.top_k, rows);
    const auto touched = static_cast<int64_t>(static_cast<double>(all_ns) * share);
    curve.add(rows, rows_ns(row_ns, rows, what.rows_per_step) + touched);
  }
  return curve;
}

double ratio_at(const TimeCurve& curve, const TimeCurve& shape, int size) {
  return static_cast<double>(curve.at(size)) /
         static_cast<double>(std::max<int64_t>(shape.at(size), 1));
}

// `unit`: of a curve without a point, what it takes of the shape's times.
void complete_curve(TimeCurve& curve, const TimeCurve& shape, double unit) {
  if (curve.points().size() >= 2 || shape.empty()) return;
  if (!curve.empty()) unit = ratio_at(curve, shape, curve.points().front().size);
  TimeCurve whole;
  for (const TimeCurve::Point& point : shape.points()) {
    const double ns = static_cast<double>(point.ns) * unit;
    whole.add(point.size,
              static_cast<int64_t>(std::min(ns, static_cast<double>(CostLimits::kMaxNs))));
  }
  curve = std::move(whole);
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
                     ? expert_curve(row_ns, read_ns(experts.weight_bytes), what)
                     : line(row_ns, what.rows_per_step);
  const int64_t step_ns = times.target.at(1);
  for (const CostsToGuess::Drafter& drafter : what.drafters) {
    const int64_t pass_ns = std::max(read_ns(drafter.weight_bytes), step_ns / kLookUpShare);
    const TimeCurve pass = line(pass_ns, what.rows_per_step);
    times.drafters.push_back(
        {drafter.name, drafter.one_pass, drafter.has_kv ? pass : TimeCurve(), pass});
  }
  return times;
}

void complete_costs(CostTable& times, const CostTable& guess) {
  times.is_guess = times.target.points().size() < 2;
  const double unit = times.target.empty() ? 1 : ratio_at(times.target, guess.target, 1);
  complete_curve(times.target, guess.target, unit);
  for (size_t i = 0; i < times.drafters.size() && i < guess.drafters.size(); ++i) {
    complete_curve(times.drafters[i].catch_up, guess.drafters[i].catch_up, unit);
    complete_curve(times.drafters[i].pass, guess.drafters[i].pass, unit);
  }
}

}  // namespace foretoken
