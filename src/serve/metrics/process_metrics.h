#pragma once
#include <prometheus/metric_family.h>

#include <vector>

namespace foretoken {

// What Prometheus' client libraries tell of the process that they are in, under the same names:
// process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
// process_start_time_seconds, process_open_fds and process_max_fds; from /proc, so that none is
// there where that cannot be read.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace foretoken
