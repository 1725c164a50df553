#pragma once
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "device/queue.h"

namespace foretoken {

struct NullQueueConfig {
  int64_t step_ns = 0;     // of a step, one after the other
  int num_accepted = 0;    // of the drafts of a span, where so many stand
  int32_t token_id = 100;  // what is sampled everywhere
  int64_t (*now_ns)() = &foretoken::now_ns;
};

// A queue that computes nothing, to see what the host costs: it knows steps by their upload and
// publish ops, reads their plans as a device does, and shows results after the time that a step is
// said to take. All other ops are free. Of the device's memory it keeps the step counter, which
// steps count on and fills set. For benchmarks and tests. One thread.
std::unique_ptr<Queue> make_null_queue(const NullQueueConfig& config);

}  // namespace foretoken
