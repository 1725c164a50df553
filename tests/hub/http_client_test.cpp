#include "hub/http_client.h"

#include <gtest/gtest.h>

#include "support/hub_server.h"

namespace foretoken {
namespace {

using test::HubServer;
using test::HubServerAnswer;
using test::HubServerRequest;

class HttpClientTest : public testing::Test {
 protected:
  HttpClientTest() { setenv("no_proxy", "*", 1); }

  HttpClient client(std::chrono::milliseconds stall_timeout = std::chrono::minutes(10)) {
    return HttpClient({.endpoint = server.url(),
                       .token = "hf_secret",
                       .ca_file = "",
                       .stall_timeout = stall_timeout,
                       .cancelled = [this] { return cancelled.load(); }});
  }

  HttpReply get(const std::string& path) {
    HttpClient one = client();
    return one.send({.url = server.url() + path, .max_body = 1000});
  }

  void answer(const std::string& path, const HubServerAnswer& answer) {
    answers[path] = answer;
    server.set_intercept(
        [all = answers](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
          const auto found = all.find(request.path);
          if (found == all.end()) return std::nullopt;
          return found->second;
        });
  }

  void redirect(const std::string& from, const std::string& to) {
    answer(from, {.status = 302, .headers = {{"Location", to}}, .body = "gone"});
  }

  bool has_token(const std::string& path) {
    for (const HubServerRequest& request : server.requests()) {
      if (request.path == path) return request.headers.count("authorization") > 0;
    }
    ADD_FAILURE() << path << " was not asked for";
    return false;
  }

  HubServer server;
  std::atomic<bool> cancelled{false};
  std::map<std::string, HubServerAnswer> answers;
};

TEST_F(HttpClientTest, BodyHeadersAndToken) {
  answer("/a", {.status = 200, .headers = {{"X-Thing", "seven"}}, .body = "text"});
  const HttpReply reply = get("/a");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "text");
  EXPECT_EQ(reply.header("x-thing"), "seven");
  EXPECT_EQ(reply.number("content-length"), 4);
  EXPECT_EQ(reply.number("x-thing"), -1);
  EXPECT_TRUE(has_token("/a"));
  EXPECT_EQ(server.requests()[0].headers.at("authorization"), "Bearer hf_secret");
  EXPECT_EQ(server.requests()[0].headers.at("accept-encoding"), "identity");
}

TEST_F(HttpClientTest, RedirectsKeepTheTokenAtItsOrigin) {
  redirect("/a", "/b");
  redirect("/b", server.cdn_url() + "/c");
  redirect("/c", server.url() + "/d");
  answer("/d", {.status = 200, .headers = {}, .body = "end"});
  EXPECT_EQ(get("/a").body, "end");
  EXPECT_TRUE(has_token("/a"));
  EXPECT_TRUE(has_token("/b"));
  EXPECT_FALSE(has_token("/c"));
  EXPECT_TRUE(has_token("/d"));
}

TEST_F(HttpClientTest, LinkedHeadersOfARedirectStay) {
  answer("/a", {.status = 302,
                .headers = {{"Location", "/b"}, {"X-Linked-Etag", "\"e\""}, {"X-Linked-Size", "9"}},
                .body = ""});
  answer("/b", {.status = 200, .headers = {}, .body = "x"});
  const HttpReply reply = get("/a");
  EXPECT_EQ(reply.header("x-linked-etag"), "\"e\"");
  EXPECT_EQ(reply.number("x-linked-size"), 9);
}

TEST_F(HttpClientTest, StaysOnTheHostWhenAsked) {
  redirect("/a", "/b");
  redirect("/b", server.cdn_url() + "/c");
  HttpClient one = client();
  const HttpReply reply =
      one.send({.url = server.url() + "/a", .head = true, .stay_on_host = true});
  EXPECT_EQ(reply.status, 302);
  EXPECT_EQ(server.count("", "/c"), 0);
}

TEST_F(HttpClientTest, RedirectsInACircleAndToOtherProtocolsEnd) {
  redirect("/a", "/b");
  redirect("/b", "/a");
  EXPECT_NE(get("/a").error.message().find("circle"), std::string::npos);
  redirect("/f", "file:///etc/passwd");
  const HttpReply reply = get("/f");
  EXPECT_FALSE(reply.error.ok());
  EXPECT_EQ(reply.body, "");
}

TEST_F(HttpClientTest, LargeAnswersAreRefused) {
  answer("/a", {.status = 200, .headers = {}, .body = std::string(2000, 'x'), .endless = true});
  EXPECT_NE(get("/a").error.message().find("larger than 1000"), std::string::npos);
  std::string long_line(80000, 'h');
  HubServerAnswer many{.status = 200, .headers = {}, .body = ""};
  for (int i = 0; i < 10; ++i) many.headers.emplace_back("X-" + std::to_string(i), long_line);
  answer("/h", many);
  EXPECT_NE(get("/h").error.message().find("endless headers"), std::string::npos);
}

TEST_F(HttpClientTest, BrokenConnectionsAreFailures) {
  answer("/cut", {.status = 200, .headers = {}, .body = "0123456789", .cut_after = 4});
  const HttpReply cut = get("/cut");
  EXPECT_NE(cut.failure, "");
  EXPECT_TRUE(cut.is_transient());
  answer("/hang",
         {.status = 200, .headers = {}, .body = "0123456789", .cut_after = 4, .hang = true});
  HttpClient hasty = client(std::chrono::milliseconds(200));
  EXPECT_NE(hasty.send({.url = server.url() + "/hang", .max_body = 1000}).failure, "");
  HttpClient one = client();
  EXPECT_NE(one.send({.url = "http://127.0.0.1:1/x"}).failure, "");
}

// The second try uses the handle that the first one failed with.
TEST_F(HttpClientTest, AHostThatIsNotFoundIsAFailureEachTime) {
  HttpClient one({.endpoint = "http://hub.invalid", .token = "", .ca_file = "", .cancelled = {}});
  for (int i = 0; i < 2; ++i) {
    const HttpReply reply = one.send({.url = "http://hub.invalid/a", .max_body = 1000});
    EXPECT_TRUE(reply.is_transient()) << reply.error.message();
  }
}

TEST_F(HttpClientTest, TransientStatuses) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    answer("/s", {.status = status, .headers = {}, .body = ""});
    EXPECT_TRUE(get("/s").is_transient()) << status;
  }
  for (const int status : {200, 401, 403, 404, 416}) {
    answer("/s", {.status = status, .headers = {}, .body = ""});
    EXPECT_FALSE(get("/s").is_transient()) << status;
  }
}

