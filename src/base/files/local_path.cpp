#include "base/files/local_path.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace foretoken {

std::string local_path(const std::string& given) {
  constexpr std::string_view kScheme = "file://";
  if (given.starts_with(kScheme) && given.find('/', kScheme.size()) == kScheme.size()) {
    return given.substr(kScheme.size());
  }
  const char* home = std::getenv("HOME");
  const bool stands = home != nullptr && *home != '\0' && (given == "~" || given.starts_with("~/"));
  std::error_code ignored;
  if (!stands || std::filesystem::exists(given, ignored)) return given;
  return home + given.substr(1);
}

}  // namespace foretoken
