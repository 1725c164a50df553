#include <algorithm>
#include <chrono>

#include "engine/measure/step_profile.h"
#include "kernels/branches.h"
#include "kernels/plan_layout.h"

// The made-up sequences and the steps that StepProfile runs on them.
namespace foretoken {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxSteps = 16;  // of a sample
constexpr uint64_t kStepsInFlight = kStepRingSize - 1;
constexpr std::chrono::milliseconds kWaitForEver = std::chrono::hours(24);

int64_t ns_since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

SlotParams plain_params(int drafter, int max_len) {
  SlotParams params{};
  params.top_p = 1;
  params.repetition_penalty = 1;
  params.prompt_len = 1;
  params.max_len = max_len;
  params.max_draft_tokens = kMaxDraftTokens;
  params.drafter = drafter;
  params.num_logprobs = kNoLogprobs;
  return params;
}

}  // namespace

Status StepProfile::take_memory() {
  const auto slots = static_cast<size_t>(memory_.batch.num_slots);
  const auto blocks = static_cast<size_t>(memory_.batch.max_blocks);
  FT_ASSIGN_OR_RETURN(states_, pinned_.take_array<SlotState>(slots, "made-up sequences"));
  FT_ASSIGN_OR_RETURN(params_, pinned_.take_array<SlotParams>(slots, "made-up sequences"));
  FT_ASSIGN_OR_RETURN(priors_, pinned_.take_array<DraftRates>(kMaxDrafters, "draft rates"));
  FT_ASSIGN_OR_RETURN(tables_, pinned_.take_array<int32_t>(slots * blocks, "made-up sequences"));
  return ids_.draw(pinned_, config_.vocab_size);
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
int StepProfile::max_seqs(const Batch& batch) const {
  const int each = written(batch).count();
  int most =
      std::min({first_branch(memory_.batch), config_.max_rows, (config_.num_blocks - 1) / each});
  if (config_.num_window_blocks > 0) most = std::min(most, (config_.num_window_blocks - 1) / each);
  return std::max(most, 1);
}

// `num_rows` rows, or about as many where no number of drafts divides them: what is to be decided
// is whether sequences shall have more drafts, so that rows are those of few sequences with many.
StepProfile::Batch StepProfile::target_batch(int num_rows) const {
  Batch batch;
  const int most = max_seqs(batch);
  for (int drafts = max_draft_tokens_; drafts >= 0; --drafts) {
    if (num_rows % (drafts + 1) != 0 || num_rows / (drafts + 1) > most) continue;
    batch.num_seqs = num_rows / (drafts + 1);
    batch.num_verified = drafts;
    return batch;
  }
  batch.num_seqs = std::clamp((num_rows + max_draft_tokens_) / (max_draft_tokens_ + 1), 1, most);
  batch.num_verified = std::clamp(num_rows / batch.num_seqs - 1, 0, max_draft_tokens_);
  return batch;
}

// As a step finds them, or as its commit leaves them to the drafter.
void StepProfile::write_states(const Batch& batch, bool committed) {
  for (int i = 0; i < batch.num_seqs; ++i) {
    SlotState& state = states_[i];
    state = {};
    state.len = known_tokens(batch) + (committed ? 1 : 0);
    state.computed = state.len - 1;
    state.num_draft_tokens = committed || batch.idle ? 0 : batch.num_verified;
    state.draft.computed = std::max(state.len - batch.catch_up, 1);
    ids_.write_drafts(static_cast<size_t>(i), state);
    params_[i] = plain_params(batch.drafter, config_.max_len);
  }
}

// Those that the batch's sequences write.
std::span<const int32_t> StepProfile::own_blocks(const Batch& batch) const {
  const size_t wanted =
      static_cast<size_t>(batch.num_seqs) * static_cast<size_t>(written(batch).count());
  return std::span(turn_.blocks).first(std::min(wanted, turn_.blocks.size()));
}

// Page headers too: they tell which entries a drafter has.
void StepProfile::copy_states(const Batch& batch) {
  const auto seqs = static_cast<size_t>(batch.num_seqs);
  queue_.copy(memory_.batch.slots, states_, seqs * sizeof(SlotState));
  // In runs: the blocks are nearly always one.
  const std::span<const int32_t> blocks = own_blocks(batch);
  for (size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    for (end = begin + 1; end < blocks.size(); ++end) {
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
  ids_.copy_to_pages(queue_, memory_.batch, own_blocks(batch));
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
                      .max_verified = batch.num_verified,
                      .num_new_ids = 0,
                      .token_offset = 0,
                      .write_position = 0,
                      .wants_all = 0,
                      .num_draft_tokens = batch.num_draft_tokens,
                      .draft_rows = batch.catch_up,
                      .num_lookup_tokens = 0};
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
  if (!curve.in_steps()) FT_RETURN_IF_ERROR(upload(probe));
  const int num_steps =
      probe.ns > 0 ? static_cast<int>(std::clamp<int64_t>(sample_ns_ / probe.ns, 1, kMaxSteps)) : 1;
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
Status StepProfile::upload(Probe& probe) {
  const StepPlan plan = encode(probe.batch);
  runner_.upload_plan(plan);
  FT_RETURN_IF_ERROR(queue_.drain());
  write_states(probe.batch, true);
  if (!probe.recording) probe.recording = runner_.record_proposal(plan);
  return {};
}

}  // namespace foretoken
