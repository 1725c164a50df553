#include "engine/measure/step_profile.h"

#include <algorithm>
#include <chrono>

#include "engine/measure/profile_sizes.h"
#include "kernels/plan_layout.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kContext = 256;  // known tokens of a made-up sequence, where they fit
// Every size is timed once a round and its shortest time counts: other work on the machine only
// adds time, and what it adds changes from moment to moment rather than from size to size.
constexpr int kMostRounds = 8;
constexpr int64_t kNoise = 50;        // a round that shortens no time by a 50th part is the last
constexpr double kSearchShare = 0.6;  // of the time, for the first run of the sizes
constexpr int kSlowEvery = 6;         // rounds in which slow sizes are timed too
constexpr int64_t kSlowNs = 10'000'000;
constexpr int64_t kSampleNs = 4'000'000;  // a sample is as many steps as fit into this,
constexpr int kMostSteps = 16;            // but no more than these
constexpr uint64_t kStepsInFlight = kStepRingSize - 1;
constexpr std::chrono::milliseconds kWaitForEver = std::chrono::hours(24);
// Each step of CostTable::verify runs about so often within the time for the target.
constexpr int64_t kVerifyRuns = 3;
constexpr int kFarContext = 16 * kContext;  // known tokens that tell what context costs
constexpr int kFarSeqs = 16;                // sequences that do
constexpr size_t kFewestSizes = 2;          // timed whatever the budget; a slope takes two

int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

SlotParams plain_params(int drafter, int max_len) {
  SlotParams params{};
  params.top_p = 1;
  params.repetition_penalty = 1;
  params.prompt_len = 1;
  params.max_len = max_len;
  params.max_draft_tokens = kMaxDrafts;
  params.drafter = drafter;
  params.num_logprobs = kNoLogprobs;
  return params;
}

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
  for (int round = 0; round < kMostRounds; ++round) {
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
                 .num_drafts = 0,
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
    const int most_seqs_here = most_seqs(batch_of(i, 1, catch_up, 0));
    const auto passes = [=](int limit) {
      return [=](int seqs) { return batch_of(i, seqs, catch_up, limit); };
    };
    const double seconds = config_.seconds / (traits.has_kv ? 6 : 2);
    if (traits.has_kv) {
      const int each = std::min(traits.max_draft_tokens + 1, context_);
      const int most_rows =
          std::min(each * most_seqs(batch_of(i, 1, each, 0)), config_.max_catch_up_rows);
      const auto rows_batch = [=, this](int rows) {
        const int rows_each = std::min((rows + most_seqs_here - 1) / most_seqs_here, each);
        const int most = most_seqs(batch_of(i, 1, rows_each, 0));
        return batch_of(i, std::min(rows / rows_each, most), rows_each, 1);
      };
      curves_.push_back({CurveKind::kCatchUp, i, most_rows, seconds, rows_batch, {}});
      curves_.push_back({CurveKind::kOnePass, i, most_seqs_here, seconds, passes(1), {}});
    }
    curves_.push_back(
        {CurveKind::kAllPasses, i, most_seqs_here, seconds, passes(traits.max_draft_tokens), {}});
  }
}

