#include <algorithm>

#include "engine/measure/profile_sizes.h"
#include "engine/measure/step_profile.h"
#include "spec/guessed_costs.h"

// The short measurement before the first request.
namespace foretoken {
namespace {

// Rows of a step, or sequences of a pass. More decide about few engines' first seconds, and take
// the time that smaller ones need.
constexpr int kMaxSize = 64;
constexpr int64_t kBriefSampleNs = 1'000'000;
constexpr int kBriefRounds = 4;
constexpr int kSlope = 2;  // sizes that tell what one row more costs

}  // namespace

Result<CostTable> StepProfile::measure_briefly(const CostTable& guess) {
  FT_CHECK(!takes_turns() && !config_.clock);
  sample_ns_ = kBriefSampleNs;
  FT_RETURN_IF_ERROR(take_memory());
  add_curves();
  for (Curve& curve : curves_) curve.most = std::min(curve.most, kMaxSize);
  const auto num_sizes = static_cast<int>(profile_sizes(kMaxSize, false).size());
  for (Curve& curve : curves_) FT_RETURN_IF_ERROR(sample_sizes(curve, 0, kSlope, guess));
  for (int i = kSlope; i < num_sizes; ++i) {
    for (Curve& curve : curves_) FT_RETURN_IF_ERROR(sample_sizes(curve, i, i + 1, guess));
  }
  for (int round = 0; round < kBriefRounds; ++round) FT_RETURN_IF_ERROR(sample_again());
  memory_.reset(queue_);
  FT_RETURN_IF_ERROR(queue_.drain());
  CostTable times = step_times();
  complete_costs(times, guess);
  return times;
}

// Of the sizes in the order in which they are timed.
Status StepProfile::sample_sizes(Curve& curve, int begin, int end, const CostTable& guess) {
  const std::vector<int> sizes = profile_sizes(curve.most, false);
  end = std::min(end, static_cast<int>(sizes.size()));
  for (int i = begin; i < end; ++i) {
    FT_RETURN_IF_ERROR(sample_first(curve, sizes[static_cast<size_t>(i)], guess));
  }
  return {};
}

int64_t StepProfile::guessed_ns(const Curve& curve, int size, const CostTable& guess) const {
  if (curve.kind == CurveKind::kTarget) return guess.target.at(size);
  const bool all = curve.kind == CurveKind::kAllPasses;
  const auto drafter = static_cast<size_t>(curve.drafter);
  const int drafts = all ? drafters_[drafter]->traits().max_draft_tokens : 1;
  return guess.draft_ns(curve.drafter, {drafts, size, size});
}

// What a size will take: by the guess, as much faster or slower as the curve's first one was, or
// the target's, and by two measured ones where there are.
int64_t StepProfile::brief_ns(const Curve& curve, int size, const CostTable& guess) const {
  if (curve.probes.size() >= kSlope) return expected_ns(curve, size);
  const Curve& told = curve.probes.empty() ? curves_.front() : curve;
  const auto ns = static_cast<double>(guessed_ns(curve, size, guess));
  if (told.probes.empty()) return static_cast<int64_t>(ns);
  const auto& [first, probe] = *told.probes.begin();
  return static_cast<int64_t>(ns * static_cast<double>(probe.ns) /
                              static_cast<double>(guessed_ns(told, first, guess)));
}

// The first step of all tells so much that it may take as long as two measurements.
Status StepProfile::sample_first(Curve& curve, int size, const CostTable& guess) {
  const double most = config_.seconds * 1e9 * (curves_.front().probes.empty() ? 2 : 1);
  if (static_cast<double>(spent_ns_ + brief_ns(curve, size, guess)) > most) return {};
  const Batch batch = curve.batch_of(size);
  const int key = size_of(curve.kind, batch);
  if (curve.probes.contains(key)) return {};
  Probe& probe = curve.probes[key];
  probe.batch = batch;
  FT_RETURN_IF_ERROR(sample(curve, probe));
  probe.ns = probe.last_ns;
  return {};
}

// With half as many steps before them, for caches.
Status StepProfile::sample_again() {
  for (Curve& curve : curves_) {
    for (auto& [size, probe] : curve.probes) {
      const int64_t expected = std::max(probe.ns, sample_ns_ + sample_ns_ / 2);
      if (static_cast<double>(spent_ns_ + expected) > config_.seconds * 1e9) continue;
      FT_RETURN_IF_ERROR(sample(curve, probe));
      probe.ns = std::min(probe.ns, probe.last_ns);
    }
  }
  return {};
}

}  // namespace foretoken
