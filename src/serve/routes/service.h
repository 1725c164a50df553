#pragma once
#include <foretoken/engine.h>

#include <chrono>
#include <memory>
#include <vector>

#include "http/message/exchange.h"
#include "otlp/span_exporter.h"
#include "serve/flow/serve_context.h"
#include "serve/metrics/metrics.h"
#include "serve/traces/request_tracer.h"

namespace foretoken {

// All that `foretoken serve` is behind its sockets: an engine with its context, metrics and routes.
// Programs and tests put a server together here and nowhere else.
class Service {
 public:
  // `log_requests`: a line of the log for each request that the engine gets. The engine lives until
  // `stop` has returned and ends before the service, whose context its last outputs still find.
  // `max_loras`: of the engine, for the metrics; 0: requests name no adapters. Spans that wait when
  // it ends are sent first.
  Service(Engine& engine, ServeConfig config, bool log_requests, int max_loras = 0);

  // Of the APIs, the page and the metrics. They call into the service, on threads of their own.
  std::vector<http::Route> routes();

  // An answer of the server that has the routes, for the metrics.
  void count_http(const http::AccessRecord& record) { metrics_.count_http(record); }

  // No new requests; those that run go on. Calls to sleep that wait still end: for engines in other
  // processes that may end as well, and for requests.
  void drain() {
    context_.gate.drain();
    context_.sleeps_end.request_stop();
  }
  // Ends what runs, each with what it has.
  void abort_all();
  // The engine is not called any more. Whoever calls the routes has stopped before.
  void stop() { context_.stop_work(); }

  ServeContext& context() { return context_; }
  const ServeContext& context() const { return context_; }

 private:
  http::Route metrics_route();

  ServeMetrics metrics_;
  // Where the server sends spans.
  std::unique_ptr<otlp::SpanExporter> exporter_;
  std::unique_ptr<RequestTracer> tracer_;
  ServeContext context_;
};

}  // namespace foretoken
