#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace foretoken::group {

// What this rank's links did last, for the errors of others: "all_reduce (plans up to step 12)",
// where some call has told of a step: "the plan of step 12". Any thread; noting allocates nothing.
class Activity {
 public:
  static constexpr std::size_t kMaxChars = 80;  // the rest is cut off

  void note(std::string_view what);
  std::string last() const;

 private:
  mutable std::mutex mutex_;
  std::array<char, kMaxChars> text_{};
  std::size_t size_ = 0;
  std::optional<uint64_t> step_;  // the last one that was told of
};

}  // namespace foretoken::group
