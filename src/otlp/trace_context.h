#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace foretoken::otlp {

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

// Random ones, which are not all zero. Any thread.
TraceId random_trace_id();
SpanId random_span_id();

// The place of a client in a trace, as its headers tell it.
struct TraceContext {
  TraceId trace_id{};
  SpanId span_id{};      // of the client's span
  bool sampled = false;  // the client keeps its spans of this trace
  std::string state;     // "tracestate", handed on as it is
};

// Of the headers "traceparent" and "tracestate" of W3C's Trace Context (level 1):
// 00-TRACE-SPAN-FLAGS in small hexadecimal digits, and more behind it in versions to come. Nothing
// where the first is not of that form; a second one that is no printable ASCII is left out.
std::optional<TraceContext> parse_trace_context(std::string_view traceparent,
                                                std::string_view tracestate);

}  // namespace foretoken::otlp
