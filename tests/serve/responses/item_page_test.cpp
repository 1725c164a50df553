#include "serve/responses/item_page.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

Result<json> page(http::Headers query) {
  std::vector<json> items;
  for (int i = 0; i < 25; ++i) items.push_back({{"id", std::to_string(i)}});
  http::Request request;
  request.query = std::move(query);
  return item_page(request, std::move(items), "the list");
}

TEST(ItemPage, TheLatestComeFirstTwentyAtATime) {
  const json latest = page({}).value();
  EXPECT_EQ(latest["data"].size(), 20U);
  EXPECT_EQ(latest["first_id"], "24");
  EXPECT_EQ(latest["last_id"], "5");
  EXPECT_EQ(latest["has_more"], true);
  const json rest = page({{"after", "5"}}).value();
  EXPECT_EQ(rest["data"].size(), 5U);
  EXPECT_EQ(rest["has_more"], false);
  const json oldest = page({{"order", "asc"}, {"limit", "2"}}).value();
  EXPECT_EQ(oldest["data"][1]["id"], "1");
  const json none = page({{"order", "asc"}, {"after", "24"}}).value();
  EXPECT_TRUE(none["data"].empty() && none["first_id"].is_null());
}

TEST(ItemPage, ErrorsNameTheField) {
  for (const char* limit : {"0", "101", "x", "1.5"}) {
    EXPECT_NE(page({{"limit", limit}}).status().message().find("'limit' must be a whole number"),
              std::string::npos);
  }
  EXPECT_NE(page({{"order", "up"}}).status().message().find("'order'"), std::string::npos);
  EXPECT_EQ(page({{"after", "x"}}).status().message(), "'after' names no item of the list");
  EXPECT_NE(query_number("n", "-1", 0, 9).status().message().find("at least 0"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
