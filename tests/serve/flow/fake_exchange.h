#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/message/exchange.h"

namespace foretoken::test {

// An exchange without a network: what is posted runs on a thread of its own, and a test reads what
// was answered. A reader may be slow (`stall`) or go (`leave`).
class FakeExchange final : public http::Exchange {
 public:
  static std::shared_ptr<FakeExchange> make(std::string body, std::string path = "/");
  ~FakeExchange() override;

  const http::Request& request() const override { return request_; }
  void respond(int status, const std::string& content_type, std::string body,
               http::Headers headers) override;
  void begin(int status, const std::string& content_type, http::Headers headers) override;
  void write(std::string bytes) override;
  void end() override;
  size_t num_queued_bytes() const override;
  void post(std::function<void()> work) override;
  void when_sent(std::function<void()> work) override;
  void when_gone(std::function<void()> work) override;
  bool gone() const override;

  // From now on nothing that is written is sent, until `resume`.
  void stall();
  void resume();
  // The client goes.
  void leave();

  // False when the answer has not ended within two minutes.
  bool wait();
  // False when less than so many bytes were written within two minutes.
  bool wait_for_bytes(size_t count);
  int status() const;
  std::string body() const;
  std::string header(const std::string& name) const;
  size_t num_writes() const;

  http::Request request_;

 private:
  // What the thread needs, also when the last owner of the exchange is its own work.
  struct Loop {
    std::mutex mutex;
    std::condition_variable news;
    std::vector<std::function<void()>> work;
    bool stopping = false;
    void run();
    void post(std::function<void()> piece);
  };
  FakeExchange();

  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::function<void()>> on_sent_;
  std::vector<std::function<void()>> on_gone_;
  bool stalled_ = false;
  bool gone_ = false;
  bool ended_ = false;
  int status_ = 0;
  http::Headers headers_;
  std::string body_;
  size_t num_unsent_ = 0;
  size_t num_writes_ = 0;
  std::shared_ptr<Loop> loop_ = std::make_shared<Loop>();
  std::thread thread_;
};

}  // namespace foretoken::test
