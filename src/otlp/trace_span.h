#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "otlp/trace_context.h"

namespace foretoken::otlp {

using AttributeValue = std::variant<std::string, int64_t, double, std::vector<std::string>>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;  // no name twice

// What was done, from when to when, as OpenTelemetry has it. Texts may be any bytes.
struct TraceSpan {
  enum class Kind : uint8_t { kInternal = 1, kServer = 2 };

  std::string name;
  Kind kind = Kind::kInternal;
  TraceId trace_id{};
  SpanId span_id{};
  SpanId parent_id{};             // all zero: there is none
  bool parent_is_remote = false;  // of another process
  std::string state;              // of the trace, as its tracestate
  int64_t start_ns = 0;           // since 1970
  int64_t end_ns = 0;
  Attributes attributes;
  bool failed = false;
  std::string failure;  // why
};

// Spans that were made so far, by what became of them.
struct SpanCounts {
  int64_t num_sent = 0;
  int64_t num_dropped = 0;
};

}  // namespace foretoken::otlp
