#pragma once
#include "kernels/step_types.h"
#include "kv/block_pool.h"
#include "sched/step_plan.h"

namespace foretoken {

// Writes a plan into a ring entry in the device's terms. The slot parameters come from the
// sequences' owners (RequestState). Engine thread; the entry must not be in flight.
void encode_plan(const StepPlan& plan, const BlockPool& blocks, const PlanLimits& limits,
                 const PlanView& entry);

}  // namespace foretoken
