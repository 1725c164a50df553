#include "engine/measure/cache_file.h"

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/files/new_file.h"
#include "base/log.h"

namespace foretoken {
namespace {

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

std::string hex_of(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = text.size(); i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

}  // namespace

std::string text_hash(const std::string& text) { return hex_of(hash_of(text)); }

std::string cache_path(const std::string& folder, const std::string& key) {
  if (folder.empty()) return {};
  return (std::filesystem::path(folder) / (text_hash(key) + ".json")).string();
}

Status write_cache_file(const std::string& path, const std::string& text) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return invalid_argument(folder + ": " + error.message());
  const auto bytes = static_cast<int64_t>(text.size());
  FT_ASSIGN_OR_RETURN(const std::unique_ptr<NewFile> file, NewFile::create(path, bytes, true));
  FT_RETURN_IF_ERROR(file->append(text.data(), bytes));
  return file->commit();
}

void tell_kept(const std::string& path, const Status& written, const char* what, const char* does) {
  if (written.ok()) {
    FT_LOG(info, "{}: kept in {}", what, path);
  } else {
    FT_LOG(warn, "{}: not kept, so that the next start {} again: {}", what, does,
           written.message());
  }
}

void tell_passed_over(const Status& why, const char* what, const char* does) {
  FT_LOG(warn, "{}: {}; the file is passed over, and this run {} again and replaces it", what,
         why.message(), does);
}

}  // namespace foretoken
