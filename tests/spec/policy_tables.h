#pragma once
#include "spec/cost_table.h"
#include "spec/length_controller.h"

namespace foretoken {

// A CPU: rows cost from the first on. The head costs a twelfth of the target.
CostTable cpu_times();
// A GPU: rows cost next to nothing up to 64.
CostTable gpu_times();
// A GPU as it is: kernels go by the rows that there is room for, attention by the sequences, and
// the rows of few sequences with many drafts look cheaper than those of many with few.
CostTable tiled_times();
// A GPU and a mixture of 64 experts, six for each row, in bfloat16 (design: 16B in all), with an
// MTP module that is one too: few rows cost nearly as much as they touch, many next to nothing.
CostTable mixture_times();

// Two steps in flight, one drafter with entries.
LengthControllerConfig policy_config(LengthMode mode, int num_draft_tokens);

}  // namespace foretoken
