#include "serve/flow/event_log.h"

#include <gtest/gtest.h>

#include "serve/flow/fake_exchange.h"

namespace foretoken {
namespace {

using test::FakeExchange;

TEST(EventLog, TellsWhatWasAndWhatComes) {
  WorkPool pool(2, 8);
  const auto log = std::make_shared<EventLog>();
  auto kept = EventLog::make_exchange(log, pool, http::Request());
  kept->begin(200, "text/event-stream");
  kept->write("data: 0\n\ndata: 1\n\n");
  kept->write(": alive\n\n");
  const auto early = FakeExchange::make("");
  const auto late = FakeExchange::make("");
  const auto ahead = FakeExchange::make("");
  log->follow(early, 0);
  log->follow(ahead, 2);
  kept->write("data: 2\n\ndata: 3\n\n");
  kept->end();
  log->follow(late, 1);
  ASSERT_TRUE(early->wait() && late->wait() && ahead->wait());
  EXPECT_EQ(early->body(), "data: 1\n\ndata: 2\n\ndata: 3\n\n");
  EXPECT_EQ(late->body(), "data: 2\n\ndata: 3\n\n");
  EXPECT_EQ(ahead->body(), "data: 3\n\n");
  EXPECT_GT(log->num_bytes(), 0U);
}

TEST(EventLog, AnErrorOrALostAnswerIsTheEnd) {
  WorkPool pool(1, 8);
  const auto log = std::make_shared<EventLog>();
  auto kept = EventLog::make_exchange(log, pool, http::Request());
  const auto client = FakeExchange::make("");
  log->follow(client, -1);
  kept->post([kept] { kept->respond(500, "application/json", "{}", {}); });
  kept.reset();
  ASSERT_TRUE(client->wait());
  EXPECT_EQ(client->body(), "event: error\ndata: {}\n\n");
}

}  // namespace
}  // namespace foretoken
