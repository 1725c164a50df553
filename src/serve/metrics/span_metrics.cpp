#include "serve/metrics/span_metrics.h"

#include <utility>

namespace foretoken {
namespace {

prometheus::ClientMetric one_outcome(const char* outcome, int64_t count) {
  prometheus::ClientMetric metric;
  metric.label.push_back({"outcome", outcome});
  metric.counter.value = static_cast<double>(count);
  return metric;
}

}  // namespace

prometheus::MetricFamily span_family(const otlp::SpanCounts& counts) {
  return {"foretoken:trace_spans_total",
          "Spans of requests, by what became of them.",
          prometheus::MetricType::Counter,
          {one_outcome("sent", counts.num_sent), one_outcome("dropped", counts.num_dropped)}};
}

}  // namespace foretoken
