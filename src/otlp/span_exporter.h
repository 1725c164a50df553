#pragma once
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "otlp/trace_settings.h"
#include "otlp/trace_span.h"

namespace foretoken::net {
class Client;
}

namespace foretoken::otlp {

// Sends spans to a collector (OTLP over HTTP) from a thread of its own, several at once. What the
// collector does not take, after it was asked three times where it may change its mind, and what
// comes while the queue is full is dropped and counted; the log says when that begins and ends.
class SpanExporter {
 public:
  explicit SpanExporter(TraceSettings settings);
  // As stop().
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Any thread; never waits for the collector.
  void add(TraceSpan span);
  // Any thread.
  SpanCounts counts() const;
  // Sends what is left, for two seconds at most, and ends the thread. Spans that are added later
  // are dropped.
  void stop();

 private:
  struct Outcome {
    bool sent = false;
    bool may_change = false;  // asking again is of use
    std::string why;          // not sent
  };

  void run();
  std::vector<TraceSpan> wait_for_batch();
  bool export_batch(net::Client& client, const std::vector<TraceSpan>& batch);
  Outcome send(net::Client& client, const std::string& body);
  void watch(net::Client& client);
  bool wait_before_next(int attempt);
  void count(size_t num_spans, const Outcome& outcome);
  bool is_overdue() const;
  void drop_queue();

  const TraceSettings settings_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::vector<TraceSpan> queue_;
  SpanCounts counts_;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point last_moment_;  // of the sending, once stopping_
  bool is_away_ = false;                               // of the thread: nothing was taken last
  std::thread thread_;
};

}  // namespace foretoken::otlp
