#include "serve/metrics/metric_bounds.h"

#include <cstddef>
#include <string_view>

namespace foretoken {

std::string with_float_bounds(const std::string& text) {
  // Within a label's value the quote would have a backslash before it.
  constexpr std::string_view kLabel = "le=\"";
  std::string page;
  page.reserve(text.size() + text.size() / 64);
  size_t copied = 0;
  for (size_t at = text.find(kLabel); at != std::string::npos; at = text.find(kLabel, at)) {
    const bool is_label = at > 0 && (text[at - 1] == ',' || text[at - 1] == '{');
    at += kLabel.size();
    const size_t end = text.find_first_not_of("0123456789", at);
    if (!is_label || end == std::string::npos || end == at || text[end] != '"') continue;
    page.append(text, copied, end - copied).append(".0");
    copied = end;
  }
  return page.append(text, copied);
}

}  // namespace foretoken
