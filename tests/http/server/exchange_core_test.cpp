#include "http/server/exchange_core.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <thread>
#include <utility>

namespace foretoken::http {
namespace {

// A loop that the test runs by hand, and the connection that takes what is to be sent.
class HttpExchangeCore : public ::testing::Test {
 protected:
  HttpExchangeCore() {
    auto host = std::make_shared<ExchangeHost>();
    host->post = [this](std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      if (!ended_) work_.push_back(std::move(work));
      return !ended_;
    };
    host->draining = [this] { return draining_; };
    host->error_body = [](int status, const std::string& message, const std::string& path) {
      return std::to_string(status) + " " + message + path;
    };
    host_ = host;
  }

  std::shared_ptr<Exchange> make(AnswerFrame frame = {}) {
    core_ = std::make_shared<ExchangeCore>(Request(), std::move(frame), host_);
    core_->attach([this] { ++num_outputs_; });
    return ExchangeCore::make_handle(core_);
  }
  void run_loop() {
    for (;;) {
      std::function<void()> work;
      {
        const std::lock_guard lock(mutex_);
        if (work_.empty()) return;
        work = std::move(work_.front());
        work_.pop_front();
      }
      work();
    }
  }
  // Everything that waits, without its head, as sent.
  std::string take() {
    run_loop();
    const ExchangeCore::Output output = core_->take();
    std::string bytes;
    for (const std::string& piece : output.pieces) bytes += piece;
    num_pieces_ = output.pieces.size();
    last_ = output.last;
    broken_ = output.broken;
    if (!bytes.empty()) core_->sent(bytes.size());
    const size_t end = bytes.find("\r\n\r\n");
    head_ = bytes.starts_with("HTTP/") ? bytes.substr(0, end + 2) : "";
    return head_.empty() ? bytes : bytes.substr(end + 4);
  }

