#pragma once
#include <foretoken/engine.h>

#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "otlp/trace_settings.h"
#include "otlp/trace_span.h"
#include "serve/metrics/serve_observer.h"

namespace foretoken {

// What whoever starts a server says about its traces.
struct TraceOptions {
  otlp::TraceSettings settings;
  bool detailed = false;  // spans of a request's parts
};

// One request of the engine, as its span will tell it. One thread at a time.
class TracedRequest {
 public:
  // `model`: as answers name it.
  TracedRequest(const Submission& submission, const std::string& model, otlp::TraceSpan span);

  // An output of the request, in order.
  void add(const RequestOutput& output);
  // The span, with that of each part behind it where `detailed`. After the last output.
  std::vector<otlp::TraceSpan> spans(bool detailed, bool drafts) const;

 private:
  using Time = std::chrono::steady_clock::time_point;

  void add_latencies(otlp::Attributes* attributes) const;
  void add_counts(bool drafts, otlp::Attributes* attributes) const;
  int64_t unix_ns(Time time) const;
  otlp::TraceSpan part(const char* name, Time begin, Time end) const;
  // The first step that had it, as far as is known.
  Time first_step() const;

  otlp::TraceSpan span_;
  const Time received_;
  const Time submitted_;
  int num_sequences_ = 0;
  Time first_token_{};  // zero: none came
  Time last_token_{};
  Time end_{};
  RequestStats sums_;
  std::vector<std::string> finish_reasons_;  // of choices, in the order of their ends
};

// Makes a span "llm_request" of each request that the engine gets, with vLLM's names of attributes.
// It belongs to the client's trace where the headers name one. Any thread.
class RequestTracer {
 public:
  using Take = std::function<void(otlp::TraceSpan)>;

  // `take` gets the spans, on the engine's output thread. `drafts`: the engine has drafters.
  RequestTracer(const TraceOptions& options, std::string model, bool drafts, Take take);

  void add_request(const Submission& submission);
  // The engine refused it: there is no span.
  void drop_request(const std::string& request_id);
  // Each output of a request, in order. Others' outputs are ignored.
  void add_output(const RequestOutput& output);

 private:
  const otlp::TraceSampler sampler_;
  const bool detailed_;
  const std::string model_;
  const bool drafts_;
  const Take take_;
  std::mutex mutex_;
  std::unordered_map<std::string, TracedRequest> running_;
};

}  // namespace foretoken
