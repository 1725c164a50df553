#include "serve/responses/item_page.h"

#include <algorithm>
#include <charconv>

namespace foretoken {

using json = nlohmann::ordered_json;

Result<int64_t> query_number(const char* name, std::string_view text, int64_t low, int64_t high) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && number >= low && number <= high) return number;
  const std::string range =
      high == 100 ? "from " + std::to_string(low) + " to 100" : "at least " + std::to_string(low);
  return invalid_argument("'" + std::string(name) + "' must be a whole number, " + range);
}

Result<json> item_page(const http::Request& request, std::vector<json> items,
                       const std::string& owner) {
  const std::string_view order = request.query_value("order");
  if (!order.empty() && order != "asc" && order != "desc") {
    return invalid_argument("'order' must be \"asc\" or \"desc\"");
  }
  if (order != "asc") std::ranges::reverse(items);
  size_t limit = 20;
  if (const std::string_view wanted = request.query_value("limit"); !wanted.empty()) {
    FT_ASSIGN_OR_RETURN(const int64_t number, query_number("limit", wanted, 1, 100));
    limit = static_cast<size_t>(number);
  }
  if (const std::string_view after = request.query_value("after"); !after.empty()) {
    const auto at =
        std::ranges::find_if(items, [&](const json& item) { return item.at("id") == after; });
    if (at == items.end()) return invalid_argument("'after' names no item of " + owner);
    items.erase(items.begin(), at + 1);
  }
  const bool more = items.size() > limit;
  if (more) items.resize(limit);
  return json{{"object", "list"},
              {"data", items},
              {"first_id", items.empty() ? json() : items.front()["id"]},
              {"last_id", items.empty() ? json() : items.back()["id"]},
              {"has_more", more}};
}

}  // namespace foretoken
