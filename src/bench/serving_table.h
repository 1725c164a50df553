#pragma once
#include <string>
#include <vector>

#include "bench/serving_report.h"

namespace foretoken::bench {

// The table of vLLM's benchmark.
std::string result_table(const ReportSettings& settings, const LoadResult& load,
                         const ServingMetrics& metrics);

// "3 of 9 requests failed:" and the different errors with their counts, most frequent first, at
// most ten; empty when all succeeded.
std::string failure_lines(const std::vector<RequestRecord>& records);

}  // namespace foretoken::bench
