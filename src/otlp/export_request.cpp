#include "otlp/export_request.h"

#include <foretoken/version.h>

#include <algorithm>

#include "otlp/proto_writer.h"

namespace foretoken::otlp {
namespace {

constexpr const char* kScope = "foretoken.serve";

// AnyValue: string_value 1, int_value 3, double_value 4, array_value 5.
struct ValueBytes {
  std::string operator()(const std::string& value) const {
    ProtoWriter any;
    any.text(1, value);
    return any.take();
  }
  std::string operator()(int64_t value) const {
    ProtoWriter any;
    any.integer(3, static_cast<uint64_t>(value));
    return any.take();
  }
  std::string operator()(double value) const {
    ProtoWriter any;
    any.real(4, value);
    return any.take();
  }
  std::string operator()(const std::vector<std::string>& values) const {
    ProtoWriter list;
    for (const std::string& value : values) list.bytes(1, (*this)(value));
    ProtoWriter any;
    any.bytes(5, list.take());
    return any.take();
  }
};

void put_attributes(uint32_t field, const Attributes& attributes, ProtoWriter* message) {
  for (const auto& [key, value] : attributes) {
    ProtoWriter pair;
    pair.text(1, key);
    pair.bytes(2, std::visit(ValueBytes{}, value));
    message->bytes(field, pair.take());
  }
}

template <class Id>
std::string_view bytes_of(const Id& id) {
  return {reinterpret_cast<const char*>(id.data()), id.size()};
}

// Sampled, and whether the parent is of another process is known.
uint32_t flags_of(const TraceSpan& span) {
  constexpr uint32_t kSampled = 0x1;
  constexpr uint32_t kKnown = 0x100;
  constexpr uint32_t kRemote = 0x200;
  return kSampled | kKnown | (span.parent_is_remote ? kRemote : 0);
}

std::string span_bytes(const TraceSpan& span) {
  constexpr uint64_t kError = 2;
  const bool has_parent =
      std::ranges::any_of(span.parent_id, [](uint8_t byte) { return byte != 0; });
  ProtoWriter message;
  message.bytes(1, bytes_of(span.trace_id));
  message.bytes(2, bytes_of(span.span_id));
  if (!span.state.empty()) message.text(3, span.state);
  if (has_parent) message.bytes(4, bytes_of(span.parent_id));
  message.text(5, span.name);
  message.integer(6, static_cast<uint64_t>(span.kind));
  message.fixed64(7, static_cast<uint64_t>(span.start_ns));
  message.fixed64(8, static_cast<uint64_t>(span.end_ns));
  put_attributes(9, span.attributes, &message);
  if (span.failed) {
    ProtoWriter status;
    status.text(2, span.failure);
    status.integer(3, kError);
    message.bytes(15, status.take());
  }
  message.fixed32(16, flags_of(span));
  return message.take();
}

}  // namespace

std::string export_request(const Attributes& resource, std::span<const TraceSpan> spans) {
  ProtoWriter scope;
  scope.text(1, kScope);
  scope.text(2, kVersion);
  ProtoWriter of_scope;
  of_scope.bytes(1, scope.take());
  for (const TraceSpan& span : spans) of_scope.bytes(2, span_bytes(span));
  ProtoWriter described;
  put_attributes(1, resource, &described);
  ProtoWriter of_resource;
  of_resource.bytes(1, described.take());
  of_resource.bytes(2, of_scope.take());
  ProtoWriter request;
  request.bytes(1, of_resource.take());
  return request.take();
}

}  // namespace foretoken::otlp
