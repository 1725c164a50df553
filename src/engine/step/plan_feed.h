#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/step/ranks.h"
#include "engine/step/shape/step_shape.h"
#include "engine/step/sleep_order.h"
#include "group/rank_link.h"
#include "kernels/step_types.h"
#include "sched/step_plan.h"

namespace foretoken {

// The plan of a step on its way to the other ranks: a header, then the live parts of the plan's
// ring entry one after the other. All ranks run one build, so that structs travel as they are.
struct PlanMessage {
  // Of a step; of all steps; an adapter for place `step`, packed by pack_adapter; the BlockMoves of
  // the step that begins next, plan.num_spans of them to host memory and the others from there; its
  // StateMoves, likewise; what becomes of the devices' memory, which is answered by outcome_of_all.
  enum class Kind : uint8_t { kBegin, kFinish, kEnd, kAdapter, kMoves, kStates, kSleep };

  uint64_t step = 0;
  uint64_t num_bytes = 0;  // that follow
  Kind kind = Kind::kBegin;
  StepShape shape;
  PlanHeader plan{};
  SleepOrder sleep{};
};
static_assert(std::is_trivially_copyable_v<PlanMessage>);

// Bytes of the live parts of a plan.
size_t live_plan_bytes(const PlanHeader& plan);
// The most that there can be.
size_t max_plan_bytes(const PlanLimits& limits);
// To and from a ring entry; `packed` has live_plan_bytes. InvalidArgument when the counts exceed
// the limits.
void pack_plan(const PlanView& entry, std::span<std::byte> packed);
Status unpack_plan(const PlanHeader& plan, std::span<const std::byte> packed,
                   const PlanLimits& limits, const PlanView& entry);

// Rank 0's side: sends each plan to all other ranks while the device is at the steps before.
// Engine thread, unless said otherwise.
class PlanFeed {
 public:
  // `max_snapshots`: that can move beside blocks in a plan, in each direction.
  PlanFeed(Ranks& ranks, const PlanLimits& limits, int64_t max_snapshots = 0);

  Status begin(uint64_t step, const StepShape& shape, const PlanView& entry);
  // Of a step that the other ranks of the last stage have begun.
  Status finish(uint64_t step, const StepShape& shape);
  // An adapter that is in a place of the device from the next step on.
  Status adapter(int slot, std::span<const std::byte> packed);
  // The plan's moves between blocks and host memory, ahead of the step.
  Status moves(const StepPlan& plan);
  // Those between slots and snapshots of states.
  Status states(const StepPlan& plan);
  // What becomes of memory. Any thread, while the engine thread rests.
  Status order(const SleepOrder& order);
  // There will be no more steps.
  Status end();
  // Ends the others with an error, also while an order is sent. The group's first one, which may be
  // another rank's.
  Status fail(const Status& why);

 private:
  Status send_to(int end_rank, std::span<const std::byte> bytes, std::string_view what);
  Status send_lists(PlanMessage::Kind kind, uint64_t step, size_t num_out,
                    std::span<const std::byte> out, std::span<const std::byte> in);

  Ranks& ranks_;
  std::vector<std::byte> message_;
  std::mutex order_mutex_;  // orders and a failure use one link
};

// The other ranks' side.
struct ReceivedPlan {
  PlanMessage message;
  std::vector<std::byte> packed;   // room for the largest plan; message.num_bytes of it are used
  std::vector<std::byte> adapter;  // of a message of that kind
  std::vector<BlockMove> moves;    // likewise
  std::vector<StateMove> states;   // likewise
};

// Blocks until the next plan is there.
Status receive_plan(group::RankLink& link, ReceivedPlan* out);

}  // namespace foretoken
