#include "apps/terminal/file_text.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/files/local_path.h"
#include "base/files/text_file.h"

namespace foretoken {
namespace {

// A terminal ends its text; a device like /dev/zero never does.
Result<std::string> read_device(const std::string& path, std::istream& device) {
  constexpr std::streamsize kMaxBytes = 64 << 20;
  std::string text(static_cast<size_t>(kMaxBytes), '\0');
  device.read(text.data(), kMaxBytes);
  if (device.gcount() == kMaxBytes) {
    return invalid_argument("'" + path + "' is a device without an end; name a file");
  }
  text.resize(static_cast<size_t>(device.gcount()));
  return text;
}

Result<std::string> read_bytes(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return invalid_argument("'" + path + "' is a folder; name a file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read '" + path + "': " + std::strerror(errno));
  if (std::filesystem::is_character_file(path, error)) return read_device(path, file);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

Result<std::string> read_input_file(const std::string& path) {
  FT_ASSIGN_OR_RETURN(std::string bytes, read_bytes(local_path(path)));
  return plain_text(std::move(bytes), path == "-" ? "stdin" : path);
}

}  // namespace foretoken
