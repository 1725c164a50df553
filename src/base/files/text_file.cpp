#include "base/files/text_file.h"

#include <fstream>
#include <iterator>
#include <system_error>

namespace foretoken {

Result<std::string> read_text_file(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return not_found(file.string() + " does not exist or is not a file");
  }
  std::ifstream stream(file, std::ios::binary);
  std::string content((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (!stream.good() && !stream.eof()) {
    return not_found(file.string() + " cannot be read; check its permissions");
  }
  return content;
}

}  // namespace foretoken
