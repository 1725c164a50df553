#pragma once
#include <string>

namespace foretoken {

// Prometheus' page `text` with bounds of buckets as vLLM's client library writes them: le="1.0"
// where prometheus-cpp has le="1". Boards and alerts that name a bound find it by its text.
std::string with_float_bounds(const std::string& text);

}  // namespace foretoken
