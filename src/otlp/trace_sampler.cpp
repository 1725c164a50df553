#include "otlp/trace_sampler.h"

#include <cstdlib>
#include <string_view>

namespace foretoken::otlp {
namespace {

Result<double> read_ratio(const std::string& text) {
  if (text.empty()) return 1.0;
  char* end = nullptr;
  const double ratio = std::strtod(text.c_str(), &end);
  if (end == text.c_str() + text.size() && ratio >= 0 && ratio <= 1) return ratio;
  return invalid_argument("OTEL_TRACES_SAMPLER_ARG=" + text +
                          " is no share of traces from 0 to 1; correct or unset it");
}

}  // namespace

bool TraceSampler::samples(const TraceContext* parent, const TraceId& id) const {
  constexpr double kAll = 18446744073709551616.0;  // 2^64
  if (parent != nullptr && follows_parent) return parent->sampled;
  if (ratio >= 1) return true;
  uint64_t low = 0;
  for (size_t i = 8; i < id.size(); ++i) low = low << 8 | id[i];
  return static_cast<double>(low) < ratio * kAll;
}

Result<TraceSampler> parse_trace_sampler(const std::string& name, const std::string& argument) {
  constexpr std::string_view kParent = "parentbased_";
  TraceSampler sampler;
  sampler.follows_parent = name.empty() || name.starts_with(kParent);
  const std::string root =
      name.starts_with(kParent) ? name.substr(kParent.size()) : (name.empty() ? "always_on" : name);
  if (root == "always_on") return sampler;
  if (root == "always_off") {
    sampler.ratio = 0;
    return sampler;
  }
  if (root == "traceidratio") {
    FT_ASSIGN_OR_RETURN(sampler.ratio, read_ratio(argument));
    return sampler;
  }
  return invalid_argument("OTEL_TRACES_SAMPLER=" + name +
                          " is unknown; use always_on, always_off, traceidratio, or one of them "
                          "behind parentbased_");
}

}  // namespace foretoken::otlp
