#pragma once
#include <foretoken/engine.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "otlp/trace_span.h"
#include "serve/metrics/http_metrics.h"
#include "serve/metrics/serve_observer.h"

namespace foretoken {

class ServeMetrics;

// Times one request for the metrics, from its making to its end. One thread at a time.
class RequestMeter {
 public:
  RequestMeter(ServeMetrics& metrics, const Request& request);

  // An output of the request, in order.
  void add(const RequestOutput& output);

  // Name of the adapter that it runs with; empty: none.
  const std::string& adapter() const { return adapter_; }
  // An output with tokens has come.
  bool has_begun() const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  void count_tokens(const RequestOutput& output, Time now);
  void count_end(const RequestOutput& output, Time now);

  ServeMetrics& metrics_;
  const std::string adapter_;
  const Time start_;
  const int max_tokens_;
  const int num_choices_;
  int64_t longest_choice_ = 0;  // of a choice that ended
  // By choice; zero before its first token.
  std::vector<Time> first_token_;
  std::vector<Time> last_token_;
};

// The metrics of a server in Prometheus' text format, with vLLM's names, types and labels
// ("model_name", "engine"). Any thread.
class ServeMetrics {
 public:
  // `max_loras`: adapters that the sequences of a step may have together; 0: requests name none,
  // and the page tells of none.
  ServeMetrics(const std::string& model_name, const EngineInfo& info, int max_loras = 0);
  ~ServeMetrics();

  // A request is about to be given to the engine; its id is unique among those that run.
  void add_request(const Request& request);
  // The engine refused it: it counts for nothing.
  void drop_request(const std::string& request_id);
  // Each output of a request, in order. Others' outputs are ignored.
  void add_output(const RequestOutput& output);
  // A request that was refused for want of room: "max_num_queued_reqs", "draining", ...
  void count_rejection(const std::string& reason);

  // A search for tool calls.
  void count_tool_parse(const ToolParse& parse);

  // An answer of the server before it.
  void count_http(const http::AccessRecord& record) { http_.count(record); }

  // The page of GET /metrics. `spans`: of a server that makes some.
  std::string text(const EngineStats& stats, const std::optional<otlp::SpanCounts>& spans = {});
  // Its content type.
  static const char* content_type() { return "text/plain; version=0.0.4; charset=utf-8"; }

 private:
  friend class RequestMeter;
  struct Families;

  // The adapters of requests by whether these run. Where sequences wait, they are taken to be those
  // of which nothing has come yet.
  void find_adapters(bool some_wait, std::set<std::string>* running,
                     std::set<std::string>* waiting);

  const std::unique_ptr<Families> families_;
  const int max_loras_;
  HttpMetrics http_;
  std::mutex meters_mutex_;
  std::unordered_map<std::string, RequestMeter> meters_;  // of requests that run
};

}  // namespace foretoken
