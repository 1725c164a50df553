#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/files/text_file.h"

namespace foretoken {
namespace {

// What stands in the place of a large file; empty where it is the file.
std::string instead_of(int descriptor) {
  char front[64] = {};
  const int64_t got = read_at(descriptor, 0, sizeof front, front);
  return got <= 0 ? "" : what_was_fetched({front, static_cast<size_t>(got)});
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path, int64_t least_bytes,
                                                     const std::string& too_short) {
  std::unique_ptr<MappedFile> file(new MappedFile());
  file->descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->descriptor_ < 0) {
    return not_found("cannot open " + path + " (" + std::strerror(errno) +
                     "); check the path and the permissions");
  }
  struct stat info = {};
  const bool known = fstat(file->descriptor_, &info) == 0 && S_ISREG(info.st_mode);
  if (!known || info.st_size < least_bytes) return invalid_argument(path + ": " + too_short);
  if (const std::string instead = instead_of(file->descriptor_); !instead.empty()) {
    return invalid_argument(path + ": " + instead);
  }
  file->size_ = static_cast<size_t>(info.st_size);
  void* memory = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, file->descriptor_, 0);
  if (memory == MAP_FAILED) {
    return resource_exhausted("cannot map " + path + " (" + std::strerror(errno) +
                              "); raise the limit on virtual memory");
  }
  file->memory_ = static_cast<const std::byte*>(memory);
  return file;
}

MappedFile::~MappedFile() {
  if (memory_ != nullptr) munmap(const_cast<std::byte*>(memory_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

int64_t read_at(int descriptor, int64_t first, int64_t count, void* to) {
  int64_t done = 0;
  while (done < count) {
    const ssize_t got = pread(descriptor, static_cast<std::byte*>(to) + done,
                              static_cast<size_t>(count - done), first + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace foretoken