  std::mutex mutex_;
  std::deque<std::function<void()>> work_;
  bool ended_ = false;
  bool draining_ = false;
  std::shared_ptr<const ExchangeHost> host_;
  std::shared_ptr<ExchangeCore> core_;
  int num_outputs_ = 0;
  size_t num_pieces_ = 0;
  bool last_ = false;
  bool broken_ = false;
  std::string head_;
};

TEST_F(HttpExchangeCore, AnswersOnce) {
  const auto exchange = make();
  exchange->respond(201, "text/plain", "one", {{"X-A", "b"}});
  exchange->respond(200, "text/plain", "two");
  exchange->begin(200, "text/plain");
  exchange->write("three");
  exchange->end();
  EXPECT_EQ(take(), "one");
  EXPECT_TRUE(last_);
  EXPECT_NE(head_.find("201 Created"), std::string::npos);
  EXPECT_NE(head_.find("X-A: b"), std::string::npos);
  EXPECT_EQ(core_->status(), 201);
  EXPECT_TRUE(core_->keep_alive());
  EXPECT_EQ(take(), "");
}

TEST_F(HttpExchangeCore, PiecesAreGatheredInOrder) {
  const auto exchange = make();
  exchange->begin(200, "text/event-stream");
  for (int i = 0; i < 100; ++i) exchange->write("x" + std::to_string(i % 10));
  exchange->write("");  // would be the end of a chunked body
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += "2\r\nx" + std::to_string(i % 10) + "\r\n";
  EXPECT_EQ(take(), expected);
  EXPECT_EQ(num_pieces_, 1U);
  EXPECT_EQ(num_outputs_, 1);  // one wake-up for all of it
  EXPECT_FALSE(last_);
  exchange->write(std::string(100000, 'y'));
  exchange->end();
  exchange->write("late");
  EXPECT_EQ(take(), "186a0\r\n" + std::string(100000, 'y') + "\r\n0\r\n\r\n");
  EXPECT_TRUE(last_);
}

TEST_F(HttpExchangeCore, Http10EndsWithTheConnection) {
  AnswerFrame frame;
  frame.http10 = true;
  const auto exchange = make(frame);
  exchange->begin(200, "text/plain");
  exchange->write("abc");
  exchange->end();
  EXPECT_EQ(take(), "abc");
  EXPECT_FALSE(core_->keep_alive());
}

TEST_F(HttpExchangeCore, HeadHasNoBody) {
  AnswerFrame frame;
  frame.head_only = true;
  auto exchange = make(frame);
  exchange->respond(200, "text/plain", "12345");
  EXPECT_EQ(take(), "");
  EXPECT_NE(head_.find("Content-Length: 5"), std::string::npos);
  exchange = make(frame);
  exchange->begin(200, "text/plain");
  exchange->write("abc");
  exchange->end();
  EXPECT_EQ(take(), "");
  EXPECT_TRUE(last_);
}

TEST_F(HttpExchangeCore, DrainingAndHandlersEndTheConnection) {
  auto exchange = make();
  exchange->respond(200, "", "", {{"Connection", "close"}});
  take();
  EXPECT_FALSE(core_->keep_alive());
  draining_ = true;
  exchange = make();
  exchange->respond(200, "", "");
  take();
  EXPECT_NE(head_.find("Connection: close"), std::string::npos);
  EXPECT_FALSE(core_->keep_alive());
}

TEST_F(HttpExchangeCore, DroppedIs500) {
  make();
  EXPECT_EQ(take(), "500 the server dropped this request without an answer");
  EXPECT_EQ(core_->status(), 500);
}

TEST_F(HttpExchangeCore, DroppedInTheMiddleIsBroken) {
  auto exchange = make();
  exchange->begin(200, "text/plain");
  exchange->write("half");
  exchange.reset();
  take();
  EXPECT_TRUE(broken_);
  EXPECT_FALSE(core_->keep_alive());
}

TEST_F(HttpExchangeCore, SentWorkWaitsForTheLastByte) {
  const auto exchange = make();
  int num_sent = 0;
  exchange->when_sent([&] { ++num_sent; });
  run_loop();
  EXPECT_EQ(num_sent, 1);  // nothing was queued
  exchange->begin(200, "text/plain");
  exchange->write("abc");
  exchange->when_sent([&] { ++num_sent; });
  run_loop();
  const size_t queued = exchange->num_queued_bytes();
  EXPECT_GT(queued, 8U);
  core_->take();
  core_->sent(queued - 1);
  EXPECT_EQ(num_sent, 1);
  core_->sent(1);
  EXPECT_EQ(num_sent, 2);
  EXPECT_EQ(exchange->num_queued_bytes(), 0U);
}

TEST_F(HttpExchangeCore, GoneWorkRunsOnceAndNotAfterTheEnd) {
  auto exchange = make();
  int num_gone = 0;
  int num_sent = 0;
  exchange->when_gone([&] { ++num_gone; });
  exchange->begin(200, "text/plain");
  exchange->write("abc");
  exchange->when_sent([&] { ++num_sent; });
  run_loop();
  core_->lost();
  core_->lost();
  EXPECT_EQ(num_gone, 1);
  EXPECT_EQ(num_sent, 1);  // nothing is queued any more
  EXPECT_TRUE(exchange->gone());
  EXPECT_EQ(exchange->num_queued_bytes(), 0U);
  exchange->write("into the void");
  EXPECT_EQ(exchange->num_queued_bytes(), 0U);
  exchange->when_gone([&] { ++num_gone; });
  run_loop();
  EXPECT_EQ(num_gone, 2);  // at once

  exchange = make();
  exchange->when_gone([&] { ++num_gone; });
  exchange->respond(200, "", "");
  run_loop();
  core_->lost();
  EXPECT_EQ(num_gone, 2);
}

TEST_F(HttpExchangeCore, WorkIsInOrderAndOutlivesTheClient) {
  const auto exchange = make();
  std::string order;
  exchange->post([&] { order += "a"; });
  exchange->post([&] {
    order += "b";
    throw std::runtime_error("caught and logged");
  });
  exchange->post([&] { order += "c"; });
  core_->lost();
  exchange->post([&] { order += "d"; });
  EXPECT_EQ(order, "");
  run_loop();
  EXPECT_EQ(order, "abcd");
}

// Handlers hold their exchange in what they leave with it.
TEST_F(HttpExchangeCore, NothingHoldsItselfForEver) {
  std::weak_ptr<ExchangeCore> weak;
  for (const int how : {0, 1, 2}) {
    auto exchange = make();
    weak = core_;
    exchange->when_gone([exchange] {});
    run_loop();
    if (how == 0) exchange->respond(200, "", "");
    if (how == 1) core_->lost();
    if (how == 2) {
      core_->lost();
      ended_ = true;
      exchange->post([exchange] {});
    }
    exchange.reset();
    run_loop();
    core_.reset();
    EXPECT_TRUE(weak.expired()) << how;
  }
}

TEST_F(HttpExchangeCore, AnyThreadMayWrite) {
  const auto exchange = make();
  exchange->begin(200, "text/plain");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) exchange->write("1234567");
    });
  }
  std::string all;
  while (all.size() < 4 * 1000 * 12) all += take();
  for (std::thread& thread : threads) thread.join();
  std::string expected;
  for (int i = 0; i < 4000; ++i) expected += "7\r\n1234567\r\n";
  EXPECT_EQ(all, expected);
  EXPECT_EQ(exchange->num_queued_bytes(), 0U);
}

}  // namespace
}  // namespace foretoken::http
