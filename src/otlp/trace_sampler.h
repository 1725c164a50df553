#pragma once
#include <string>

#include "base/result.h"
#include "otlp/trace_context.h"

namespace foretoken::otlp {

// Which traces have spans: of those that a client began, as the client decided, unless
// `follows_parent` is false; of the others the share `ratio`, chosen by their ids, so that all
// programs with that ratio choose the same.
struct TraceSampler {
  double ratio = 1;
  bool follows_parent = true;

  // `parent`: null where no client began the trace.
  bool samples(const TraceContext* parent, const TraceId& id) const;
};

// OpenTelemetry's names, as OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG have them; empty:
// parentbased_always_on.
Result<TraceSampler> parse_trace_sampler(const std::string& name, const std::string& argument);

}  // namespace foretoken::otlp
