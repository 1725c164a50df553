#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace foretoken {

// A file that comes into being whole or not at all: it is written beside its path as
// <path>.partial, which one process at a time may hold, and renamed by `commit`. Without one it is
// removed. Used by one thread.
class NewFile {
 public:
  // `bytes`: how large it will be about; ResourceExhausted when the disk has less room.
  // InvalidArgument when the path is a folder or no regular file, when a file is there and
  // `replaces` is false, when another process is writing it, or when it cannot be created.
  static Result<std::unique_ptr<NewFile>> create(const std::string& path, int64_t bytes,
                                                 bool replaces);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  // At the end. ResourceExhausted when the disk is full, Internal for other faults.
  Status append(const void* data, int64_t bytes);
  // Brings the file to the disk and to its path.
  Status commit();
  int64_t size() const { return size_; }

 private:
  explicit NewFile(std::string path) : path_(std::move(path)), partial_(path_ + ".partial") {}
  Status open_partial();
  Status failed() const;

  const std::string path_;
  const std::string partial_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

}  // namespace foretoken
