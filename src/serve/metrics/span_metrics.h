#pragma once
#include <prometheus/metric_family.h>

#include "otlp/trace_span.h"

namespace foretoken {

// Of the spans that a server made, how many went to the collector and how many were dropped.
prometheus::MetricFamily span_family(const otlp::SpanCounts& counts);

}  // namespace foretoken
