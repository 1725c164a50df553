#include "base/files/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace foretoken {

namespace fs = std::filesystem;

Result<std::unique_ptr<NewFile>> NewFile::create(const std::string& path, int64_t bytes,
                                                 bool replaces) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return invalid_argument("'" + path + "' is a folder; name a file");
  }
  if (!replaces && fs::exists(path, error)) {
    return invalid_argument("'" + path +
                            "' exists already; name another file, or replace it with --force");
  }
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    return invalid_argument("'" + path + "' is no regular file; name another");
  }
  const fs::path folder = fs::absolute(path, error).parent_path();
  const fs::space_info room = fs::space(folder, error);
  if (!error && room.available < static_cast<uintmax_t>(bytes)) {
    return resource_exhausted("the disk of '" + path + "' has " +
                              std::to_string(room.available >> 20) + " MiB left, but " +
                              std::to_string(bytes >> 20) + " are needed; make room");
  }
  std::unique_ptr<NewFile> file(new NewFile(path));
  FT_RETURN_IF_ERROR(file->open_partial());
  return file;
}

Status NewFile::open_partial() {
  const int descriptor = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    return invalid_argument("'" + partial_ + "' cannot be created (" + std::strerror(errno) +
                            "); name a file in a folder that exists and may be written");
  }
  // Between opening and locking, another process may have given the file its name or removed it.
  // Some file systems know no locks.
  struct stat ours{}, named{};
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  const bool held = locked && ::fstat(descriptor, &ours) == 0 &&
                    ::stat(partial_.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
                    ours.st_dev == named.st_dev;
  // What is no regular file (a link to a device) has no length.
  if (held && (::ftruncate(descriptor, 0) == 0 || errno == EINVAL)) {
    descriptor_ = descriptor;
    return {};
  }
  ::close(descriptor);
  return invalid_argument("'" + partial_ +
                          "' is being written by another process; wait for it, or name another "
                          "file");
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

Status NewFile::failed() const {
  const std::string what = "'" + partial_ + "' cannot be written (" + std::strerror(errno) + ")";
  if (errno == ENOSPC || errno == EDQUOT)
    return resource_exhausted(what + "; make room on its disk");
  return internal_error(what + "; check the disk");
}

Status NewFile::append(const void* data, int64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  for (int64_t left = bytes; left > 0;) {
    const ssize_t done = ::write(descriptor_, from, static_cast<size_t>(left));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return failed();
    from += done;
    left -= done;
  }
  size_ += bytes;
  return {};
}

Status NewFile::commit() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL) return failed();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) return failed();
  ::close(descriptor_);
  descriptor_ = -1;
  return {};
}

}  // namespace foretoken
