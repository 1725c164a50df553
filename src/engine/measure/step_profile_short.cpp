#include <algorithm>
#include <iterator>
#include <set>

#include "engine/measure/step_profile.h"

// Times of sequences that know little, as shares of those of all others.
namespace foretoken {
namespace {

// Sizes of a curve: the smallest, the largest, and the largest up to so many sequences. What a
// token of context costs changes from one that waits for memory to many that share it.
constexpr int kMiddleSize = 16;
constexpr size_t kMaxSizes = 3;
// Of the time for the target, for their first runs. What takes longer hardly depends on so little
// context.
constexpr double kTimeShare = 0.125;

}  // namespace

// Steps without drafts and with most of them, and all that drafters do: where the target alone were
// timed, drafts would seem dear.
bool StepProfile::has_short(const Curve& curve) const {
  if (curve.probes.empty()) return false;
  if (curve.kind == CurveKind::kOnePass || curve.kind == CurveKind::kAllPasses) return true;
  if (curve.kind != CurveKind::kVerify) return false;
  const Batch& batch = curve.probes.begin()->second.batch;
  return !batch.idle && (batch.num_verified == 0 || batch.num_verified == max_draft_tokens_);
}

std::vector<int> StepProfile::short_sizes(const Curve& curve) {
  std::set<int> sizes = {curve.probes.begin()->first, curve.probes.rbegin()->first};
  const auto above = curve.probes.upper_bound(kMiddleSize);
  if (above != curve.probes.begin()) sizes.insert(std::prev(above)->first);
  return {sizes.begin(), sizes.end()};
}

// None where there is no time for the smallest size of each.
void StepProfile::choose_short_sizes() {
  int64_t expected = 0;
  for (size_t rank = 0; rank < kMaxSizes; ++rank) {
    for (Curve& curve : short_curves_) {
      const Curve& repeated = curves_[curve.repeats];
      const std::vector<int> sizes = short_sizes(repeated);
      if (rank >= sizes.size()) continue;
      const Probe& longer = repeated.probes.at(sizes[rank]);
      if (static_cast<double>(expected + longer.ns) > kTimeShare * config_.seconds * 1e9) {
        if (rank == 0) return short_curves_.clear();
        continue;
      }
      expected += longer.ns;
      Probe& probe = curve.probes[sizes[rank]];
      probe.batch = longer.batch;
      probe.batch.is_short = true;
    }
  }
}

Status StepProfile::add_short_curves() {
  if (short_context_ == 0 || curves_.back().kind != CurveKind::kVerify) return {};
  for (size_t i = 0; i < curves_.size(); ++i) {
    if (!has_short(curves_[i])) continue;
    Curve& curve = short_curves_.emplace_back();
    curve.kind = curves_[i].kind;
    curve.drafter = curves_[i].drafter;
    curve.repeats = i;
  }
  choose_short_sizes();
  for (Curve& curve : short_curves_) {
    for (auto& [size, probe] : curve.probes) {
      FT_RETURN_IF_ERROR(sample(curve, probe));
      probe.ns = probe.last_ns;
    }
  }
  return {};
}

// More drafts never take less time.
void StepProfile::add_short_steps(CostTable& times) const {
  std::map<int, int64_t> bounds;
  for (auto curve = short_curves_.rbegin(); curve != short_curves_.rend(); ++curve) {
    if (curve->kind != CurveKind::kVerify) continue;
    const int drafts = curve->probes.begin()->second.batch.num_verified;
    const auto longer = std::ranges::find(times.verify, drafts, &VerifyTimes::drafts);
    if (longer == times.verify.end()) continue;
    ShortTime& each = times.short_steps.emplace_back();
    each.drafts = drafts;
    for (const auto& [size, ns] : shortest(*curve)) {
      const auto [bound, is_first] = bounds.try_emplace(size, ns);
      bound->second = std::min(ns, bound->second);
      each.shares.add_ratio(size, bound->second, longer->full.at(size));
    }
  }
  std::ranges::reverse(times.short_steps);
  if (!times.short_steps.empty()) times.short_tokens = short_context_;
}

// As for all others a later pass is the difference of all passes and the first.
void StepProfile::add_short_passes(CostTable& times) const {
  std::map<int, int64_t> first, short_first;
  for (const Curve& curve : short_curves_) {
    if (curve.kind == CurveKind::kVerify) continue;
    DrafterTimes& drafter = times.drafters[static_cast<size_t>(curve.drafter)];
    const std::map<int, int64_t> found = shortest(curves_[curve.repeats]);
    const std::map<int, int64_t> short_found = shortest(curve);
    if (curve.kind == CurveKind::kOnePass) {
      first = found;
      short_first = short_found;
      for (const auto& [size, ns] : short_found) {
        drafter.short_catch_up.add_ratio(size, ns, found.at(size));
      }
      continue;
    }
    const bool is_later = drafters_[static_cast<size_t>(curve.drafter)]->traits().has_kv;
    for (const auto& [size, ns] : short_found) {
      if (is_later && (!first.contains(size) || !short_first.contains(size))) continue;
      const int64_t whole = found.at(size) - (is_later ? first.at(size) : 0);
      const int64_t part = ns - (is_later ? short_first.at(size) : 0);
      drafter.short_pass.add_ratio(size, part, whole);
    }
  }
}

}  // namespace foretoken