// Sizes 1, 2, 4, ..., or where that takes too long every second one of them; none where that does.
Status StepProfile::add_verify_curves() {
  const auto batch_of = [](int num_drafts, bool idle, int seqs) {
    return Batch{.num_seqs = seqs, .num_drafts = num_drafts, .idle = idle};
  };
  const std::vector<int> counts = profile_drafts(max_draft_tokens_);
  const int most_seqs_here = most_seqs(batch_of(max_draft_tokens_, false, 1));
  for (const int factor : {2, 4}) {
    std::vector<Curve> curves;
    int64_t expected = 0;
    for (const int count : counts) {
      const int most = std::min(most_seqs_here, config_.max_rows / (count + 1));
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
  const int most_drafts = std::min(max_draft_tokens_, config_.max_rows - 1);
  Batch batch{.num_drafts = most_drafts, .known = far};
  batch.num_seqs = std::min({most_seqs(batch), kFarSeqs, config_.max_rows / (most_drafts + 1)});
  int64_t far_ns = 0;  // what one far sequence takes longer, without drafts
  for (const int drafts : {0, most_drafts}) {
    batch.num_drafts = drafts;
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
    if (most_drafts == 0) break;
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
  for (Curve& curve : curves_) {
    for (auto& [size, probe] : curve.probes) {
      if (probe.ns > kSlowNs && !slow_too) continue;
      FT_RETURN_IF_ERROR(sample(curve, probe));
      shorter = shorter || probe.last_ns < probe.ns - probe.ns / kNoise;
      probe.ns = std::min(probe.ns, probe.last_ns);
    }
  }
  return shorter;
}

// A smaller step never takes longer than a larger one.
std::map<int, int64_t> StepProfile::shortest(const Curve& curve) {
  std::map<int, int64_t> times;
  int64_t least = INT64_MAX;
  for (auto probe = curve.probes.rbegin(); probe != curve.probes.rend(); ++probe) {
    least = std::min(least, probe->second.ns);
    times[probe->first] = least;
  }
  return times;
}

// More drafts never take less time, nor does having them.
std::vector<VerifyTimes> StepProfile::verify_times() const {
  std::vector<VerifyTimes> all;
  std::map<int, int64_t> most_full;
  std::map<int, int64_t> most_idle;
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
      all.push_back({batch.num_drafts, curve_of(lower(shortest(*curve), most_idle)), {}});
      continue;
    }
    const std::map<int, int64_t> full = lower(shortest(*curve), most_full);
    if (batch.num_drafts == 0) all.push_back({0, curve_of(lower(full, most_idle)), {}});
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
  return {batch.num_drafts, (far_ns - near_ns) * 1000 / (int64_t{batch.num_seqs} * (far - near))};
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
      for (const auto& [size, ns] : found) drafter.pass.add(size, ns);
    } else if (traits.max_draft_tokens > 1) {
      for (const auto& [size, ns] : found) {
        const auto one = one_pass.find(size);
        if (one == one_pass.end()) continue;
        drafter.pass.add(size,
                         std::max<int64_t>(ns - one->second, 0) / (traits.max_draft_tokens - 1));
      }
    }
  }
  return times;
}

Status StepProfile::take_memory() {
  const auto slots = static_cast<size_t>(memory_.batch.num_slots);
  const auto blocks = static_cast<size_t>(memory_.batch.max_blocks);
  FT_ASSIGN_OR_RETURN(states_, pinned_.take_array<SlotState>(slots, "made-up sequences"));
  FT_ASSIGN_OR_RETURN(params_, pinned_.take_array<SlotParams>(slots, "made-up sequences"));
  FT_ASSIGN_OR_RETURN(priors_, pinned_.take_array<DraftRates>(kMaxDrafters, "draft rates"));
  FT_ASSIGN_OR_RETURN(tables_, pinned_.take_array<int32_t>(slots * blocks, "made-up sequences"));
  return {};
}

// The positions that a step of the batch writes, and where the sequences know much those before, as
// blocks [first, last] of a sequence.
StepProfile::Written StepProfile::written(const Batch& batch) const {
  const int size = memory_.batch.block_size;
  const int known = known_tokens(batch);
  const int begin = batch.known > 0 ? 0 : std::max(0, known - std::max(1, batch.catch_up));
  const int end = known + max_draft_tokens_ + 1;
  return {begin / size, std::min(end / size, memory_.batch.max_blocks - 1)};
}

// Sequences that find a row and blocks of their own for what they write.
int StepProfile::most_seqs(const Batch& batch) const {
  const int each = written(batch).count();
  int most = std::min({memory_.batch.num_slots, config_.max_rows, (config_.num_blocks - 1) / each});
  if (config_.num_window_blocks > 0) most = std::min(most, (config_.num_window_blocks - 1) / each);
  return std::max(most, 1);
}

