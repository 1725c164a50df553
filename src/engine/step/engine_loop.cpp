#include "engine/step/engine_loop.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/thread_role.h"
#include "engine/request/logprob_record.h"
#include "engine/step/clocks/phase_scope.h"
#include "engine/step/plan_encoder.h"
#include "kernels/plan_layout.h"
#include "kernels/step/publish.h"

namespace foretoken {
namespace {

// A step that takes longer is looked at again.
constexpr std::chrono::milliseconds kWaitSlice{1000};
constexpr size_t kLiveReserve = 65536;

RequestState& owner_of(Sequence& sequence) { return *static_cast<RequestState*>(sequence.owner); }

Status hanging_device(uint64_t step, std::chrono::milliseconds timeout) {
  return internal_error(
      "the device has not finished step " + std::to_string(step) + " within " +
      std::to_string(timeout.count()) +
      " ms and is given up; start the engine again, or raise --step-timeout-seconds if steps may "
      "take so long");
}

FinishReason finish_reason(DeviceFinish finish) {
  switch (finish) {
    case DeviceFinish::kNone:
      return FinishReason::kNone;
    case DeviceFinish::kStop:
      return FinishReason::kStop;
    case DeviceFinish::kLength:
      return FinishReason::kLength;
    case DeviceFinish::kError:
      return FinishReason::kError;
  }
  return FinishReason::kError;
}

}  // namespace

EngineLoop::EngineLoop(const Parts& parts, int steps_in_flight, const TestHooks& hooks,
                       std::chrono::milliseconds step_timeout)
    : queue_(parts.queue),
      runner_(parts.runner),
      scheduler_(parts.scheduler),
      policy_(parts.policy),
      published_(parts.memory.published),
      outputs_(parts.outputs),
      limits_(parts.memory.limits()),
      result_limits_(parts.memory.result_limits()),
      stamps_(parts.memory.stamps),
      trace_(parts.trace),
      grammars_(parts.grammars),
      feed_(parts.feed),
      agreement_(parts.agreement),
      ranks_(parts.ranks),
      pacer_(limits_.max_tokens),
      bound_(parts.bound),
      kv_offload_(parts.kv_offload),
      state_store_(parts.state_store),
      awaits_arrivals_(parts.awaits_arrivals && parts.agreement == nullptr &&
                       parts.num_stages == 1 && steps_in_flight == 2),
      steps_in_flight_(steps_in_flight),
      num_stages_(static_cast<uint64_t>(parts.num_stages)),
      step_timeout_(step_timeout),
      hooks_(hooks),
      adapters_(parts.num_adapter_slots) {
  FT_CHECK(steps_in_flight >= 1 && steps_in_flight < kStepRingSize);
  for (StepPlan& plan : plans_) {
    plan.spans.reserve(limits_.max_spans);
    plan.blocks.reserve(limits_.max_block_updates);
    plan.adapter_loads.reserve(static_cast<size_t>(parts.num_adapter_slots));
    plan.states_out.reserve(state_store_ != nullptr ? 2 * limits_.max_spans : 0);
    plan.states_in.reserve(state_store_ != nullptr ? limits_.max_spans : 0);
    if (kv_offload_ == nullptr) continue;
    plan.moves_out.reserve(static_cast<size_t>(kv_offload_->max_moves()));
    plan.moves_in.reserve(static_cast<size_t>(kv_offload_->max_moves()));
  }
  live_.reserve(kLiveReserve);
  note_occupancy();
  // Another engine that has work asks for this one's part of its steps.
  if (agreement_ != nullptr) agreement_->set_waker([this] { intake_.announce_change(); });
}

EngineLoop::~EngineLoop() {
  stop();
  if (agreement_ != nullptr) agreement_->set_waker(nullptr);
}

void EngineLoop::start() {
  try {
    thread_ = std::thread([this] { main(); });
  } catch (...) {
    outputs_.close();  // the output thread waits for what this one would have closed
    throw;
  }
}

void EngineLoop::stop() {
  intake_.stop();
  rest_gate_.stop();
  if (thread_.joinable()) thread_.join();
}

Status EngineLoop::error() const {
  std::lock_guard lock(error_mutex_);
  return error_;
}

void EngineLoop::main() {
  set_thread_role(ThreadRole::kEngine, "ft-engine");
  while (!intake_.stopping()) {
    if (rest_gate_.is_wanted()) {
      rest_here();
      continue;
    }
    if (serve() || intake_.stopping()) continue;
    if (watch_.rest && !failed_.load()) watch_.rest();
    if (idle_work_ && live_.empty()) {
      scheduler_.drop_left_states();
      std::exchange(idle_work_, nullptr)();
    } else if (!rest_gate_.is_wanted()) {
      intake_.wait();
    }
  }
  add_submitted(intake_.take_and_close());
  for (size_t i = live_.size(); i-- > 0;) end_sequence(*live_[i], FinishReason::kAbort);
  while (num_reconciled_ < num_submitted_) wait_and_reconcile();
  if (agreement_ != nullptr) run_for_others();
  if (feed_ != nullptr && !failed_.load()) (void)feed_->end();
  outputs_.close();
}

// Plans, submits or reconciles a step; false when there is none.
bool EngineLoop::serve() {
  await_arrivals();
  take_in();
  note_occupancy();
  if (intake_.stopping()) return false;
  const bool planned = plan_and_submit();
  const uint64_t in_flight = num_submitted_ - num_reconciled_;
  const bool waits =
      in_flight == static_cast<uint64_t>(steps_in_flight_) || (!planned && in_flight > 0);
  if (waits) wait_and_reconcile();
  // Those who wait for their steps ask again at once.
  return planned || waits || agreed_.next == group::AgreedShape::Next::kWait;
}

void EngineLoop::add_submitted(RequestState* request) {
  if (request != nullptr && awaits_arrivals_) plan_timer_.note_arrival(now_ns());
  while (request != nullptr) {
    RequestState* next = request->next_submitted;
    live_.push_back(&request->sequence);
    next_deadline_ns_ =
        std::min({next_deadline_ns_, request->queue_deadline_ns, request->deadline_ns});
    scheduler_.add(request->sequence);
    // An abort may have been announced, and looked for, before the record came in.
    const bool aborted = request->shall_end();
    if (failed_.load() || !request->refused.ok()) {
      end_sequence(request->sequence, FinishReason::kError);
    } else if (aborted) {
      end_sequence(request->sequence, FinishReason::kAbort);
    }
    request = next;
  }
}

void EngineLoop::end_requested() {
  for (size_t i = live_.size(); i-- > 0;) {
    Sequence& sequence = *live_[i];
    if (owner_of(sequence).shall_end()) end_sequence(sequence, FinishReason::kAbort);
  }
}

// Looks at all; the next look is due at the earliest deadline that is left.
void EngineLoop::end_late() {
  using Late = RequestState::Late;
  const int64_t now = now_ns();
  next_deadline_ns_ = INT64_MAX;
  for (size_t i = live_.size(); i-- > 0;) {
    Sequence& sequence = *live_[i];
    RequestState& request = owner_of(sequence);
    if (sequence.state == SequenceState::kFinished) continue;
    const bool fresh = sequence.state == SequenceState::kWaiting && sequence.num_preemptions == 0;
    const int64_t start_by = fresh ? request.queue_deadline_ns : INT64_MAX;
    if (now < std::min(start_by, request.deadline_ns)) {
      next_deadline_ns_ = std::min({next_deadline_ns_, start_by, request.deadline_ns});
      continue;
    }
    request.late = now >= start_by ? Late::kNotStarted : Late::kNotFinished;
    end_sequence(sequence, FinishReason::kError);
  }
}

// A sequence that was ended before only waits for its steps in flight.
void EngineLoop::end_sequence(Sequence& sequence, FinishReason reason) {
  if (sequence.state == SequenceState::kFinished) return;
  OutputEvent event;
  event.request = &owner_of(sequence);
  event.finish = reason;
  event.num_preemptions = sequence.num_preemptions;
  event.released = scheduler_.finish(sequence) == SequenceEvent::kReleased;
  if (event.released) forget(sequence);
  outputs_.push(event);
}

std::span<const DraftGrant> EngineLoop::grant_drafts() {
  scheduler_.describe(demand_);
  const std::span<const DraftGrant> grants = policy_.decide(num_submitted_, demand_);
  std::copy(grants.begin(), grants.end(), grants_.begin());
  if (hooks_.grants) hooks_.grants(num_submitted_, grants_);
  return {grants_.data(), grants.size()};
}

// A row whose mask is still computed beside the steps would only cost the others.
void EngineLoop::hold_awaited() {
  if (grammars_ == nullptr || (!holds_ && grammars_->num_awaited() == 0)) return;
  holds_ = false;
  for (Sequence* sequence : live_) {
    const auto& grammar = owner_of(*sequence).grammar;
    sequence->is_held = grammar != nullptr && grammar->is_awaited.load();
    holds_ = holds_ || sequence->is_held;
  }
}

bool EngineLoop::plan_next(StepPlan& plan) {
  PhaseScope scope(clock_, lane(), HostPhase::kPlan, num_submitted_);
  hold_awaited();
  PacedRows paced = pacer_.rows();
  paced.bound = bound_;
  if (!scheduler_.plan(plan, grant_drafts(), paced)) {
    scope.drop();
    return false;
  }
  plan.step = num_submitted_;
  pacer_.planned(plan);
  policy_.planned(plan.step, {.num_spans = static_cast<int>(plan.spans.size()),
                              .num_rows = plan.num_rows - plan.num_branch_rows,
                              .num_prompt_rows = plan.num_new_ids,
                              .use = plan.drafts,
                              .num_tokens = policy_.adaptive() ? plan.known_tokens() : 0,
                              .num_branch_rows = plan.num_branch_rows});
  return true;
}

bool EngineLoop::plan_and_submit() {
  if (failed_.load()) return false;
  StepPlan& plan = plans_[num_submitted_ % kStepRingSize];
  const bool planned = plan_next(plan);
  if (!(agreement_ != nullptr ? agree(plan, planned) : planned)) {
    rested_ = true;
    return false;
  }
  return submit(plan);
}

bool EngineLoop::submit(StepPlan& plan) {
  if (num_submitted_ == num_reconciled_) begun_ns_ = now_ns();
  {
    const PhaseScope scope(clock_, lane(), HostPhase::kEncode, plan.step);
    encode_plan(plan, scheduler_.blocks(), limits_, runner_.entry(plan.step));
  }
  StepShape& shape = shapes_[plan.step % kStepRingSize];
  if (agreement_ == nullptr) shape = runner_.shape_of(plan);
  if (!load_adapters(plan)) return false;
  if (!move_blocks(plan) || !move_states(plan)) return false;
  if (feed_ != nullptr && !feed(plan)) return false;
  if (num_stages_ == 1) expect_masks(plan);
  {
    const PhaseScope scope(clock_, lane(), HostPhase::kSubmit, plan.step);
    runner_.begin(plan.step, shape);
  }
  note_starts(plan);
  if (shape.lane_rows > 0) num_steps_in_lanes_.fetch_add(1, std::memory_order_relaxed);
  clock_.count_planned();
  follows_[num_submitted_ % kStepRingSize] = !rested_;
  rested_ = false;
  ++num_submitted_;
  if (num_submitted_ >= num_stages_) finish_before(num_submitted_ - num_stages_ + 1);
  return true;
}

void EngineLoop::finish_before(uint64_t end_step) {
  for (; num_finished_ < end_step && !failed_.load(); ++num_finished_) {
    if (num_stages_ == 1) continue;
    const StepPlan& plan = plans_[num_finished_ % kStepRingSize];
    const StepShape& shape = shapes_[num_finished_ % kStepRingSize];
    const PhaseScope scope(clock_, lane(), HostPhase::kSubmit, plan.step);
    const Status status = feed_->finish(plan.step, shape);
    if (!status.ok()) return fail_everything(status);
    expect_masks(plan);
    runner_.finish(shape);
  }
}

void EngineLoop::expect_masks(const StepPlan& plan) {
  if (grammars_ == nullptr || (plan.features & kHasGrammar) == 0) return;
  grammars_->expect(runner_.num_mask_tickets(shapes_[plan.step % kStepRingSize]));
}

// Before this rank's own part, since the others are a message behind. After a failure the step is
// one of those that nobody waits for.
bool EngineLoop::feed(const StepPlan& plan) {
  const StepShape& shape = shapes_[plan.step % kStepRingSize];
  return feeds(feed_->begin(plan.step, shape, runner_.entry(plan.step)));
}

bool EngineLoop::feeds(const Status& status) {
  if (status.ok()) return true;
  ++num_submitted_;
  fail_everything(status);
  return false;
}

void EngineLoop::note_starts(const StepPlan& plan) {
  for (const Span& span : plan.spans) {
    if (!span.is_first) continue;
    RequestState& request = owner_of(*span.sequence);
    if (request.first_step_ns == 0) request.first_step_ns = now_ns();
  }
}

// Ok as well after a failure, when nothing is waited for any more.
Status EngineLoop::wait_for_step() {
  const PhaseScope scope(clock_, lane(), HostPhase::kWait, num_reconciled_);
  const int64_t begin = now_ns();
  const bool is_short = step_timeout_.count() > 0 && step_timeout_ < kWaitSlice;
  const std::chrono::milliseconds slice = is_short ? step_timeout_ : kWaitSlice;
  while (!failed_.load()) {
    Status status = queue_.wait(published_, num_reconciled_ + 1, slice);
    const int64_t waited = now_ns() - begin;
    if (status.code() != StatusCode::kAborted) return status;
    if (step_timeout_.count() == 0 || waited < step_timeout_.count() * 1'000'000) continue;
    device_hangs_.store(true);
    return hanging_device(num_reconciled_, step_timeout_);
  }
  return {};
}

void EngineLoop::wait_and_reconcile() {
  finish_before(num_reconciled_ + 1);
  const bool was_over = is_published(num_reconciled_);
  const Status status = wait_for_step();
  begun_ns_ = was_over ? 0 : now_ns();
  if (!status.ok()) fail_everything(status);
  const uint64_t step = num_reconciled_;
  const PhaseScope scope(clock_, lane(), HostPhase::kReconcile, step);
  const StepPlan& plan = plans_[step % kStepRingSize];
  const ResultView result = runner_.result(step);
  if (!failed_.load()) note_step(step);
  // Whoever has a step's outputs finds it counted.
  num_steps_.fetch_add(1, std::memory_order_relaxed);
  clock_.note_tokens(num_computed(plan, result));
  for (size_t i = 0; i < plan.spans.size(); ++i) reconcile(plan, i, result);
  ++num_reconciled_;
  if (watch_.step) watch_.step(num_submitted_, num_reconciled_);
}

int64_t EngineLoop::num_computed(const StepPlan& plan, const ResultView& view) const {
  int64_t sum = 0;
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    const int committed = failed_.load() ? 0 : view.spans[i].num_committed;
    sum += plan.spans[i].num_tokens + std::max(committed - 1, 0);
  }
  return sum;
}