TEST_F(HttpClientTest, SinksSeeOnlySuccessAndCanRefuse) {
  answer("/ok", {.status = 200, .headers = {}, .body = "0123456789"});
  answer("/no", {.status = 404, .headers = {}, .body = "nothing here"});
  HttpClient one = client();
  std::string taken;
  int num_starts = 0;
  HttpRequest request{.url = server.url() + "/no",
                      .on_start = [&](const HttpReply&) { return ++num_starts, Status(); },
                      .on_body =
                          [&](std::string_view bytes) {
                            taken += bytes;
                            return Status();
                          }};
  EXPECT_EQ(one.send(request).body, "nothing here");
  EXPECT_EQ(num_starts, 0);
  request.url = server.url() + "/ok";
  EXPECT_EQ(one.send(request).status, 200);
  EXPECT_EQ(taken, "0123456789");
  EXPECT_EQ(num_starts, 1);
  request.on_start = [](const HttpReply&) { return invalid_argument("not this"); };
  EXPECT_EQ(one.send(request).error.message(), "not this");
  EXPECT_EQ(taken, "0123456789");
}

TEST_F(HttpClientTest, CancelEndsAHangingTransfer) {
  answer("/hang",
         {.status = 200, .headers = {}, .body = "0123", .content_length = 10, .hang = true});
  std::thread soon([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = true;
  });
  HttpClient patient({.endpoint = server.url(), .token = "", .ca_file = "", .cancelled = [this] {
                        return cancelled.load();
                      }});
  EXPECT_EQ(patient.send({.url = server.url() + "/hang"}).error.code(), StatusCode::kAborted);
  soon.join();
}

TEST(HttpUrl, OriginsAndQuoting) {
  EXPECT_EQ(url_origin("https://Host/a"), "https://host:443");
  EXPECT_EQ(url_origin("https://host:443/b?c"), "https://host:443");
  EXPECT_NE(url_origin("http://host/a"), url_origin("https://host/a"));
  EXPECT_NE(url_origin("https://host.evil/a"), url_origin("https://host/a"));
  EXPECT_EQ(url_origin("https://user@host/a"), "https://host:443");
  EXPECT_EQ(url_origin("no url"), "");
  EXPECT_EQ(url_quote("refs/pr/1 ä"), "refs%2Fpr%2F1%20%C3%A4");
}

}  // namespace
}  // namespace foretoken
