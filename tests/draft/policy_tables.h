#pragma once
#include "draft/length_policy.h"
#include "draft/step_times.h"

namespace foretoken {

// A CPU: rows cost from the first on. The head costs a twelfth of the target.
StepTimes cpu_times();
// A GPU: rows cost next to nothing up to 64.
StepTimes gpu_times();
// A GPU as it is: kernels go by the rows that there is room for, attention by the sequences, and
// the rows of few sequences with many drafts look cheaper than those of many with few.
StepTimes tiled_times();

// Two steps in flight, one drafter with entries.
LengthPolicyConfig policy_config(LengthMode mode, int num_drafts);

}  // namespace foretoken
