#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/log.h"

namespace foretoken {

Result<FileLock> FileLock::take(const std::string& path, const std::function<bool()>& cancelled) {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) {
    return invalid_argument("cannot write " + path + ": " + std::strerror(errno) +
                            "; check the permissions or choose another folder with "
                            "--download-dir");
  }
  FileLock lock(descriptor);
  for (int round = 0; flock(descriptor, LOCK_EX | LOCK_NB) != 0; ++round) {
    if (errno == EINTR) continue;
    // A file system without locks: a download writes the same bytes to the same places anyway.
    if (errno != EWOULDBLOCK) break;
    if (cancelled()) return aborted("the download was interrupted");
    if (round == 20) FT_LOG(info, "waiting for another process that holds {}", path);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace foretoken