// The stamps of the step before `step` are complete.
void EngineLoop::note_step(uint64_t step) {
  if (step == resumed_at_) return;
  clock_.note_step(step, follows_[step % kStepRingSize], stamps_);
  const StepStamps& before = stamps_[(step - 1) % kStepRingSize];
  const int64_t ns = before.end_ns - before.begin_ns;
  pacer_.observe(plans_[(step - 1) % kStepRingSize], ns);
  note_awaited(step, ns);
  // The time until the next step begins counts where that was planned by then: a slow host's too.
  const bool follows = follows_[step % kStepRingSize];
  const int64_t elapsed = follows ? stamps_[step % kStepRingSize].begin_ns - before.begin_ns : ns;
  policy_.step_took(step - 1, elapsed);
  // A token goes through all stages, of which this one is the last.
  if (bound_ != nullptr) {
    const auto stages = static_cast<int64_t>(num_stages_);
    bound_->observe(plans_[(step - 1) % kStepRingSize].load, stages > 1 ? ns * stages : elapsed);
  }
  if (trace_ == nullptr) return;
  trace_->add_step(step - 1, before.begin_ns, before.published_ns, before.end_ns,
                   step_details(plans_[(step - 1) % kStepRingSize]));
}

// Each drafter of the sequence's list hears of the span, and the one that made the drafts of those.
void EngineLoop::observe_drafts(uint64_t step, const Span& span, const SpanResult& result) {
  using Kind = LengthController::Kind;
  const Sequence& sequence = *span.sequence;
  const auto observe = [&](int drafter, Kind kind) {
    const bool is_own = sequence.lookups == 0 || result.drafter == drafter;
    policy_.observe(step, drafter, span.max_verified, is_own ? result.num_drafted : 0,
                    is_own ? result.num_accepted : 0, kind);
    if (result.found_by == drafter + 1) policy_.found(step, drafter, kind);
  };
  if (result.num_branches > 0) {
    policy_.observe_branches(step, result.num_committed, result.winner - 1, result.num_by_branch);
  }
  observe(sequence.drafter, sequence.is_predicted ? Kind::kPredicted : Kind::kOwn);
  for (int drafter = 0; drafter < kMaxDrafters; ++drafter) {
    if ((sequence.lookups >> drafter & 1) != 0) observe(drafter, Kind::kListed);
  }
}

