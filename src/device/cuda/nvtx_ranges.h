#pragma once
#include "base/profiler_ranges.h"

namespace foretoken::cuda {

// Ranges of NVTX, which Nsight Systems shows; null functions where the plug-in was built without
// its headers, and, unless `always`, where no profiler is attached to the process.
ProfilerRanges nvtx_ranges(bool always);

}  // namespace foretoken::cuda
