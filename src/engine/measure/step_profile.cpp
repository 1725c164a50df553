#include "engine/measure/step_profile.h"

#include <algorithm>

#include "engine/measure/profile_sizes.h"
#include "kernels/plan_layout.h"

namespace foretoken {
namespace {

constexpr int kContext = 256;      // known tokens of a made-up sequence, where they fit
constexpr int kShortContext = 64;  // the same where steps of short texts are timed
// Every size is timed once a round and its shortest time counts: other work on the machine only
// adds time, and what it adds changes from moment to moment rather than from size to size.
constexpr int kMaxRounds = 8;
constexpr int64_t kNoise = 50;        // a round that shortens no time by a 50th part is the last
constexpr double kSearchShare = 0.6;  // of the time, for the first run of the sizes
constexpr int kSlowEvery = 6;         // rounds in which slow sizes are timed too
constexpr int64_t kSlowNs = 10'000'000;
// Each step of CostTable::verify runs about so often within the time for the target.
constexpr int64_t kVerifyRuns = 3;
constexpr int kFarContext = 16 * kContext;  // known tokens that tell what context costs
constexpr int kFarSeqs = 16;                // sequences that do
constexpr size_t kFewestSizes = 2;          // timed whatever the budget; a slope takes two

}  // namespace

StepProfile::StepProfile(Device& device, Queue& queue, ModelRunner& runner, StepMemory& memory,
                         std::vector<Drafter*> drafters, const StepProfileConfig& config)
    : queue_(queue),
      runner_(runner),
      memory_(memory),
      drafters_(std::move(drafters)),
      config_(config),
      pinned_(device, MemoryKind::kPinned) {
  int longest = config_.max_len;
  for (const Drafter* drafter : drafters_) {
    max_draft_tokens_ = std::max(max_draft_tokens_, drafter->traits().max_draft_tokens);
    longest = std::min(longest, drafter->traits().max_len);
  }
  longest_ = std::max(longest - max_draft_tokens_ - 2, 1);
  context_ = std::min(longest_, kContext);
  if (context_ >= 2 * kShortContext) short_context_ = kShortContext;
  if (takes_turns()) return;
  int num_blocks = config_.num_blocks;
  if (config_.num_window_blocks > 0) num_blocks = std::min(num_blocks, config_.num_window_blocks);
  for (int32_t block = 1; block < num_blocks; ++block) turn_.blocks.push_back(block);
}

Result<CostTable> StepProfile::measure() {
  FT_RETURN_IF_ERROR(take_memory());
  add_curves();
  double seconds = 0;
  for (Curve& curve : curves_) {
    seconds += curve.seconds;
    FT_RETURN_IF_ERROR(find_sizes(curve));
  }
  FT_RETURN_IF_ERROR(add_context_curves());
  FT_RETURN_IF_ERROR(add_verify_curves());
  if (curves_.back().kind == CurveKind::kVerify) seconds += config_.seconds;
  FT_RETURN_IF_ERROR(add_short_curves());
  for (int round = 0; round < kMaxRounds; ++round) {
    FT_ASSIGN_OR_RETURN(const int64_t passed, agreed(spent_ns_));
    if (static_cast<double>(passed) > seconds * 1e9) break;
    FT_ASSIGN_OR_RETURN(const bool shorter, run_round(round % kSlowEvery == 0));
    if (round > 0 && !shorter) break;
  }
  if (!takes_turns()) memory_.reset(queue_);
  FT_RETURN_IF_ERROR(queue_.drain());
  return step_times();
}

// The target by rows; each drafter's first pass by rows, with the drafts that it gives, and its
// later passes by sequences, as the difference of all passes and one.
void StepProfile::add_curves() {
  const auto batch_of = [](int drafter, int num_seqs, int catch_up, int limit) {
    return Batch{.num_seqs = num_seqs,
                 .num_verified = 0,
                 .drafter = drafter,
                 .num_draft_tokens = limit,
                 .catch_up = catch_up};
  };
  curves_.push_back({.most = std::min(config_.max_rows, target_batch(config_.max_rows).num_rows()),
                     .seconds = config_.seconds,
                     .batch_of = [this](int rows) { return target_batch(rows); }});
  for (int i = 0; i < static_cast<int>(drafters_.size()); ++i) {
    const DrafterTraits& traits = drafters_[static_cast<size_t>(i)]->traits();
    const int catch_up = traits.has_kv ? 1 : 0;
    const int max_seqs_here = max_seqs(batch_of(i, 1, catch_up, 0));
    const auto passes = [=](int limit) {
      return [=](int seqs) { return batch_of(i, seqs, catch_up, limit); };
    };
    const double seconds = config_.seconds / (traits.has_kv ? 6 : 2);
    if (traits.has_kv) {
      const int each = std::min(traits.max_draft_tokens + 1, context_);
      const int max_rows =
          std::min(each * max_seqs(batch_of(i, 1, each, 0)), config_.max_catch_up_rows);
      const auto rows_batch = [=, this](int rows) {
        const int rows_each = std::min((rows + max_seqs_here - 1) / max_seqs_here, each);
        const int most = max_seqs(batch_of(i, 1, rows_each, 0));
        return batch_of(i, std::min(rows / rows_each, most), rows_each, 1);
      };
      curves_.push_back({CurveKind::kCatchUp, i, max_rows, seconds, rows_batch, {}});
      curves_.push_back({CurveKind::kOnePass, i, max_seqs_here, seconds, passes(1), {}});
    }
    curves_.push_back(
        {CurveKind::kAllPasses, i, max_seqs_here, seconds, passes(traits.max_draft_tokens), {}});
  }
}

// Sizes 1, 2, 4, ..., or where that takes too long every second one of them; none where that does.
Status StepProfile::add_verify_curves() {
  const auto batch_of = [](int num_verified, bool idle, int seqs) {
    return Batch{.num_seqs = seqs, .num_verified = num_verified, .idle = idle};
  };
  const std::vector<int> counts = profile_drafts(max_draft_tokens_);
  const int max_seqs_here = max_seqs(batch_of(max_draft_tokens_, false, 1));
  for (const int factor : {2, 4}) {
    std::vector<Curve> curves;
    int64_t expected = 0;
    for (const int count : counts) {
      const int most = std::min(max_seqs_here, config_.max_rows / (count + 1));
      for (const bool idle : {false, true}) {
        if (most < 1 || (idle && count == 0)) continue;
        Curve& curve = curves.emplace_back();
        curve.kind = CurveKind::kVerify;
        for (int size = 1;; size = std::min(size * factor, most)) {
          curve.probes[size].batch = batch_of(count, idle, size);
          expected += expected_ns(curves_.front(), size * (count + 1));
          if (size == most) break;
        }
      }
    }
    if (static_cast<double>(expected * kVerifyRuns) > config_.seconds * 1e9) continue;
    for (Curve& curve : curves) {
      for (auto& [size, probe] : curve.probes) {
        FT_RETURN_IF_ERROR(sample(curve, probe));
        probe.ns = probe.last_ns;
      }
      curves_.push_back(std::move(curve));
    }
    break;
  }
  return {};
}

// Without drafts and with most of them: sequences that know as much as in all other steps, and
// those that know much more; fewer sequences where that takes too long, as where a device computes
// each row's attention by itself.
Status StepProfile::add_context_curves() {
  const int far = std::min(longest_, kFarContext);
  if (far < 2 * context_ || config_.seconds <= 0) return {};
  const int max_draft_tokens = std::min(max_draft_tokens_, config_.max_rows - 1);
  Batch batch{.num_verified = max_draft_tokens, .known = far};
  batch.num_seqs = std::min({max_seqs(batch), kFarSeqs, config_.max_rows / (max_draft_tokens + 1)});
  int64_t far_ns = 0;  // what one far sequence takes longer, without drafts
  for (const int drafts : {0, max_draft_tokens}) {
    batch.num_verified = drafts;
    const auto expected = [&] {
      return 2 * expected_ns(curves_.front(), batch.num_rows()) + far_ns * batch.num_rows();
    };
    while (batch.num_seqs > 1 &&
           static_cast<double>(kVerifyRuns * expected()) > config_.seconds * 1e9) {
      batch.num_seqs = std::max(batch.num_seqs / 4, 1);
    }
    Curve curve;
    curve.kind = CurveKind::kContext;
    for (const int known : {context_, far}) {
      batch.known = known;
      Probe& probe = curve.probes[known];
      probe.batch = batch;
      FT_RETURN_IF_ERROR(sample(curve, probe));
      probe.ns = probe.last_ns;
    }
    far_ns =
        std::max<int64_t>(curve.probes[far].ns - curve.probes[context_].ns, 0) / batch.num_seqs;
    curves_.push_back(std::move(curve));
    if (max_draft_tokens == 0) break;
  }
  return {};
}

int StepProfile::size_of(CurveKind kind, const Batch& batch) {
  switch (kind) {
    case CurveKind::kTarget:
      return batch.num_rows();
    case CurveKind::kCatchUp:
      return batch.num_seqs * batch.catch_up;
    case CurveKind::kContext:
      return batch.known;
    case CurveKind::kVerify:
    case CurveKind::kOnePass:
    case CurveKind::kAllPasses:
      break;
  }
  return batch.num_seqs;
}

// What a size will take, by the straight line through its neighbours or, beyond all, through the
// two nearest smaller ones.
int64_t StepProfile::expected_ns(const Curve& curve, int size) {
  auto probe = curve.probes.upper_bound(size);
  if (probe == curve.probes.begin()) return 0;
  const auto above = probe;
  const auto& [b, at_b] = *--probe;
  if (above != curve.probes.end()) {
    const auto& [c, at_c] = *above;
    return at_b.ns + (at_c.ns - at_b.ns) * (size - b) / (c - b);
  }
  if (probe == curve.probes.begin()) return at_b.ns * size / b;
  const auto& [a, at_a] = *--probe;
  return at_b.ns + std::max<int64_t>(at_b.ns - at_a.ns, 0) * (size - b) / (b - a);
}

// Runs each size once that the curve's time is enough for, which also captures its graph.
Status StepProfile::find_sizes(Curve& curve) {
  const int64_t before = spent_ns_;
  for (const int size : profile_sizes(curve.most, curve.kind == CurveKind::kTarget)) {
    FT_ASSIGN_OR_RETURN(const int64_t passed, agreed(spent_ns_ - before));
    const auto end = static_cast<double>(passed + expected_ns(curve, size));
    const bool fits = end < kSearchShare * curve.seconds * 1e9;
    if (!fits && curve.probes.size() >= kFewestSizes) continue;
    const Batch batch = curve.batch_of(size);
    const int key = size_of(curve.kind, batch);
    if (curve.probes.contains(key)) continue;
    Probe& probe = curve.probes[key];
    probe.batch = batch;
    FT_RETURN_IF_ERROR(sample(curve, probe));
    probe.ns = probe.last_ns;
  }
  return {};
}

// Whether any time became shorter by more than the clock's noise.
Result<bool> StepProfile::run_round(bool slow_too) {
  bool shorter = false;
  for (std::vector<Curve>* curves : {&curves_, &short_curves_}) {
    for (Curve& curve : *curves) {
      FT_ASSIGN_OR_RETURN(const bool now, run_round_of(curve, slow_too));
      shorter = shorter || now;
    }
  }
  return shorter;
}

Result<bool> StepProfile::run_round_of(Curve& curve, bool slow_too) {
  bool shorter = false;
  for (auto& [size, probe] : curve.probes) {
    if (probe.ns > kSlowNs && !slow_too) continue;
    FT_RETURN_IF_ERROR(sample(curve, probe));
    shorter = shorter || probe.last_ns < probe.ns - probe.ns / kNoise;
    probe.ns = std::min(probe.ns, probe.last_ns);
  }
  return shorter;
}

// What else a machine does makes times longer, never shorter: a step takes no longer than a larger
// one, nor than several smaller ones that have its size together.
std::map<int, int64_t> StepProfile::shortest(const Curve& curve) {
  std::map<int, int64_t> times;
  int64_t least = INT64_MAX;
  for (auto probe = curve.probes.rbegin(); probe != curve.probes.rend(); ++probe) {
    least = std::min(least, probe->second.ns);
    times[probe->first] = least;
  }
  for (auto larger = times.begin(); larger != times.end(); ++larger) {
    for (auto smaller = times.begin(); smaller != larger; ++smaller) {
      const int count = (larger->first + smaller->first - 1) / smaller->first;
      larger->second = std::min(larger->second, count * smaller->second);
    }
  }
  return times;
}

// More drafts never take less time, nor does having them.
std::vector<VerifyTimes> StepProfile::verify_times() const {
  std::vector<VerifyTimes> all;
  std::map<int, int64_t> max_full;
  std::map<int, int64_t> max_idle;
  const auto lower = [](std::map<int, int64_t> times, std::map<int, int64_t>& bounds) {
    for (auto& [size, ns] : times) {
      const auto [bound, is_first] = bounds.try_emplace(size, ns);
      ns = bound->second = std::min(ns, bound->second);
    }
    return times;
  };
  const auto curve_of = [](const std::map<int, int64_t>& times) {
    TimeCurve curve;
    for (const auto& [size, ns] : times) curve.add(size, ns);
    return curve;
  };
  for (auto curve = curves_.rbegin(); curve != curves_.rend(); ++curve) {
    if (curve->kind != CurveKind::kVerify) break;
    const Batch& batch = curve->probes.begin()->second.batch;
    if (batch.idle) {
      all.push_back({batch.num_verified, curve_of(lower(shortest(*curve), max_idle)), {}});
      continue;
    }
    const std::map<int, int64_t> full = lower(shortest(*curve), max_full);
    if (batch.num_verified == 0) all.push_back({0, curve_of(lower(full, max_idle)), {}});
    all.back().full = curve_of(full);
  }
  std::reverse(all.begin(), all.end());
  return all;
}

ContextTime StepProfile::context_time(const Curve& curve) {
  const std::map<int, int64_t> times = shortest(curve);
  const auto [near, near_ns] = *times.begin();
  const auto [far, far_ns] = *times.rbegin();
  const Batch& batch = curve.probes.begin()->second.batch;
  return {batch.num_verified, (far_ns - near_ns) * 1000 / (int64_t{batch.num_seqs} * (far - near))};
}

CostTable StepProfile::step_times() const {
  CostTable times;
  times.known_tokens = context_;
  times.verify = verify_times();
  for (size_t i = 0; i < drafters_.size(); ++i) {
    DrafterTimes& drafter = times.drafters.emplace_back();
    drafter.name = config_.drafter_names[i];
    drafter.one_pass = drafters_[i]->traits().one_pass;
  }
  std::map<int, int64_t> one_pass;
  for (const Curve& curve : curves_) {
    if (curve.kind == CurveKind::kVerify) continue;
    if (curve.kind == CurveKind::kContext) {
      times.context.push_back(context_time(curve));
      continue;
    }
    const std::map<int, int64_t> found = shortest(curve);
    if (curve.kind == CurveKind::kOnePass) {
      one_pass = found;
      continue;
    }
    if (curve.kind == CurveKind::kTarget) {
      for (const auto& [size, ns] : found) times.target.add(size, ns);
      continue;
    }
    DrafterTimes& drafter = times.drafters[static_cast<size_t>(curve.drafter)];
    const DrafterTraits& traits = drafters_[static_cast<size_t>(curve.drafter)]->traits();
    if (curve.kind == CurveKind::kCatchUp) {
      for (const auto& [size, ns] : found) drafter.catch_up.add(size, ns);
    } else if (!traits.has_kv) {
      const int passes = traits.one_pass ? 1 : traits.max_draft_tokens;
      for (const auto& [size, ns] : found) drafter.pass.add(size, ns / passes);
    } else if (traits.max_draft_tokens > 1) {
      for (const auto& [size, ns] : found) {
        const auto one = one_pass.find(size);
        if (one == one_pass.end()) continue;
        drafter.pass.add(size,
                         std::max<int64_t>(ns - one->second, 0) / (traits.max_draft_tokens - 1));
      }
    }
  }
  add_short_steps(times);
  add_short_passes(times);
  return times;
}

}  // namespace foretoken
