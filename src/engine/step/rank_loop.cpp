#include "engine/step/rank_loop.h"

#include <chrono>

#include "base/log.h"
#include "base/thread_limit.h"
#include "base/thread_role.h"

namespace foretoken {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};

}  // namespace

RankLoop::RankLoop(const Parts& parts) : parts_(parts), adapters_(parts.num_adapter_slots) {
  for (ReceivedPlan& plan : plans_) plan.packed.resize(max_plan_bytes(parts.memory.limits()));
}

RankLoop::~RankLoop() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (receiver_.joinable()) receiver_.join();
}

Status RankLoop::run() {
  const Status started = start_threads([this]() -> Status {
    receiver_ = std::thread([this] { receive_main(); });
    return {};
  });
  const Status status = started.ok() ? run_steps() : started;
  if (!status.ok()) parts_.ranks.abort(status);
  return status;
}

void RankLoop::receive_main() {
  set_thread_role(ThreadRole::kOther, "ft-plans");
  for (bool more = true; more;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stops_ || num_received_ - num_taken_ < kRoom; });
    if (stops_) return;
    ReceivedPlan& plan = plans_[num_received_ % kRoom];
    lock.unlock();
    const Status status = receive_plan(parts_.ranks.plans(), &plan);
    lock.lock();
    more = status.ok() && plan.message.kind != PlanMessage::Kind::kEnd;
    if (status.ok()) {
      ++num_received_;
    } else {
      receive_error_ = status;
    }
    lock.unlock();
    changed_.notify_all();
  }
}

Status RankLoop::run_steps() {
  for (;;) {
    FT_ASSIGN_OR_RETURN(ReceivedPlan * plan, next());
    const PlanMessage::Kind kind = plan->message.kind;
    if (kind == PlanMessage::Kind::kBegin) FT_RETURN_IF_ERROR(begin_step(*plan));
    if (kind == PlanMessage::Kind::kAdapter) FT_RETURN_IF_ERROR(load_adapter(plan));
    if (kind == PlanMessage::Kind::kMoves) FT_RETURN_IF_ERROR(move_blocks(*plan));
    if (kind == PlanMessage::Kind::kStates) FT_RETURN_IF_ERROR(move_states(*plan));
    if (kind == PlanMessage::Kind::kSleep) FT_RETURN_IF_ERROR(obey(plan->message.sleep));
    if (kind == PlanMessage::Kind::kFinish) parts_.runner.finish(plan->message.shape);
    {
      std::lock_guard lock(mutex_);
      ++num_taken_;
    }
    changed_.notify_all();
    if (kind == PlanMessage::Kind::kEnd) return end();
  }
}

Result<ReceivedPlan*> RankLoop::next() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLookEvery,
                        [&] { return num_received_ > num_taken_ || !receive_error_.ok(); });
      if (num_received_ > num_taken_) return &plans_[num_taken_ % kRoom];
      if (!receive_error_.ok()) return receive_error_;
    }
    FT_RETURN_IF_ERROR(look_at_queue());
  }
}

// Waits for nothing: every step has been published for step number 0.
Status RankLoop::look_at_queue() {
  return parts_.queue.wait(parts_.memory.published, 0, std::chrono::milliseconds(0));
}

Status RankLoop::end() {
  FT_RETURN_IF_ERROR(parts_.queue.drain());
  if (parts_.ranks.stages().is_last()) return {};
  note_stages(num_begun_);
  FT_LOG(debug, "rank {}, stage {}: {}", parts_.ranks.rank(), parts_.ranks.stages().rank,
         stage_clock_.text());
  return {};
}

// Steps before `end_step` are published, and their stamps still there.
void RankLoop::note_stages(uint64_t end_step) {
  while (static_cast<uint64_t>(stage_clock_.num_steps()) < end_step) {
    stage_clock_.note_step(parts_.memory.stamps[stage_clock_.num_steps() % kStepRingSize]);
  }
}

