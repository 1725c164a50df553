#include "apps/terminal/file_text.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

namespace foretoken {

Result<std::string> read_input_file(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return invalid_argument("'" + path + "' is a folder; name a file");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read '" + path + "': " + std::strerror(errno));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace foretoken
