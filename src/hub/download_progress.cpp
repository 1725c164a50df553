#include "hub/download_progress.h"

namespace foretoken {

void DownloadProgress::report(const std::string& file, int64_t done, int64_t total) {
  if (!callback_) return;
  std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (done > 0 && done < total && now < next_) return;
  next_ = now + std::chrono::milliseconds(50);
  callback_(file, done, total);
}

}  // namespace foretoken