// Rank 0 has published what still used the ring entry, and so read this rank's part of it; what
// this rank itself still reads of it is waited for.
Status RankLoop::wait_for_entry(uint64_t step) {
  if (step + 1 < kStepRingSize) return {};
  const uint64_t wanted = step + 2 - kStepRingSize;
  for (;;) {
    const Status status = parts_.queue.wait(parts_.memory.published, wanted, kLookEvery);
    if (status.ok()) break;
    if (status.code() != StatusCode::kAborted) return status;
    std::lock_guard lock(mutex_);
    if (!receive_error_.ok()) return receive_error_;
  }
  note_stages(wanted);
  return {};
}

Status RankLoop::begin_step(const ReceivedPlan& plan) {
  const PlanMessage& message = plan.message;
  FT_RETURN_IF_ERROR(wait_for_entry(message.step));
  FT_RETURN_IF_ERROR(unpack_plan(message.plan, std::span(plan.packed).first(message.num_bytes),
                                 parts_.memory.limits(), parts_.runner.entry(message.step)));
  parts_.runner.begin(message.step, message.shape);
  num_begun_ = message.step + 1;
  return {};
}

// Lists of moves have ring entries as plans have.
Status RankLoop::move_blocks(const ReceivedPlan& plan) {
  const std::span<const BlockMove> moves(plan.moves);
  const auto num_out = static_cast<size_t>(plan.message.plan.num_spans);
  KvOffload* const offload = parts_.kv_offload;
  if (offload == nullptr || num_out > moves.size() || !offload->can_move(moves.first(num_out)) ||
      !offload->can_move(moves.subspan(num_out))) {
    return internal_error(
        "rank 0 moves KV blocks that this rank has no place for; start all ranks with one "
        "configuration");
  }
  FT_RETURN_IF_ERROR(wait_for_entry(plan.message.step));
  offload->enqueue(parts_.queue, plan.message.step, moves.first(num_out), moves.subspan(num_out));
  return {};
}

// What fails here is told, and the group goes on.
Status RankLoop::obey(const SleepOrder& order) {
  if (!parts_.obey) {
    return internal_error(
        "rank 0 sleeps, and this rank cannot; start all ranks with one "
        "configuration");
  }
  FT_RETURN_IF_ERROR(parts_.queue.drain());
  return outcome_of_all(parts_.ranks.control(), parts_.obey(order)).status();
}

Status RankLoop::move_states(const ReceivedPlan& plan) {
  const std::span<const StateMove> moves(plan.states);
  const auto num_out = static_cast<size_t>(plan.message.plan.num_spans);
  StateStore* const store = parts_.state_store;
  if (store == nullptr || num_out > moves.size() || !store->can_move(moves.first(num_out)) ||
      !store->can_move(moves.subspan(num_out))) {
    return internal_error(
        "rank 0 keeps states that this rank has no place for; start all ranks with one "
        "configuration");
  }
  FT_RETURN_IF_ERROR(wait_for_entry(plan.message.step));
  store->enqueue(parts_.queue, plan.message.step, moves.first(num_out), moves.subspan(num_out));
  return {};
}

// Rank 0 has read it without errors, for layers and sizes that are the same here but for the cut.
Status RankLoop::load_adapter(ReceivedPlan* plan) {
  const LoraPool* pool = parts_.runner.adapters();
  if (pool == nullptr || static_cast<int>(plan->message.step) >= parts_.num_adapter_slots) {
    return internal_error(
        "rank 0 sends an adapter that this rank has no place for; start all ranks with one "
        "configuration");
  }
  FT_ASSIGN_OR_RETURN(const LoraAdapter adapter, unpack_adapter(plan->adapter));
  plan->adapter = {};
  auto made = std::make_shared<EngineAdapter>();
  FT_ASSIGN_OR_RETURN(made->image, pool->make_image(adapter, true));
  const auto slot = static_cast<int>(plan->message.step);
  parts_.runner.load_adapter(slot, *made->image);
  adapters_.put(slot, std::move(made));
  return {};
}

}  // namespace foretoken
