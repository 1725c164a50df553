#include "serve/answer/serve_error.h"

#include <foretoken/prompt_length.h>

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

TEST(ServeError, TheFieldOfTheEnginesSentencesIsNamed) {
  const auto param_of = [](const char* message) {
    return openai_error(invalid_argument(message))["error"]["param"];
  };
  EXPECT_EQ(param_of("temperature is -1; it must be in [0, 1000000]"), "temperature");
  EXPECT_EQ(param_of("stop must not hold an empty string"), "stop");
  EXPECT_EQ(param_of("structured_outputs: at 1(8): unclosed"), "structured_outputs");
  EXPECT_EQ(param_of("priority is 1, but this engine runs first come"), "priority");
  EXPECT_EQ(param_of("message 1: 'content' must be a text"), "messages");
  EXPECT_TRUE(param_of("message of nobody").is_null());
  EXPECT_TRUE(param_of("the prompt is empty").is_null());
  EXPECT_TRUE(param_of("temperature").is_null());
}

TEST(ServeError, AgentsTellByOpenAisCodes) {
  EXPECT_EQ(openai_error(prompt_too_long(9, 5))["error"]["code"], "context_length_exceeded");
  const Status forgotten = not_found("'previous_response_id' resp_1: there is no such response");
  EXPECT_EQ(openai_error(forgotten)["error"]["code"], "previous_response_not_found");
  EXPECT_EQ(openai_error(not_found("'model' x"))["error"]["code"], 404);
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

TEST(ServeError, TheHttpServersErrorsHaveTheFormOfTheirApi) {
  const auto type_of = [](int http, const char* path) {
    const auto body = nlohmann::json::parse(http_error_body(http, "why", path));
    EXPECT_EQ(body["error"]["message"], "why");
    EXPECT_EQ(body.value("type", "") == "error", !body["error"].contains("code"));
    return body["error"]["type"].get<std::string>();
  };
  for (const char* path : {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"}) {
    EXPECT_EQ(type_of(401, path), "authentication_error");
    EXPECT_EQ(type_of(404, path), "not_found_error");
    EXPECT_EQ(type_of(408, path), "timeout_error");
    EXPECT_EQ(type_of(413, path), "request_too_large");
    for (const int http : {400, 405, 414, 415, 417, 431}) {
      EXPECT_EQ(type_of(http, path), "invalid_request_error") << http;
    }
    EXPECT_EQ(type_of(500, path), "api_error");
    EXPECT_EQ(type_of(503, path), "overloaded_error");
  }
  for (const char* path : {"", "/", "/v1/messagesx", "/v1/chat/completions"}) {
    EXPECT_EQ(type_of(401, path), "AuthenticationError");
    EXPECT_EQ(type_of(404, path), "NotFoundError");
    for (const int http : {400, 405, 413, 414, 415, 417, 431}) {
      EXPECT_EQ(type_of(http, path), "BadRequestError") << http;
    }
    EXPECT_EQ(type_of(500, path), "InternalServerError");
  }
}

}  // namespace
}  // namespace foretoken
