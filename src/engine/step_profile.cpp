#include "engine/step_profile.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>

#include "kernels/plan_layout.h"

namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kContext = 256;  // known tokens of a made-up sequence, where they fit
// How often a step is timed, by how long its first run took. Steps of a sample are enqueued
// together, so that the host's part overlaps.
struct Sampling {
  int64_t below_ns;
  size_t num_samples;
  int num_steps;  // of a sample
};
constexpr Sampling kSamplings[] = {
    {5'000'000, 8, 3}, {50'000'000, 4, 1}, {200'000'000, 2, 1}, {INT64_MAX, 1, 1}};
constexpr int kRunsASize = 3;       // at least about so many, for the time that a size will take
constexpr size_t kFewestSizes = 2;  // measured whatever the time; a slope takes two

int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

// Of what `run` enqueues: the lower quartile, since other work on the machine only adds time.
template <class Run>
Result<int64_t> measured_ns(Queue& queue, Run&& run) {
  const auto timed = [&](int count) -> Result<int64_t> {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < count; ++i) run();
    FT_RETURN_IF_ERROR(queue.drain());
    return ns_since(start) / count;
  };
  FT_RETURN_IF_ERROR(queue.drain());
  // The first run may capture a graph and touch memory for the first time.
  FT_ASSIGN_OR_RETURN(const int64_t first, timed(1));
  const Sampling& sampling = *std::find_if(std::begin(kSamplings), std::end(kSamplings),
                                           [&](const Sampling& s) { return first < s.below_ns; });
  std::vector<int64_t> samples(sampling.num_samples);
  for (int64_t& sample : samples) {
    FT_ASSIGN_OR_RETURN(sample, timed(sampling.num_steps));
  }
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 4];
}

// 1, 2, 4, ... `most`, every second one first, so that a short time still spans the sizes.
std::vector<int> sizes_in_order(int most) {
  std::vector<int> all;
  for (int size = 1; size < most; size *= 2) all.push_back(size);
  all.push_back(most);
  std::vector<int> order;
  for (const size_t begin : {size_t{0}, size_t{1}}) {
    for (size_t i = begin; i < all.size(); i += 2) order.push_back(all[i]);
  }
  return order;
}

// What is to be expected of a larger size: at most proportional to the nearest one below.
int64_t expected_ns(const std::map<int, int64_t>& measured, int size) {
  const auto above = measured.upper_bound(size);
  if (above == measured.begin()) return 0;
  const auto& [below, ns] = *std::prev(above);
  return ns * size / below;
}

// `measure(size)` gives the time; sizes that would pass the end of `seconds` are left out.
template <class Measure>
Result<TimeCurve> measure_curve(int most, double seconds, Measure&& measure) {
  std::map<int, int64_t> measured;
  const Clock::time_point start = Clock::now();
  for (const int size : sizes_in_order(most)) {
    const int64_t end = ns_since(start) + kRunsASize * expected_ns(measured, size);
    if (measured.size() >= kFewestSizes && static_cast<double>(end) > seconds * 1e9) continue;
    FT_ASSIGN_OR_RETURN(measured[size], measure(size));
  }
  TimeCurve curve;
  for (const auto& [size, ns] : measured) curve.add(size, ns);
  return curve;
}

SlotParams plain_params(int drafter, int max_len) {
  SlotParams params{};
  params.top_p = 1;
  params.repetition_penalty = 1;
  params.prompt_len = 1;
  params.max_len = max_len;
  params.max_drafts = kMaxDrafts;
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
    max_drafts_ = std::max(max_drafts_, drafter->traits().max_drafts);
    longest = std::min(longest, drafter->traits().max_len);
  }
  context_ = std::clamp(longest - max_drafts_ - 2, 1, kContext);
}

