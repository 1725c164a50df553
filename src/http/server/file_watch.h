#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace foretoken::http {

// Whether files have changed on disk, seen by looking at them: renewed certificates are written
// anew, renamed into place or linked to elsewhere. One thread.
class FileWatch {
 public:
  // Empty paths are left out. As the files are now is how they are known.
  explicit FileWatch(std::vector<std::string> paths);

  // True once after a change, at the first look at which the files are as at the look before: those
  // that belong together have all been written then.
  bool changed();

 private:
  // Of a file: when and how it was last written; zeros where there is none.
  struct State {
    uint64_t file = 0;
    int64_t seconds = 0;
    int64_t nanoseconds = 0;
    int64_t num_bytes = 0;
    bool operator==(const State&) const = default;
  };
  std::vector<State> look() const;

  const std::vector<std::string> paths_;
  std::vector<State> known_;
  std::vector<State> last_;
};

}  // namespace foretoken::http
