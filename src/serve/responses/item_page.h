#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "http/message/exchange.h"

namespace foretoken {

// A number of a query, in a range; the error says "from `low` to 100" where `high` is 100.
Result<int64_t> query_number(const char* name, std::string_view text, int64_t low, int64_t high);

// A page of `items`, oldest first, each with an id, as OpenAI's lists have it: by "limit" (20),
// "order" ("desc") and "after" of the query of `request`. `owner` is what has them, for errors:
// "the response 'resp_1'".
Result<nlohmann::ordered_json> item_page(const http::Request& request,
                                         std::vector<nlohmann::ordered_json> items,
                                         const std::string& owner);

}  // namespace foretoken
