#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/headers.h"
#include "otlp/trace_sampler.h"
#include "otlp/trace_span.h"

namespace foretoken::otlp {

// Where spans go, and how. Defaults are OpenTelemetry's.
struct TraceSettings {
  std::string address;  // "http://localhost:4318/v1/traces"
  net::Headers headers;
  std::string ca_file;                        // trusted certificates; empty: the system's
  std::chrono::milliseconds timeout{10'000};  // of one sending
  std::chrono::milliseconds delay{5'000};     // longest that a span waits for others
  size_t max_queued_spans = 2048;             // more are dropped
  size_t max_batch_spans = 512;               // sent together
  Attributes resource;                        // what the program is
  TraceSampler sampler;
};

// Reads a variable of the environment; null where it is not set.
using VariableReader = std::function<const char*(const char* name)>;

// `endpoint` is --otlp-traces-endpoint's, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT where it is empty; an
// address without a path is given "/v1/traces". What the other OTEL_ variables say is read, too.
// None: no spans are wanted. Errors name the variable or the address at fault.
Result<std::optional<TraceSettings>> read_trace_settings(const std::string& endpoint,
                                                         const VariableReader& variable);

}  // namespace foretoken::otlp
