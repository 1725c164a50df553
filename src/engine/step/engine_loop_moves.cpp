#include "engine/request/request_state.h"
#include "engine/step/engine_loop.h"

// What goes to its place on the device before the step that needs it.

namespace foretoken {

// No step in flight uses their places, whose bytes are replaced in the order of the queue.
bool EngineLoop::load_adapters(const StepPlan& plan) {
  for (const AdapterLoad& load : plan.adapter_loads) {
    const auto& adapter = static_cast<const RequestState*>(load.sequence->owner)->adapter;
    if (feed_ != nullptr && !feeds(feed_->adapter(load.slot, adapter->packed))) return false;
    runner_.load_adapter(load.slot, *adapter->image);
    adapters_.put(load.slot, adapter);
  }
  return true;
}

// No step in flight uses them.
bool EngineLoop::move_blocks(const StepPlan& plan) {
  if (plan.moves_out.empty() && plan.moves_in.empty()) return true;
  if (feed_ != nullptr && !feeds(feed_->moves(plan))) return false;
  kv_offload_->enqueue(queue_, plan.step, plan.moves_out, plan.moves_in);
  return true;
}

// Before the slots are used again.
bool EngineLoop::move_states(const StepPlan& plan) {
  if (plan.states_out.empty() && plan.states_in.empty()) return true;
  if (feed_ != nullptr && !feeds(feed_->states(plan))) return false;
  state_store_->enqueue(queue_, plan.step, plan.states_out, plan.states_in);
  return true;
}

}  // namespace foretoken
