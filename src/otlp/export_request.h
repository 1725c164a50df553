#pragma once
#include <span>
#include <string>

#include "otlp/trace_span.h"

namespace foretoken::otlp {

// The body of OTLP's POST /v1/traces: a protobuf message ExportTraceServiceRequest with `spans`,
// all made by the program that `resource` describes.
// https://github.com/open-telemetry/opentelemetry-proto, trace/v1/trace.proto
std::string export_request(const Attributes& resource, std::span<const TraceSpan> spans);

}  // namespace foretoken::otlp
