#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace foretoken {

// A whole file, mapped for reading. A file that is cut short afterwards makes its memory fault, so
// large parts are read with read_at instead.
class MappedFile {
 public:
  // NotFound when the file cannot be opened, ResourceExhausted when it cannot be mapped;
  // InvalidArgument, the path and `too_short`, for anything but a regular file of `least_bytes` (at
  // least 1) or more.
  static Result<std::unique_ptr<MappedFile>> open(const std::string& path, int64_t least_bytes,
                                                  const std::string& too_short);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Open as long as this object.
  int descriptor() const { return descriptor_; }
  const std::byte* memory() const { return memory_; }
  size_t size() const { return size_; }

 private:
  MappedFile() = default;

  int descriptor_ = -1;
  const std::byte* memory_ = nullptr;
  size_t size_ = 0;
};

// Copies `count` bytes of a file from `first` on, however often the system must be asked. The bytes
// read, fewer where the file ends; -1 and errno for an error. Any thread.
int64_t read_at(int descriptor, int64_t first, int64_t count, void* to);

}  // namespace foretoken
