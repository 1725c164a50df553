#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hub/digest.h"
#include "hub/hub_api.h"

namespace foretoken {

// The unfinished file of a blob: what is there is kept, bytes are added in order, and at the end it
// becomes the blob if its digest is the ETag. Bytes go to their own places, so that even two
// processes that both believe to hold the lock write the same file. One thread.
class BlobWriter {
 public:
  // Opens or makes `path`, and takes in the bytes that are there. Bytes beyond the size are
  // dropped.
  static Result<BlobWriter> open(const std::filesystem::path& path, const HubFile& file);

  ~BlobWriter();
  BlobWriter(BlobWriter&& other) noexcept;
  BlobWriter& operator=(BlobWriter&&) = delete;

  int64_t num_bytes() const { return num_bytes_; }
  bool is_whole() const { return num_bytes_ == file_.size; }

  // Forgets all bytes.
  Status restart();
  // Adds bytes. More than the file's size is InvalidArgument; ResourceExhausted names the file, the
  // bytes still needed and the bytes free.
  Status append(std::string_view bytes);
  // Of a whole file: moves it to `blob` when its digest is right and returns true, otherwise
  // removes it and returns false.
  Result<bool> publish(const std::filesystem::path& blob);

 private:
  BlobWriter(std::filesystem::path path, HubFile file, int descriptor);
  Status take_in();
  Status write_error(int code) const;

  std::filesystem::path path_;
  HubFile file_;
  int descriptor_;
  int64_t num_bytes_ = 0;
  Digest digest_;
};

// "<what> needs N bytes, but only M are free in <folder>; ..." as ResourceExhausted.
Status disk_full(const std::string& what, int64_t needed, int64_t free, const std::string& folder);

// Free bytes for this user on the disk of a folder, or of the nearest folder above that exists.
int64_t free_disk_bytes(const std::string& folder);

}  // namespace foretoken
