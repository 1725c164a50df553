#include "serve/metrics/http_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "serve/metrics/metric_buckets.h"

namespace foretoken {
namespace {

constexpr std::string_view kWatching[] = {"/metrics", "/health",     "/load",  "/ping",
                                          "/version", "/healthz",    "/livez", "/ready",
                                          "/readyz",  "/server_info"};

// Clients may invent methods, and each would be a series of its own.
std::string method_label(const std::string& method) {
  constexpr std::string_view kKnown[] = {"GET",  "POST",    "PUT",  "DELETE",
                                         "HEAD", "OPTIONS", "PATCH"};
  return std::ranges::count(kKnown, method) > 0 ? method : "other";
}

}  // namespace

HttpMetrics::HttpMetrics()
    : requests_(prometheus::BuildCounter()
                    .Name("http_requests_total")
                    .Help("Requests that were answered, by endpoint, method and class of status.")
                    .Register(registry_)),
      durations_(prometheus::BuildHistogram()
                     .Name("http_request_duration_seconds")
                     .Help("From the first byte of a request to the last of its answer.")
                     .Register(registry_)) {}

void HttpMetrics::count(const http::AccessRecord& record) {
  // What is no HTTP has no method.
  if (record.method.empty() || std::ranges::count(kWatching, record.pattern) > 0) return;
  const std::string handler = record.pattern.empty() ? "none" : record.pattern;
  const std::string method = method_label(record.method);
  const std::string status = std::to_string(record.status / 100) + "xx";
  requests_.Add({{"handler", handler}, {"method", method}, {"status", status}}).Increment();
  durations_.Add({{"handler", handler}, {"method", method}}, request_buckets())
      .Observe(std::chrono::duration<double>(record.duration).count());
}

}  // namespace foretoken
