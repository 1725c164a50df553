#pragma once
#include <functional>
#include <string>

#include "base/result.h"

namespace foretoken {

// A lock that other processes see: flock on a file, as huggingface_hub takes it. Held until
// destroyed; the file stays.
class FileLock {
 public:
  // Waits for the lock while `cancelled` is false; then Aborted. Makes the file's folder.
  static Result<FileLock> take(const std::string& path, const std::function<bool()>& cancelled);

  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace foretoken
