#include "hub/blob_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = size_t{1} << 20;

}  // namespace

Status disk_full(const std::string& what, int64_t needed, int64_t free, const std::string& folder) {
  return resource_exhausted(what + " needs " + std::to_string(needed) + " bytes, but only " +
                            std::to_string(free) + " are free in " + folder +
                            "; make room or choose another folder with --download-dir; running "
                            "again resumes");
}

int64_t free_disk_bytes(const std::string& folder) {
  struct statvfs disk = {};
  for (fs::path path = fs::absolute(folder);; path = path.parent_path()) {
    if (statvfs(path.c_str(), &disk) == 0) {
      return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
    }
    if (path == path.parent_path()) return INT64_MAX;
  }
}

BlobWriter::BlobWriter(fs::path path, HubFile file, int descriptor)
    : path_(std::move(path)),
      file_(std::move(file)),
      descriptor_(descriptor),
      digest_(digest_kind(file_.etag), file_.size) {}

BlobWriter::BlobWriter(BlobWriter&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      num_bytes_(other.num_bytes_),
      digest_(std::move(other.digest_)) {}

BlobWriter::~BlobWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<BlobWriter> BlobWriter::open(const fs::path& path, const HubFile& file) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0) {
    return invalid_argument("cannot write " + path.string() + " (" + std::strerror(errno) +
                            "); check the permissions or choose another folder with "
                            "--download-dir");
  }
  BlobWriter writer(path, file, descriptor);
  FT_RETURN_IF_ERROR(writer.take_in());
  return writer;
}

Status BlobWriter::take_in() {
  struct stat info = {};
  if (fstat(descriptor_, &info) != 0) return write_error(errno);
  if (info.st_size > file_.size) return restart();
  std::vector<char> buffer(static_cast<size_t>(
      std::min<int64_t>(static_cast<int64_t>(kReadBytes), std::max<int64_t>(1, info.st_size))));
  while (num_bytes_ < info.st_size) {
    const ssize_t count = pread(descriptor_, buffer.data(), buffer.size(), num_bytes_);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return restart();
    digest_.update({buffer.data(), static_cast<size_t>(count)});
    num_bytes_ += count;
  }
  return {};
}

Status BlobWriter::restart() {
  if (ftruncate(descriptor_, 0) != 0) return write_error(errno);
  num_bytes_ = 0;
  digest_ = Digest(digest_kind(file_.etag), file_.size);
  return {};
}

Status BlobWriter::append(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > file_.size - num_bytes_) {
    return invalid_argument("the server sends more of " + file_.name + " than the " +
                            std::to_string(file_.size) + " bytes that it announced; it is refused");
  }
  digest_.update(bytes);
  while (!bytes.empty()) {
    const ssize_t count = pwrite(descriptor_, bytes.data(), bytes.size(), num_bytes_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return write_error(errno);
    num_bytes_ += count;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

Status BlobWriter::write_error(int code) const {
  const std::string folder = path_.parent_path().string();
  const std::string what = "writing " + file_.name + " failed (" + std::strerror(code) + "): ";
  if (code == ENOSPC || code == EDQUOT || code == EFBIG) {
    return resource_exhausted(what + "it still needs " + std::to_string(file_.size - num_bytes_) +
                              " bytes, and " + std::to_string(free_disk_bytes(folder)) +
                              " are free in " + folder +
                              "; make room, raise the quota or the limit of file sizes, or choose "
                              "another folder with --download-dir; running again resumes");
  }
  return internal_error(what + "it lies in " + folder + "; check the disk; running again resumes");
}

Result<bool> BlobWriter::publish(const fs::path& blob) {
  std::error_code error;
  const std::string digest = digest_.finish();
  if (!digest.empty() && digest != file_.etag) {
    fs::remove(path_, error);
    return false;
  }
  if (fdatasync(descriptor_) != 0 && errno != EINVAL) return write_error(errno);
  fs::rename(path_, blob, error);
  // Another process that did not see the lock was faster with the same bytes.
  if (error && !fs::exists(blob)) return write_error(error.value());
  return true;
}

}  // namespace foretoken
