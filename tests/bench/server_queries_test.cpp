#include "bench/server_queries.h"

#include <gtest/gtest.h>

#include "support/fake_server.h"

namespace foretoken::bench {
namespace {

using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

TEST(ServerQueries, FirstModel) {
  std::string body;
  int status = 200;
  FakeServer server([&](const FakeRequest&, FakeReply& reply) { reply.json(status, body); });
  const auto client = net::Client::create(net::parse_url(server.url()).value(), {}).value();
  body = R"({"object":"list","data":[{"id":"first"},{"id":"second"}]})";
  EXPECT_EQ(first_model(*client, {}).value(), "first");
  for (const char* wrong : {R"({"data":[]})", "{}", "[]", "x", R"({"data":[{}]})"}) {
    body = wrong;
    EXPECT_NE(first_model(*client, {}).status().message().find("--model"), std::string::npos);
  }
  status = 401;
  body = R"({"error":{"message":"no key"}})";
  EXPECT_NE(first_model(*client, {}).status().message().find("HTTP 401: no key"),
            std::string::npos);
}

TEST(ServerQueries, DraftCountersWhereThereAreMetrics) {
  int status = 404;
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    EXPECT_EQ(request.path, "/metrics");
    reply.json(status, "vllm:spec_decode_num_drafts_total 5\n");
  });
  const auto client = net::Client::create(net::parse_url(server.url()).value(), {}).value();
  EXPECT_FALSE(fetch_draft_counters(*client, {}).has_value());
  status = 200;
  EXPECT_EQ(fetch_draft_counters(*client, {})->num_drafts, 5);
}

TEST(ServerQueries, ABrokenAnswerTellsItsReason) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.close(); });
  const auto client = net::Client::create(net::parse_url(server.url()).value(), {}).value();
  const WholeAnswer answer = ask_server(*client, "POST", "/x", {{"X-Key", "1"}});
  EXPECT_EQ(answer.status, 0);
  EXPECT_NE(answer.end.message().find("closed the connection"), std::string::npos);
  EXPECT_EQ(server.requests().at(0).headers.at("x-key"), "1");
  EXPECT_FALSE(first_model(*client, {}).ok());
}

}  // namespace
}  // namespace foretoken::bench
