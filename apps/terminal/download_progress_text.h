#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace foretoken {

// Sums the progress of files that are fetched. One thread at a time.
class DownloadProgressText {
 public:
  void note(const std::string& file, int64_t done, int64_t total);

  // "fetching org/name: 3 of 7 files, 120 of 400 MiB (30 %)".
  std::string text(const std::string& model) const;

 private:
  struct File {
    int64_t done = 0;
    int64_t total = 0;
  };
  std::map<std::string, File> files_;
};

}  // namespace foretoken
