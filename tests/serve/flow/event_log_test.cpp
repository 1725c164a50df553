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

TEST(EventLog, AFollowerThatDoesNotReadHoldsLittleAndStallsNobody) {
  WorkPool pool(1, 8);
  const auto log = std::make_shared<EventLog>();
  auto kept = EventLog::make_exchange(log, pool, http::Request());
  const auto slow = FakeExchange::make("");
  const auto fast = FakeExchange::make("");
  slow->stall();
  log->follow(slow, -1);
  log->follow(fast, -1);
  std::string all;
  for (int i = 0; i < 64; ++i) {
    const std::string event = "data: " + std::string(16 * 1024, 'a') + "\n\n";
    all += event;
    kept->write(event);
  }
  kept->end();
  ASSERT_TRUE(fast->wait());
  EXPECT_EQ(fast->body(), all);
  EXPECT_LE(slow->num_queued_bytes(), size_t{128} * 1024);
  slow->resume();
  ASSERT_TRUE(slow->wait());
  EXPECT_EQ(slow->body(), all);
}

TEST(EventLog, KeepsTheLatestAndSaysWhatIsForgotten) {
  WorkPool pool(1, 8);
  const auto log = std::make_shared<EventLog>(40);
  auto kept = EventLog::make_exchange(log, pool, http::Request());
  for (int i = 0; i < 9; ++i) kept->write("data: " + std::to_string(i) + "\n\n");
  EXPECT_LE(log->num_bytes(), 40U);
  const auto behind = FakeExchange::make("");
  const auto near = FakeExchange::make("");
  log->follow(behind, -1);
  log->follow(near, 6);
  ASSERT_TRUE(behind->wait());
  EXPECT_NE(behind->body().find("events_forgotten"), std::string::npos);
  kept->write("data: " + std::string(100, 'a') + "\n\n");
  kept->end();
  ASSERT_TRUE(near->wait());
  EXPECT_EQ(near->body(), "data: 7\n\ndata: 8\n\ndata: " + std::string(100, 'a') + "\n\n");
}

TEST(EventLog, ThoseThatRunShareABudget) {
  const auto budget = std::make_shared<EventBudget>(400);
  const std::string event = "data: " + std::string(92, 'a') + "\n\n";
  auto large = std::make_shared<EventLog>(1000, budget);
  for (int i = 0; i < 9; ++i) large->add(event);
  EXPECT_EQ(large->num_bytes(), 4 * event.size());
  // Each has its part, and the first one gives what is beyond its own with its next event.
  auto small = std::make_shared<EventLog>(1000, budget);
  small->add(event);
  EXPECT_EQ(small->num_bytes(), event.size());
  large->add(event);
  EXPECT_LE(large->num_bytes() + small->num_bytes(), budget->max_bytes);
  for (int i = 0; i < 9; ++i) small->add(event);
  EXPECT_EQ(small->num_bytes(), 2 * event.size());
  EXPECT_EQ(budget->num_bytes, large->num_bytes() + small->num_bytes());
  // One that has ended keeps what it has, which is another's to count.
  large->end();
  EXPECT_EQ(budget->num_bytes, small->num_bytes());
  for (int i = 0; i < 9; ++i) small->add(event);
  EXPECT_EQ(small->num_bytes(), 4 * event.size());
  small.reset();
  EXPECT_EQ(budget->num_bytes, 0U);
  EXPECT_EQ(budget->num_logs, 0U);
}

TEST(EventLog, CommentsReachThoseWhoHaveReadAll) {
  WorkPool pool(1, 8);
  const auto log = std::make_shared<EventLog>();
  auto kept = EventLog::make_exchange(log, pool, http::Request());
  const auto idle = FakeExchange::make("");
  log->follow(idle, -1);
  kept->write("data: 0\n\n");
  kept->write(": alive\n\n");
  kept->end();
  ASSERT_TRUE(idle->wait());
  EXPECT_EQ(idle->body(), "data: 0\n\n: alive\n\n");
}

}  // namespace
}  // namespace foretoken
