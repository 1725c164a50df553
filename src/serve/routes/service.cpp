#include "serve/routes/service.h"

#include <optional>
#include <utility>

#include "base/json_log.h"
#include "serve/routes/api_routes.h"
#include "serve/routes/page_routes.h"

namespace foretoken {
namespace {

void log_request(const Request& request) {
  log_event("request", {{"id", request.request_id},
                        {"prompt_tokens", request.prompt_token_ids.size()},
                        {"n", request.sampling.n},
                        {"max_tokens", request.sampling.max_tokens},
                        {"temperature", request.sampling.temperature}});
}

// Tells `metrics` and, where there is one, `tracer` what the handlers know.
ServeObserver observe(ServeMetrics& metrics, RequestTracer* tracer, bool log_requests) {
  ServeObserver observer;
  observer.on_submit = [&metrics, tracer, log_requests](const Submission& submission) {
    if (log_requests) log_request(submission.request);
    metrics.add_request(submission.request);
    if (tracer != nullptr) tracer->add_request(submission);
  };
  observer.on_refused = [&metrics, tracer](const std::string& id) {
    metrics.drop_request(id);
    if (tracer != nullptr) tracer->drop_request(id);
  };
  observer.on_rejected = [&metrics](const std::string& reason) { metrics.count_rejection(reason); };
  observer.on_output = [&metrics, tracer](const RequestOutput& output) {
    metrics.add_output(output);
    if (tracer != nullptr) tracer->add_output(output);
  };
  observer.on_tool_parse = [&metrics](const ToolParse& parse) { metrics.count_tool_parse(parse); };
  return observer;
}

ServeConfig with_observer(ServeConfig config, ServeObserver observer) {
  config.observer = std::move(observer);
  return config;
}

std::unique_ptr<otlp::SpanExporter> make_exporter(const ServeConfig& config) {
  if (!config.traces) return nullptr;
  return std::make_unique<otlp::SpanExporter>(config.traces->settings);
}

// `exporter`: null where no spans are sent.
std::unique_ptr<RequestTracer> make_tracer(const ServeConfig& config, const EngineInfo& info,
                                           otlp::SpanExporter* exporter) {
  if (exporter == nullptr) return nullptr;
  return std::make_unique<RequestTracer>(
      *config.traces, config.model_names.front(), !info.drafters.empty(),
      [exporter](otlp::TraceSpan span) { exporter->add(std::move(span)); });
}

}  // namespace

Service::Service(Engine& engine, ServeConfig config, bool log_requests, int max_loras)
    : metrics_(config.model_names.front(), engine.info(), max_loras),
      exporter_(make_exporter(config)),
      tracer_(make_tracer(config, engine.info(), exporter_.get())),
      context_(engine,
               with_observer(std::move(config), observe(metrics_, tracer_.get(), log_requests))) {}

std::vector<http::Route> Service::routes() {
  std::vector<http::Route> routes = api_routes(context_);
  for (http::Route& route : other_routes(context_, routes)) routes.push_back(std::move(route));
  for (http::Route& route : page_routes()) routes.push_back(std::move(route));
  routes.push_back(metrics_route());
  return routes;
}

void Service::abort_all() {
  for (const auto& generation : context_.generations.all()) generation->abort();
}

http::Route Service::metrics_route() {
  http::Route route;
  route.method = "GET";
  route.pattern = "/metrics";
  route.needs_key = false;
  route.handler = [this](const std::shared_ptr<http::Exchange>& exchange) {
    std::optional<otlp::SpanCounts> spans;
    if (exporter_ != nullptr) spans = exporter_->counts();
    exchange->respond(200, ServeMetrics::content_type(),
                      metrics_.text(context_.engine.stats(), spans));
  };
  return route;
}

}  // namespace foretoken
