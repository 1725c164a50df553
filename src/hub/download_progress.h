#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include "hub/hub_options.h"

namespace foretoken {

// Passes progress of several threads on to one callback: never two calls at once, and at most
// every 50 ms, except for a file's first and last byte. Thread-safe.
class DownloadProgress {
 public:
  explicit DownloadProgress(const HubOptions& options) : callback_(options.progress) {}

  void report(const std::string& file, int64_t done, int64_t total);

 private:
  std::function<void(const std::string&, int64_t, int64_t)> callback_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace foretoken
