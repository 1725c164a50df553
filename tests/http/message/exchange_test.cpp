#include "http/message/exchange.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

TEST(HttpRequest, HeadersGoByNameInAnyCase) {
  Request request;
  request.headers = {{"Content-Type", "text/plain"}, {"content-type", "second"}};
  EXPECT_EQ(request.header("content-TYPE"), "text/plain");
  EXPECT_EQ(request.header("Content"), "");
}

TEST(HttpRequest, QueryValuesGoByExactName) {
  Request request;
  request.query = {{"limit", "3"}};
  EXPECT_EQ(request.query_value("limit"), "3");
  EXPECT_EQ(request.query_value("Limit"), "");
}

}  // namespace
}  // namespace foretoken::http
