#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"

namespace foretoken::test {

// An empty folder under the system's temporary files that no other object or process has; removed
// with all that is in it when the object goes.
class ScratchFolder {
 public:
  ScratchFolder() : path_(std::filesystem::temp_directory_path() / "foretoken-test-XXXXXX") {
    FT_CHECK_MSG(mkdtemp(path_.data()) != nullptr, "no folder for temporary files");
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  // The path of a file or folder in it, which need not exist.
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }

 private:
  std::string path_;
};

}  // namespace foretoken::test
