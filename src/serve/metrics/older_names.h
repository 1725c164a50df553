#pragma once
#include <prometheus/metric_family.h>

#include <vector>

namespace foretoken {

// Adds copies of the families that vLLM once had under other names, which dashboards and routers
// still read: gpu_cache_usage_perc, time_per_output_token_seconds, gpu_prefix_cache_...
void add_older_names(std::vector<prometheus::MetricFamily>* families);

}  // namespace foretoken
