#include "http/server/request_check.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

class HttpRequestCheck : public ::testing::Test {
 protected:
  Admission check(const std::string& method, const std::string& target, Headers headers = {},
                  std::optional<uint64_t> length = 0) {
    std::vector<Route> routes = {{"GET", "/v1/models", [](auto) {}},
                                 {"POST", "/v1/chat", [](auto) {}, true, 100},
                                 {"GET", "/health", [](auto) {}, false},
                                 {"GET", "/r/{id}", [](auto) {}}};
    ServerConfig config = config_;
    state_ = std::make_unique<ServerState>(std::move(config),
                                           std::move(Router::make(std::move(routes)).value()));
    RequestHead head;
    head.method = method;
    head.target = target;
    head.content_length = length;
    request_ = Request();
    request_.method = method;
    request_.headers = std::move(headers);
    return admit(*state_, head, request_);
  }
  int status(const std::string& method, const std::string& target, Headers headers = {},
             std::optional<uint64_t> length = 0) {
    const Admission admission = check(method, target, std::move(headers), length);
    EXPECT_EQ(admission.answer.has_value(), admission.route == nullptr);
    return admission.answer ? admission.answer->status : 0;
  }

  ServerConfig config_;
  std::unique_ptr<ServerState> state_;
  Request request_;
};

TEST_F(HttpRequestCheck, RoutesAndLimits) {
  const Admission admission = check("POST", "/v1/chat?a=b", {}, 100);
  ASSERT_NE(admission.route, nullptr);
  EXPECT_EQ(admission.max_body_bytes, 100U);
  EXPECT_EQ(request_.path, "/v1/chat");
  EXPECT_EQ(request_.query_value("a"), "b");
  EXPECT_EQ(check("GET", "/v1/models").max_body_bytes, config_.max_body_bytes);
  check("GET", "/r/x%20y");
  EXPECT_EQ(request_.path_values, std::vector<std::string>{"x y"});
}

TEST_F(HttpRequestCheck, Refusals) {
  EXPECT_EQ(status("GET", "/nowhere"), 404);
  EXPECT_EQ(status("GET", "/%zz"), 400);
  EXPECT_EQ(status("DELETE", "/v1/models"), 405);
  EXPECT_EQ(check("DELETE", "/v1/models").answer->headers, (Headers{{"Allow", "GET, HEAD"}}));
  EXPECT_EQ(status("GET", "/v1/chat", {{"Upgrade", "websocket"}}), 426);
  EXPECT_EQ(status("GET", "/v1/chat", {{"Upgrade", "h2c"}}), 405);
  EXPECT_EQ(status("GET", "/v1/models", {{"Upgrade", "websocket"}}), 0);
  EXPECT_EQ(status("POST", "/v1/chat", {}, 101), 413);
  EXPECT_EQ(status("POST", "/v1/chat", {{"Expect", "200-ok"}}, 1), 417);
  EXPECT_EQ(status("POST", "/v1/chat", {{"Expect", "100-continue"}}, 1), 0);
  EXPECT_EQ(status("POST", "/v1/chat", {{"Content-Encoding", "zstd"}}, 1), 415);
  EXPECT_EQ(status("POST", "/v1/chat", {{"Content-Encoding", "gzip"}}, 1), 0);
  EXPECT_EQ(status("POST", "/v1/chat", {{"Content-Encoding", "identity"}}, 1), 0);
  EXPECT_EQ(status("OPTIONS", "/v1/chat"), 204);
  EXPECT_EQ(status("OPTIONS", "*"), 204);
}

TEST_F(HttpRequestCheck, KeysAreAskedForBeforeTheBody) {
  config_.api_keys = std::move(ApiKeys::read({"secret"}, "").value());
  EXPECT_EQ(status("POST", "/v1/chat", {}, 1000), 401);
  EXPECT_EQ(status("POST", "/v1/chat", {{"Authorization", "Bearer wrong"}}, 1), 401);
  EXPECT_EQ(status("POST", "/v1/chat", {{"Authorization", "Bearer secret"}}, 1), 0);
  EXPECT_EQ(status("GET", "/health"), 0);
  const Headers preflight = {{"Origin", "https://a"}, {"Access-Control-Request-Method", "POST"}};
  EXPECT_EQ(status("OPTIONS", "/v1/chat", preflight), 204);  // browsers send no key with it
}

TEST_F(HttpRequestCheck, RootPathMayStayOnThePath) {
  config_.root_path = "/llm";
  EXPECT_EQ(status("GET", "/llm/v1/models"), 0);
  EXPECT_EQ(status("GET", "/v1/models"), 0);
  EXPECT_EQ(status("GET", "/llmv1/models"), 404);
}

TEST_F(HttpRequestCheck, RequestIds) {
  EXPECT_EQ(request_id("abc-123"), "abc-123");
  for (const std::string& odd : {std::string(), std::string("a b"), std::string("a\nb"),
                                 std::string("\xC3\xA4"), std::string(200, 'a')}) {
    EXPECT_EQ(request_id(odd).size(), 32U) << odd;
  }
  EXPECT_NE(request_id(""), request_id(""));
  check("GET", "/v1/models", {{"X-Request-Id", "mine"}});
  EXPECT_EQ(request_.id, "mine");
}

}  // namespace
}  // namespace foretoken::http
