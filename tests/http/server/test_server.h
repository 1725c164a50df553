#pragma once
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/server/http_client.h"
#include "http/server/server.h"
#include "support/gate.h"

namespace foretoken::http {

// Exchanges that a test answers by hand.
class HeldExchanges {
 public:
  void add(std::shared_ptr<Exchange> exchange) {
    const std::lock_guard lock(mutex_);
    held_.push_back(std::move(exchange));
    added_.notify_all();
  }
  // The oldest one; null where none comes.
  std::shared_ptr<Exchange> take() {
    std::unique_lock lock(mutex_);
    if (!added_.wait_for(lock, test::kPatience, [&] { return !held_.empty(); })) return {};
    auto exchange = std::move(held_.front());
    held_.pop_front();
    return exchange;
  }

 private:
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::shared_ptr<Exchange>> held_;
};

using test::eventually;
using test::Gate;

// GET /hello, POST /echo, GET /items/{id}, GET and POST /held (answered by the test), GET /open
// (without a key), GET /throws, GET /dropped, POST /small (bodies of at most 16 bytes).
class TestServer {
 public:
  explicit TestServer(ServerConfig config = {}) {
    if (config.uds.empty() && config.host.empty()) config.host = "127.0.0.1";
    config.port = 0;
    config.timeouts = patient(config.timeouts);
    auto started = Server::start(std::move(config), routes());
    EXPECT_TRUE(started.ok()) << started.status().message();
    if (started.ok()) server_ = std::move(started).value();
  }

  Server* operator->() { return server_.get(); }
  HttpClient connect() { return HttpClient::tcp(server_->port()); }
  Answer ask(const std::string& bytes) { return connect().ask(bytes); }
  HeldExchanges& held() { return *held_; }
  void destroy() { server_.reset(); }

 private:
  // Limits that a test does not set itself never strike.
  static Timeouts patient(Timeouts timeouts) {
    const Timeouts usual;
    for (const auto limit :
         {&Timeouts::connect, &Timeouts::header, &Timeouts::body, &Timeouts::keep_alive,
          &Timeouts::write, &Timeouts::drain, &Timeouts::linger, &Timeouts::linger_unread}) {
      if (timeouts.*limit == usual.*limit) timeouts.*limit = std::chrono::minutes(10);
    }
    return timeouts;
  }
  std::vector<Route> routes() {
    const auto text = [](const std::shared_ptr<Exchange>& exchange, std::string body) {
      exchange->respond(200, "text/plain", std::move(body));
    };
    const auto hold = [held = held_](std::shared_ptr<Exchange> exchange) {
      held->add(std::move(exchange));
    };
    return {
        {"GET", "/hello", [text](auto exchange) { text(exchange, "hello"); }},
        {"POST", "/echo", [text](auto exchange) { text(exchange, exchange->request().body); }},
        {"POST", "/small", [text](auto exchange) { text(exchange, exchange->request().body); },
         true, 16},
        {"GET", "/items/{id}",
         [text](auto exchange) { text(exchange, exchange->request().path_values.at(0)); }},
        {"GET", "/open", [text](auto exchange) { text(exchange, "open"); }, false},
        {"GET", "/throws", [](auto) { throw std::runtime_error("a fault of the handler"); }},
        {"GET", "/dropped", [](auto) {}},
        {"GET", "/elsewhere", [](auto) {}, true, 0, "use /hello"},
        {"GET", "/held", hold},
        {"POST", "/held", hold},
    };
  }

  std::shared_ptr<HeldExchanges> held_ = std::make_shared<HeldExchanges>();
  std::unique_ptr<Server> server_;
};

}  // namespace foretoken::http
