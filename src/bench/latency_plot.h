#pragma once
#include <string>
#include <vector>

#include "bench/request_record.h"

namespace foretoken::bench {

// TTFT and inter-token latency by percentile, side by side as an SVG. The axis of the percentiles
// gives each further nine the same room, so that the tail can be read.
std::string latency_svg(const std::vector<RequestRecord>& records, const std::string& title);

}  // namespace foretoken::bench
