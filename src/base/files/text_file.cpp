#include "base/files/text_file.h"

#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/text/ascii_text.h"

namespace foretoken {

std::string what_was_fetched(std::string_view front) {
  constexpr std::string_view kPointer = "version https://git-lfs.github.com/spec/v1";
  if (front.starts_with(kPointer)) {
    return "it is a pointer of Git LFS, not the file; run git lfs pull in its folder, or download "
           "it";
  }
  const std::string begin = lower_case(std::string(front.substr(0, 15)));
  if (begin == "<!doctype html>" || begin.starts_with("<html")) {
    return "it is a web page, not the file, as hosts send to those who are not logged in or may "
           "not have it; download it with an account that may";
  }
  return "";
}

Result<std::string> plain_text(std::string content, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF")) {
    return invalid_argument(name +
                            ": it is UTF-16 text, as PowerShell's > writes it; write it as UTF-8");
  }
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  return content;
}

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
  if (const std::string instead = what_was_fetched(content); !instead.empty()) {
    return invalid_argument(file.string() + ": " + instead);
  }
  return plain_text(std::move(content), file.string());
}

}  // namespace foretoken
