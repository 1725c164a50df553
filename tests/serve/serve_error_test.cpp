#include "serve/serve_error.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(ServeError, StatusesAndTypes) {
  const auto invalid = openai_error(invalid_argument("'top_p' must be a number"));
  EXPECT_EQ(invalid["error"]["type"], "BadRequestError");
  EXPECT_EQ(invalid["error"]["param"], "top_p");
  EXPECT_EQ(invalid["error"]["code"], 400);
  EXPECT_EQ(openai_error(not_found("x"))["error"]["type"], "NotFoundError");
  EXPECT_EQ(openai_error(unsupported("x"))["error"]["code"], 501);
  EXPECT_EQ(openai_error(internal_error("x"))["error"]["type"], "InternalServerError");
  EXPECT_TRUE(openai_error(internal_error("x"))["error"]["param"].is_null());
  EXPECT_EQ(openai_error({429, resource_exhausted("x"), 3})["error"]["type"], "RateLimitError");
}

TEST(ServeError, BusyServersSayWhenToComeBack) {
  EXPECT_EQ(ServeError(resource_exhausted("x")).retry_after, 1);
  EXPECT_EQ(ServeError(invalid_argument("x")).retry_after, 0);
}

TEST(ServeError, AnthropicsForm) {
  const auto error = anthropic_error(ServeError(429, resource_exhausted("full")));
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "rate_limit_error");
  EXPECT_EQ(error["error"]["message"], "full");
  EXPECT_EQ(anthropic_error(resource_exhausted("x"))["error"]["type"], "overloaded_error");
  EXPECT_EQ(anthropic_error(not_found("x"))["error"]["type"], "not_found_error");
}

}  // namespace
}  // namespace foretoken
