#include "group/activity.h"

#include <algorithm>

namespace foretoken::group {

void Activity::note(std::string_view what) {
  const std::lock_guard lock(mutex_);
  size_ = std::min(what.size(), kMaxChars);
  std::copy_n(what.begin(), size_, text_.begin());
}

std::string Activity::last() const {
  const std::lock_guard lock(mutex_);
  return {text_.data(), size_};
}

}  // namespace foretoken::group
