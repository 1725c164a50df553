#include "serve/flow/load_report.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/text/ascii_text.h"

namespace foretoken {

http::Headers load_report(std::string_view format, const EngineStats& stats) {
  const auto total = static_cast<double>(stats.num_total_blocks);
  const double used = total - static_cast<double>(stats.num_free_blocks);
  const nlohmann::ordered_json measures = {
      {"kv_cache_usage_perc", total > 0 ? used / total : 0},
      {"num_requests_waiting", static_cast<double>(stats.num_waiting_requests)}};
  const std::string name = lower_case(format);
  std::string value;
  if (name == "json") {
    value = "JSON " + nlohmann::ordered_json{{"named_metrics", measures}}.dump();
  } else if (name == "text") {
    for (const auto& [key, measure] : measures.items()) {
      value += (value.empty() ? "TEXT " : ", ") + ("named_metrics." + key + "=" + measure.dump());
    }
  } else {
    return {};
  }
  return {{"endpoint-load-metrics", value}};
}

}  // namespace foretoken