// `num_rows` rows, or about as many where no number of drafts divides them: what is to be decided
// is whether sequences shall have more drafts, so that rows are those of few sequences with many.
StepProfile::Batch StepProfile::target_batch(int num_rows) const {
  Batch batch;
  const int most = most_seqs(batch);
  for (int drafts = max_draft_tokens_; drafts >= 0; --drafts) {
    if (num_rows % (drafts + 1) != 0 || num_rows / (drafts + 1) > most) continue;
    batch.num_seqs = num_rows / (drafts + 1);
    batch.num_drafts = drafts;
    return batch;
  }
  batch.num_seqs = std::clamp((num_rows + max_draft_tokens_) / (max_draft_tokens_ + 1), 1, most);
  batch.num_drafts = std::clamp(num_rows / batch.num_seqs - 1, 0, max_draft_tokens_);
  return batch;
}

// As a step finds them, or as its commit leaves them to the drafter.
void StepProfile::write_states(const Batch& batch, bool committed) {
  for (int i = 0; i < batch.num_seqs; ++i) {
    SlotState& state = states_[i];
    state = {};
    state.len = known_tokens(batch) + (committed ? 1 : 0);
    state.computed = state.len - 1;
    state.num_drafts = committed || batch.idle ? 0 : batch.num_drafts;
    state.draft.computed = std::max(state.len - batch.catch_up, 1);
    params_[i] = plain_params(batch.drafter, config_.max_len);
  }
}

// Page headers too: they tell which entries a drafter has.
void StepProfile::copy_states(const Batch& batch) {
  const auto seqs = static_cast<size_t>(batch.num_seqs);
  queue_.copy(memory_.batch.slots, states_, seqs * sizeof(SlotState));
  const auto num_blocks = std::min(seqs * static_cast<size_t>(written(batch).count()),
                                   static_cast<size_t>(config_.num_blocks - 1));
  // In runs: the blocks are nearly always one.
  const std::vector<int32_t>& blocks = turn_.blocks;
  for (size_t begin = 0, end = 0; begin < std::min(num_blocks, blocks.size()); begin = end) {
    for (end = begin + 1; end < std::min(num_blocks, blocks.size()); ++end) {
      if (blocks[end] != blocks[end - 1] + 1) break;
    }
    queue_.fill(memory_.batch.page_headers + blocks[begin], 0, (end - begin) * sizeof(PageHeader));
  }
}

// The turn's blocks one after the other, each with one writer; the context before them is the null
// block's, and so is all of those that find none.
void StepProfile::copy_tables(const Batch& batch) {
  const Written blocks = written(batch);
  size_t next = 0;
  for (int i = 0; i < batch.num_seqs; ++i) {
    int32_t* row = tables_ + int64_t{i} * memory_.batch.max_blocks;
    std::fill_n(row, memory_.batch.max_blocks, 0);
    for (int b = blocks.first; b <= blocks.last; ++b) {
      row[b] = next < turn_.blocks.size() ? turn_.blocks[next++] : 0;
    }
  }
  const size_t bytes = static_cast<size_t>(batch.num_seqs) *
                       static_cast<size_t>(memory_.batch.max_blocks) * sizeof(int32_t);
  queue_.copy(memory_.batch.params, params_,
              static_cast<size_t>(batch.num_seqs) * sizeof(SlotParams));
  queue_.copy(memory_.batch.block_tables, tables_, bytes);
  if (memory_.batch.window_tables != nullptr) {
    queue_.copy(memory_.batch.window_tables, tables_, bytes);
  }
}

