#pragma once
#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace foretoken::group {

// What this rank's links did last, for the errors of others: "all_reduce of step 12". Any thread;
// noting allocates nothing.
class Activity {
 public:
  static constexpr std::size_t kMaxChars = 80;  // the rest is cut off

  void note(std::string_view what);
  std::string last() const;

 private:
  mutable std::mutex mutex_;
  std::array<char, kMaxChars> text_{};
  std::size_t size_ = 0;
};

}  // namespace foretoken::group
