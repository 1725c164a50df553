#include "http/server/file_watch.h"

#include <sys/stat.h>

#include <utility>

namespace foretoken::http {

FileWatch::FileWatch(std::vector<std::string> paths)
    : paths_(std::move(paths)), known_(look()), last_(known_) {}

std::vector<FileWatch::State> FileWatch::look() const {
  std::vector<State> states;
  for (const std::string& path : paths_) {
    struct stat info = {};
    if (path.empty() || ::stat(path.c_str(), &info) != 0) info = {};
    states.push_back({static_cast<uint64_t>(info.st_ino), info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                      info.st_size});
  }
  return states;
}

bool FileWatch::changed() {
  std::vector<State> now = look();
  const bool rests = now == std::exchange(last_, now);
  if (!rests || now == known_) return false;
  known_ = std::move(now);
  return true;
}

}  // namespace foretoken::http
