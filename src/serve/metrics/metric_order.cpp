#include "serve/metrics/metric_order.h"

#include <algorithm>
#include <string>

namespace foretoken {
namespace {

using Label = prometheus::ClientMetric::Label;

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

bool comes_first(const Label& a, const Label& b) {
  if (a.name != b.name) return a.name < b.name;
  const bool numbers = is_number(a.value) && is_number(b.value);
  if (numbers && a.value.size() != b.value.size()) return a.value.size() < b.value.size();
  return a.value < b.value;
}

}  // namespace

void order_metrics(std::vector<prometheus::MetricFamily>* families) {
  for (prometheus::MetricFamily& family : *families) {
    std::ranges::stable_sort(family.metric, [](const auto& a, const auto& b) {
      return std::ranges::lexicographical_compare(a.label, b.label, comes_first);
    });
  }
}

}  // namespace foretoken