Result<StepTimes> StepProfile::measure() {
  FT_RETURN_IF_ERROR(take_memory());
  StepTimes times;
  const int most_rows = std::min(config_.max_rows, target_batch(config_.max_rows).num_rows());
  FT_ASSIGN_OR_RETURN(times.target, measure_curve(most_rows, config_.seconds, [&](int rows) {
                        return measure_target(target_batch(rows));
                      }));
  for (size_t i = 0; i < drafters_.size(); ++i) {
    DrafterTimes& drafter = times.drafters.emplace_back();
    drafter.name = config_.drafter_names[i];
    FT_RETURN_IF_ERROR(measure_drafter_curves(static_cast<int>(i), drafter));
  }
  memory_.reset(queue_);
  FT_RETURN_IF_ERROR(queue_.drain());
  return times;
}

Status StepProfile::take_memory() {
  const auto slots = static_cast<size_t>(memory_.batch.num_slots);
  const auto blocks = static_cast<size_t>(memory_.batch.max_blocks);
  FT_ASSIGN_OR_RETURN(states_, pinned_.take_array<SlotState>(slots, "made-up sequences"));
  FT_ASSIGN_OR_RETURN(params_, pinned_.take_array<SlotParams>(slots, "made-up sequences"));
  FT_ASSIGN_OR_RETURN(tables_, pinned_.take_array<int32_t>(slots * blocks, "made-up sequences"));
  return {};
}

// The positions that a step of the batch writes, as blocks [first, last] of a sequence.
StepProfile::Written StepProfile::written(const Batch& batch) const {
  const int size = memory_.batch.block_size;
  const int begin = std::max(0, context_ - std::max(1, batch.catch_up));
  const int end = context_ + max_drafts_ + 1;
  return {begin / size, std::min(end / size, memory_.batch.max_blocks - 1)};
}

// Sequences that find a row and blocks of their own for what they write.
int StepProfile::most_seqs(const Batch& batch) const {
  const int each = written(batch).count();
  int most = std::min({memory_.batch.num_slots, config_.max_rows, (config_.num_blocks - 1) / each});
  if (config_.num_window_blocks > 0) most = std::min(most, (config_.num_window_blocks - 1) / each);
  return std::max(most, 1);
}

// About `num_rows` rows: as few drafts as the sequences allow.
StepProfile::Batch StepProfile::target_batch(int num_rows) const {
  Batch batch;
  const int most = most_seqs(batch);
  batch.num_drafts = std::min((num_rows + most - 1) / most - 1, max_drafts_);
  batch.num_seqs = std::clamp(num_rows / (batch.num_drafts + 1), 1, most);
  return batch;
}

// As a step finds them, or as its commit leaves them to the drafter.
void StepProfile::write_states(const Batch& batch, bool committed) {
  for (int i = 0; i < batch.num_seqs; ++i) {
    SlotState& state = states_[i];
    state = {};
    state.len = context_ + (committed ? 1 : 0);
    state.computed = state.len - 1;
    state.num_drafts = committed ? 0 : batch.num_drafts;
    state.draft.computed = std::max(state.len - batch.catch_up, 1);
    params_[i] = plain_params(batch.drafter, config_.max_len);
  }
}

// Page headers too: they tell which entries a drafter has.
void StepProfile::copy_states(const Batch& batch) {
  const auto seqs = static_cast<size_t>(batch.num_seqs);
  queue_.copy(memory_.batch.slots, states_, seqs * sizeof(SlotState));
  const auto num_blocks = seqs * static_cast<size_t>(written(batch).count());
  queue_.fill(memory_.batch.page_headers + 1, 0, num_blocks * sizeof(PageHeader));
}

