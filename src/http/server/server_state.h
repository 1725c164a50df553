#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "http/server/cors.h"
#include "http/server/router.h"
#include "http/server/server.h"

namespace foretoken::http {

inline constexpr const char* kTooManyConnections = "too many connections; try again later";

// What all threads of a server share. Counts may be changed by any thread.
class ServerState {
 public:
  ServerState(ServerConfig config, Router router);

  const ServerConfig config;
  const Router router;
  const CorsPolicy cors;
  std::atomic<bool> draining{false};
  std::atomic<bool> stopping{false};
  std::atomic<size_t> num_in_flight{0};

  // Busy: from the first byte of a request to the last one of its answer.
  void add_connection(int by);
  void add_busy(int by);
  size_t num_connections() const { return num_connections_.load(); }
  // Waits until no connection is busy or open; false at `end`.
  bool wait_idle(std::chrono::steady_clock::time_point end);
  bool wait_closed(std::chrono::steady_clock::time_point end);

 private:
  void count(std::atomic<size_t>& counter, int by);
  bool wait_zero(const std::atomic<size_t>& counter, std::chrono::steady_clock::time_point end);

  std::atomic<size_t> num_connections_{0};
  std::atomic<size_t> num_busy_{0};
  std::mutex mutex_;
  std::condition_variable zero_;
};

}  // namespace foretoken::http
