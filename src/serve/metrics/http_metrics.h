#pragma once
#include <prometheus/family.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <vector>

#include "http/server/server.h"

namespace prometheus {
class Counter;
class Histogram;
}  // namespace prometheus

namespace foretoken {

// Counts answers by endpoint, under the names and labels of the FastAPI instrumentator that vLLM's
// server carries: http_requests_total{handler, method, status} ("2xx") and
// http_request_duration_seconds{handler, method}. A handler is the pattern of a route, "none" where
// no route has the path. As there, those who watch the server (/metrics, /health, ...) are left
// out. Any thread.
class HttpMetrics {
 public:
  HttpMetrics();

  void count(const http::AccessRecord& record);
  std::vector<prometheus::MetricFamily> collect() const { return registry_.Collect(); }

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Histogram>& durations_;
};

}  // namespace foretoken