StepPlan StepProfile::encode(const Batch& batch) {
  StepPlan plan;
  plan.step = step_;
  plan.num_rows = plan.num_logits_rows = batch.num_rows();
  if (batch.catch_up > 0 || batch.num_draft_tokens > 0) {
    plan.drafts[static_cast<size_t>(batch.drafter)] = {
        batch.num_draft_tokens, batch.num_seqs * batch.catch_up,
        batch.num_draft_tokens > 0 ? batch.num_seqs : 0};
  }
  const PlanView entry = runner_.entry(step_);
  *entry.header = {step_, batch.num_seqs, 0, 0, 0, 0};
  for (int i = 0; i < batch.num_seqs; ++i) {
    entry.spans[i] = {.slot = i,
                      .num_tokens = 1,
                      .max_verified = batch.num_drafts,
                      .num_new_ids = 0,
                      .token_offset = 0,
                      .write_position = 0,
                      .wants_all = 0,
                      .num_draft_tokens = batch.num_draft_tokens,
                      .draft_rows = batch.catch_up};
  }
  return plan;
}

// What requests left on the device that made-up sequences would change.
Status StepProfile::begin_turn() {
  if (!takes_turns()) return {};
  FT_RETURN_IF_ERROR(config_.begin_turn(&turn_));
  step_ = turn_.step;
  queue_.copy(priors_, memory_.batch.priors, kMaxDrafters * sizeof(DraftRates));
  queue_.fill(memory_.batch.priors, 0, kMaxDrafters * sizeof(DraftRates));
  return {};
}

void StepProfile::end_turn() {
  if (!takes_turns()) return;
  queue_.copy(memory_.batch.priors, priors_, kMaxDrafters * sizeof(DraftRates));
  queue_.fill(memory_.batch.slots, 0,
              static_cast<size_t>(memory_.batch.num_slots) * sizeof(SlotState));
  config_.end_turn(step_);
}

Status StepProfile::sample(const Curve& curve, Probe& probe) {
  FT_RETURN_IF_ERROR(begin_turn());
  const Clock::time_point begin = Clock::now();
  const Status status = run(curve, probe);
  spent_ns_ += ns_since(begin);
  end_turn();
  return status;
}

Status StepProfile::run(const Curve& curve, Probe& probe) {
  const Batch& batch = probe.batch;
  write_states(batch, false);
  copy_tables(batch);
  copy_states(batch);
  if (!curve.in_steps()) FT_RETURN_IF_ERROR(stage(probe));
  const int num_steps =
      probe.ns > 0 ? static_cast<int>(std::clamp<int64_t>(kSampleNs / probe.ns, 1, kMostSteps)) : 1;
  // Caches and threads as they are while one step follows another.
  for (int i = 0; i < num_steps / 2; ++i) FT_RETURN_IF_ERROR(enqueue(curve, probe));
  FT_RETURN_IF_ERROR(queue_.drain());
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < num_steps; ++i) FT_RETURN_IF_ERROR(enqueue(curve, probe));
  FT_RETURN_IF_ERROR(queue_.drain());
  FT_ASSIGN_OR_RETURN(probe.last_ns, agreed(std::max<int64_t>(ns_since(start) / num_steps, 1)));
  return {};
}

Status StepProfile::enqueue(const Curve& curve, const Probe& probe) {
  copy_states(probe.batch);
  if (curve.in_steps()) {
    if (step_ >= kStepsInFlight) {
      FT_RETURN_IF_ERROR(queue_.wait(memory_.published, step_ - kStepsInFlight + 1, kWaitForEver));
    }
    runner_.submit(encode(probe.batch));
    ++step_;
  } else if (probe.recording) {
    probe.recording->replay(queue_);
  } else {
    runner_.propose(encode(probe.batch));
  }
  return {};
}

// Brings the plan of a drafter's step onto the device, and the states to what its commit leaves.
Status StepProfile::stage(Probe& probe) {
  const StepPlan plan = encode(probe.batch);
  runner_.stage(plan);
  FT_RETURN_IF_ERROR(queue_.drain());
  write_states(probe.batch, true);
  if (!probe.recording) probe.recording = runner_.record_proposal(plan);
  return {};
}

}  // namespace foretoken