void EngineLoop::reconcile(const StepPlan& plan, size_t index, const ResultView& view) {
  constexpr SpanResult kNothing{};
  const Span& span = plan.spans[index];
  const SpanResult& result = failed_.load() ? kNothing : view.spans[index];
  Sequence& sequence = *span.sequence;
  if (hooks_.on_result) hooks_.on_result(plan.step, span, result);
  // A span of a sequence that ended before commits nothing and says nothing about drafts.
  if (sequence.max_draft_tokens > 0 && result.num_committed > 0) {
    observe_drafts(plan.step, span, result);
  }
  const auto finish = static_cast<DeviceFinish>(result.finish);
  OutputEvent event;
  event.request = &owner_of(sequence);
  if (span.is_first) event.num_cached_tokens = span.num_hit_tokens;
  event.num_preemptions = sequence.num_preemptions;
  if (sequence.state == SequenceState::kRunning) {
    event.num_ids = result.num_committed;
    std::copy_n(result.ids, result.num_committed, event.ids);
    event.num_drafted = result.num_drafted;
    event.num_accepted = result.num_accepted;
    event.num_by_branch = result.num_by_branch;
    event.drafter = result.drafter;
    event.from_prediction = result.from_prediction != 0;
    event.finish = finish_reason(finish);
    if (!failed_.load()) take_rows(plan, index, view);
  }
  const Scheduler::Outcome outcome{.ids = {result.ids, static_cast<size_t>(result.num_committed)},
                                   .ended = finish != DeviceFinish::kNone,
                                   .draft_missing = result.draft_missing,
                                   .num_accepted = result.num_accepted,
                                   .drafter = result.drafter,
                                   .found_lookup = result.found_by > 0};
  event.released = scheduler_.reconcile(span, outcome) == SequenceEvent::kReleased;
  if (event.released) forget(sequence);
  if (event.num_ids > 0 || event.finish != FinishReason::kNone || event.released ||
      event.num_cached_tokens >= 0) {
    outputs_.push(event);
  }
}

