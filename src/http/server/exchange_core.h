#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/message/answer_frame.h"
#include "http/message/exchange.h"

namespace foretoken::http {

// What exchanges need of their server. One for each event loop; lives as long as any exchange.
struct ExchangeHost {
  // Runs work on the loop's thread, in order; any thread, never waits. False after the loop's end:
  // the work is dropped.
  std::function<bool(std::function<void()>)> post;
  std::function<bool()> draining;
  std::function<std::string(int status, const std::string& message, const std::string& path)>
      error_body;
};

// The queue between the threads that answer a request and the connection that sends: framed bytes
// and work for the loop's thread. The connection owns it together with the handles of the handler.
class ExchangeCore : public std::enable_shared_from_this<ExchangeCore> {
 public:
  ExchangeCore(Request request, AnswerFrame frame, std::shared_ptr<const ExchangeHost> host);

  // What handlers hold; when the last one goes without an end, the answer is 500, or broken off.
  static std::shared_ptr<Exchange> make_handle(const std::shared_ptr<ExchangeCore>& core);

  // Any thread; as in Exchange.
  const Request& request() const { return request_; }
  void respond(int status, const std::string& content_type, std::string body,
               const Headers& headers);
  // An error in the server's format.
  void respond_error(int status, const std::string& message, const Headers& headers = {});
  void begin(int status, const std::string& content_type, const Headers& headers);
  void write(std::string bytes);
  void end();
  size_t num_queued_bytes() const { return num_queued_.load(std::memory_order_relaxed); }
  void post(std::function<void()> work);
  void when_sent(std::function<void()> work);
  void when_gone(std::function<void()> work);
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  void dropped();

  // The rest is for the loop's thread.

  // Called after each burst of calls of the handler, until `detach`.
  void attach(std::function<void()> on_output) { on_output_ = std::move(on_output); }
  void detach() { on_output_ = nullptr; }

  struct Output {
    std::vector<std::string> pieces;
    bool last = false;    // nothing follows
    bool broken = false;  // the answer is not whole: the connection must show it
  };
  Output take();
  // Adds what a client passes over, so that the system of one that has gone answers with a reset:
  // "100 Continue" before the answer, a comment in a stream of events, else nothing.
  void add_passed_over();
  // Of what was taken, so many bytes are with the system.
  void sent(size_t num_bytes);
  // The client has gone.
  void lost();
  bool ended() const;
  int status() const;       // of the answer; 0 before it has begun
  bool keep_alive() const;  // as the head of the answer says

 private:
  enum class State { kWaiting, kBegun, kEnded };
  using Work = std::function<void()>;

  // With the lock held.
  void append(std::string bytes);
  void start(int status, const std::string& content_type, const Headers& headers,
             std::optional<size_t> length);
  bool needs_drain();
  // Without.
  void post_drain();
  void drain();
  static void run(const Work& work);
  static void run_all(std::vector<Work> works);

  const Request request_;
  const AnswerFrame frame_;
  const std::shared_ptr<const ExchangeHost> host_;
  std::atomic<size_t> num_queued_{0};
  std::atomic<bool> gone_{false};

  mutable std::mutex mutex_;
  State state_ = State::kWaiting;
  bool broken_ = false;
  int status_ = 0;
  bool has_events_ = false;  // the answer is a stream of them
  bool keep_alive_ = false;
  bool drain_posted_ = false;
  std::vector<std::string> pieces_;
  std::vector<Work> work_;

  // Of the loop's thread.
  std::function<void()> on_output_;
  std::vector<Work> sent_work_;
  std::vector<Work> gone_work_;
};

}  // namespace foretoken::http
