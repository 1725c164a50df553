#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.h"

namespace foretoken {

// Where the bytes of a file inside of a zip archive lie.
struct ZipEntry {
  int64_t offset = 0;
  int64_t num_bytes = 0;  // as stored
  bool compressed = false;
};

// Whether a file begins like a zip archive.
bool is_zip(std::span<const std::byte> file);

// The entries of a zip archive (also zip64) by name, from its central directory, checked against
// the file's size and the local headers. InvalidArgument, which begins with `where`, for anything
// broken or in several parts.
Result<std::map<std::string, ZipEntry>> read_zip_entries(std::span<const std::byte> file,
                                                         const std::string& where);

}  // namespace foretoken
