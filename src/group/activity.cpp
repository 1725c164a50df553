#include "group/activity.h"

#include <algorithm>
#include <charconv>

namespace foretoken::group {

namespace {

// Of "the plan of step 12".
std::optional<uint64_t> step_in(std::string_view what) {
  constexpr std::string_view kBefore = " step ";
  const std::size_t at = what.rfind(kBefore);
  if (at == std::string_view::npos) return std::nullopt;
  uint64_t step = 0;
  const char* begin = what.data() + at + kBefore.size();
  const auto [end, error] = std::from_chars(begin, what.data() + what.size(), step);
  return error == std::errc() ? std::optional(step) : std::nullopt;
}

}  // namespace

void Activity::note(std::string_view what) {
  const std::optional<uint64_t> step = step_in(what);
  const std::lock_guard lock(mutex_);
  if (step) step_ = step;
  size_ = std::min(what.size(), kMaxChars);
  std::copy_n(what.begin(), size_, text_.begin());
}

std::string Activity::last() const {
  const std::lock_guard lock(mutex_);
  std::string text(text_.data(), size_);
  if (step_ && !step_in(text)) text += " (plans up to step " + std::to_string(*step_) + ")";
  return text;
}

}  // namespace foretoken::group