// Log-probabilities and the pooled state, which lie in the ring entry only until it is reused.
void EngineLoop::take_rows(const StepPlan& plan, size_t index, const ResultView& view) {
  RequestState& request = owner_of(*plan.spans[index].sequence);
  const SpanResult& result = view.spans[index];
  if (request.logprobs != nullptr) {
    record_logprobs(plan.spans[index], result, view, result_limits_, *request.logprobs);
  }
  if (!request.embedding.empty() && has_pooled(result)) {
    const std::span<const float> states = pooled_states(view, result_limits_, index);
    FT_CHECK(states.size() <= request.embedding.size());
    std::copy(states.begin(), states.end(), request.embedding.begin());
  }
}

void EngineLoop::fail_everything(const Status& status) {
  Status reason = feed_ != nullptr ? feed_->fail(status) : status;
  if (agreement_ != nullptr) {
    reason = agreement_->fail(reason);
    ranks_->abort(reason);
  }
  {
    std::lock_guard lock(error_mutex_);
    error_ = reason;
  }
  failed_.store(true);
  agreed_ = {};
  for (size_t i = live_.size(); i-- > 0;) end_sequence(*live_[i], FinishReason::kError);
}

void EngineLoop::forget(Sequence& sequence) {
  const auto at = std::find(live_.begin(), live_.end(), &sequence);
  FT_CHECK(at != live_.end());
  *at = live_.back();
  live_.pop_back();
}

void EngineLoop::note_occupancy() {
  occupancy_.free_blocks.store(scheduler_.blocks().num_free(), std::memory_order_relaxed);
  occupancy_.free_slots.store(scheduler_.num_free_slots(), std::memory_order_relaxed);
  occupancy_.running.store(scheduler_.num_running(), std::memory_order_relaxed);
  occupancy_.waiting.store(scheduler_.num_waiting(), std::memory_order_relaxed);
  occupancy_.preemptions.store(scheduler_.stats().num_preemptions, std::memory_order_relaxed);
  occupancy_.host.store(scheduler_.host_stats());
}

}  // namespace foretoken
