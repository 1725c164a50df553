#pragma once
#include <prometheus/metric_family.h>

#include <vector>

namespace foretoken {

// Puts the metrics of each family in the order of their labels, whole numbers by their value: the
// registry has them in that of a hash, and people and scripts read positions and engines in turn.
void order_metrics(std::vector<prometheus::MetricFamily>* families);

}  // namespace foretoken
