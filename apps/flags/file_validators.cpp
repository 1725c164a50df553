#include "apps/flags/file_validators.h"

#include <filesystem>

namespace foretoken {

CLI::Validator file_in_a_folder() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        const std::filesystem::path path(text);
        std::error_code error;
        if (std::filesystem::is_directory(path, error)) {
          return "'" + text + "' is a folder; name a file";
        }
        const std::filesystem::path folder = path.parent_path();
        if (folder.empty() || std::filesystem::is_directory(folder, error)) return {};
        return "'" + text + "' cannot be written; name a file in a folder that exists";
      },
      "");
}

}  // namespace foretoken
