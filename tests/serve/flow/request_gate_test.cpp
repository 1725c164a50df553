#include "serve/flow/request_gate.h"

#include <gtest/gtest.h>

#include <thread>

namespace foretoken {
namespace {

using std::chrono::milliseconds;

int status_of(RequestGate& gate, int num_sequences, int64_t num_tokens) {
  auto ticket = gate.enter(num_sequences, num_tokens);
  return ticket.ok() ? 200 : ticket.error().http;
}

TEST(RequestGate, CountsAndRefusesWaitingSequences) {
  RequestGate gate({.max_num_seqs = 2, .max_num_queued_requests = 1});
  auto a = gate.enter(1, 10);
  auto b = gate.enter(1, 10);
  auto waiting = gate.enter(1, 10);
  ASSERT_TRUE(a.ok() && b.ok() && waiting.ok());
  auto refused = gate.enter(1, 10);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().http, 429);
  EXPECT_GE(refused.error().retry_after, 1);
  EXPECT_NE(refused.error().status.message().find("--max-num-queued-reqs 1"), std::string::npos);
  a.value().release();
  EXPECT_EQ(status_of(gate, 1, 10), 200);
  EXPECT_EQ(gate.num_requests(), 2);
}

TEST(RequestGate, PromptTokensWaitUntilTheFirstOutput) {
  RequestGate gate({.max_num_seqs = 8, .max_num_queued_tokens = 100});
  auto a = gate.enter(1, 80);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(status_of(gate, 1, 30), 429);
  a.value().started();
  a.value().started();
  EXPECT_EQ(status_of(gate, 1, 30), 200);
  EXPECT_EQ(status_of(gate, 1, 101), 429);
}

TEST(RequestGate, AnEmptyServerTakesAnySize) {
  RequestGate gate({.max_num_seqs = 1,
                    .max_num_active_seqs = 1,
                    .max_num_queued_requests = 1,
                    .max_num_queued_tokens = 5});
  EXPECT_EQ(status_of(gate, 50, 1000), 200);
}

TEST(RequestGate, ActiveSequencesAreBounded) {
  RequestGate gate({.max_num_seqs = 8, .max_num_active_seqs = 3});
  auto a = gate.enter(2, 1);
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(status_of(gate, 2, 1), 429);
  EXPECT_EQ(status_of(gate, 1, 1), 200);
}

TEST(RequestGate, WithoutLimitsEverythingEnters) {
  RequestGate gate({.max_num_seqs = 1});
  std::vector<RequestGate::Ticket> tickets;
  for (int i = 0; i < 100; ++i) {
    auto ticket = gate.enter(1, 1000);
    ASSERT_TRUE(ticket.ok());
    tickets.push_back(std::move(ticket.value()));
  }
  EXPECT_EQ(gate.num_requests(), 100);
}

TEST(RequestGate, DrainingRefusesAndWaits) {
  RequestGate gate({.max_num_seqs = 1});
  auto running = gate.enter(1, 1);
  ASSERT_TRUE(running.ok());
  gate.drain();
  EXPECT_TRUE(gate.draining());
  EXPECT_EQ(status_of(gate, 1, 1), 503);
  EXPECT_FALSE(gate.wait_empty(milliseconds(10)));
  std::thread ends([&] {
    std::this_thread::sleep_for(milliseconds(20));
    running.value().release();
  });
  EXPECT_TRUE(gate.wait_empty(std::chrono::seconds(120)));
  ends.join();
}

}  // namespace
}  // namespace foretoken
