#include "otlp/trace_context.h"

#include <algorithm>
#include <random>

#include "base/text/ascii_text.h"

namespace foretoken::otlp {
namespace {

template <class Id>
Id random_id() {
  thread_local std::mt19937_64 source = [] {
    std::random_device device;
    std::seed_seq seeds{device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seeds);
  }();
  Id id;
  for (uint8_t& byte : id) byte = static_cast<uint8_t>(source());
  id.back() |= 1;
  return id;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// False for other characters, and for zeros alone.
template <class Id>
bool read_id(std::string_view text, Id* id) {
  for (size_t i = 0; i < id->size(); ++i) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*id)[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return std::ranges::any_of(*id, [](uint8_t byte) { return byte != 0; });
}

bool is_printable(char c) { return c >= 0x20 && c <= 0x7e; }

}  // namespace

TraceId random_trace_id() { return random_id<TraceId>(); }
SpanId random_span_id() { return random_id<SpanId>(); }

std::optional<TraceContext> parse_trace_context(std::string_view traceparent,
                                                std::string_view tracestate) {
  constexpr size_t kLength = 55;  // 2 + 1 + 32 + 1 + 16 + 1 + 2
  const std::string text = trimmed_text(traceparent);
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-') return {};
  const std::string_view version = std::string_view(text).substr(0, 2);
  if (digit_of(version[0]) < 0 || digit_of(version[1]) < 0 || version == "ff") return {};
  if (text.size() > kLength && (version == "00" || text[kLength] != '-')) return {};
  TraceContext context;
  if (!read_id(std::string_view(text).substr(3), &context.trace_id)) return {};
  if (!read_id(std::string_view(text).substr(36), &context.span_id)) return {};
  const int flags = digit_of(text[54]);
  if (digit_of(text[53]) < 0 || flags < 0) return {};
  context.sampled = (flags & 1) != 0;
  std::string state = trimmed_text(tracestate);
  if (std::ranges::all_of(state, is_printable)) context.state = std::move(state);
  return context;
}

}  // namespace foretoken::otlp