// Blocks 1, 2, ... in turn, each with one writer; the context before them is the null block's.
void StepProfile::copy_tables(const Batch& batch) {
  const Written blocks = written(batch);
  const int num_blocks = config_.num_window_blocks > 0
                             ? std::min(config_.num_blocks, config_.num_window_blocks)
                             : config_.num_blocks;
  int32_t next = 1;
  for (int i = 0; i < batch.num_seqs; ++i) {
    int32_t* row = tables_ + int64_t{i} * memory_.batch.max_blocks;
    std::fill_n(row, memory_.batch.max_blocks, 0);
    for (int b = blocks.first; b <= blocks.last; ++b) row[b] = next < num_blocks ? next++ : 0;
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
  if (batch.catch_up > 0 || batch.draft_limit > 0) {
    plan.drafts[static_cast<size_t>(batch.drafter)] = {batch.draft_limit,
                                                       batch.num_seqs * batch.catch_up,
                                                       batch.draft_limit > 0 ? batch.num_seqs : 0};
  }
  const PlanView entry = runner_.entry(step_);
  *entry.header = {step_, batch.num_seqs, 0, 0, 0, 0};
  for (int i = 0; i < batch.num_seqs; ++i) {
    entry.spans[i] = {.slot = i,
                      .num_tokens = 1,
                      .max_drafts = batch.num_drafts,
                      .num_new_ids = 0,
                      .token_offset = 0,
                      .write_position = 0,
                      .wants_all = 0,
                      .draft_limit = batch.draft_limit,
                      .draft_rows = batch.catch_up};
  }
  return plan;
}

void StepProfile::submit(const Batch& batch) {
  copy_states(batch);
  runner_.submit(encode(batch));
  ++step_;
}

Result<int64_t> StepProfile::measure_target(const Batch& batch) {
  FT_RETURN_IF_ERROR(queue_.drain());
  write_states(batch, false);
  copy_tables(batch);
  return measured_ns(queue_, [&] { submit(batch); });
}

// Only part 9, upon what one step of the batch left.
Result<int64_t> StepProfile::measure_drafter(const Batch& batch) {
  FT_RETURN_IF_ERROR(queue_.drain());
  write_states(batch, false);
  copy_tables(batch);
  submit(batch);
  FT_RETURN_IF_ERROR(queue_.drain());
  write_states(batch, true);
  const StepPlan plan = encode(batch);
  std::unique_ptr<Graph> graph;
  if (config_.graphs) {
    queue_.begin_capture();
    runner_.propose(plan);
    graph = queue_.end_capture();
  }
  return measured_ns(queue_, [&] {
    copy_states(batch);
    if (graph != nullptr) {
      queue_.replay(*graph);
    } else {
      runner_.propose(plan);
    }
  });
}

// The first pass by its rows, with the drafts that it gives; one later pass by sequences.
Status StepProfile::measure_drafter_curves(int index, DrafterTimes& times) {
  const DrafterTraits& traits = drafters_[static_cast<size_t>(index)]->traits();
  times.one_pass = traits.one_pass;
  const double seconds = config_.seconds / (traits.has_kv ? 4 : 2);
  const auto batch_of = [&](int num_seqs, int catch_up, int limit) {
    return Batch{.num_seqs = num_seqs,
                 .num_drafts = 0,
                 .drafter = index,
                 .draft_limit = limit,
                 .catch_up = catch_up};
  };
  const int most = most_seqs(batch_of(1, traits.has_kv ? 1 : 0, 0));
  if (!traits.has_kv) {
    FT_ASSIGN_OR_RETURN(times.pass, measure_curve(most, seconds, [&](int seqs) {
                          return measure_drafter(batch_of(seqs, 0, traits.max_drafts));
                        }));
    return {};
  }
  const int each = std::min(traits.max_drafts + 1, context_);
  const int most_rows = std::min(each * most_seqs(batch_of(1, each, 0)), config_.max_catch_up_rows);
  FT_ASSIGN_OR_RETURN(times.catch_up, measure_curve(most_rows, seconds, [&](int rows) {
                        const int rows_each = std::min((rows + most - 1) / most, each);
                        return measure_drafter(batch_of(rows / rows_each, rows_each, 1));
                      }));
  if (traits.max_drafts == 1) return {};
  FT_ASSIGN_OR_RETURN(times.pass, measure_curve(most, seconds, [&](int seqs) -> Result<int64_t> {
                        FT_ASSIGN_OR_RETURN(const int64_t one,
                                            measure_drafter(batch_of(seqs, 1, 1)));
                        FT_ASSIGN_OR_RETURN(const int64_t all,
                                            measure_drafter(batch_of(seqs, 1, traits.max_drafts)));
                        return std::max<int64_t>(all - one, 0) / (traits.max_drafts - 1);
                      }));
  return {};
}

}  // namespace foretoken
