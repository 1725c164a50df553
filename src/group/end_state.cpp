#include "group/end_state.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"

namespace foretoken::group {

EndState::EndState() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  FT_CHECK(descriptor_ >= 0);
}

EndState::~EndState() { close(descriptor_); }

void EndState::end(const Status& why) {
  FT_CHECK(!why.ok());
  std::function<void(const Status&)> listener;
  {
    const std::lock_guard lock(mutex_);
    if (!why_.ok()) return;
    why_ = why;
    listener = std::move(listener_);
  }
  ended_.store(true, std::memory_order_release);
  FT_CHECK(eventfd_write(descriptor_, 1) == 0);
  if (listener) listener(why);
}

Status EndState::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void EndState::on_end(std::function<void(const Status&)> listener) {
  {
    const std::lock_guard lock(mutex_);
    if (why_.ok()) {
      listener_ = std::move(listener);
      return;
    }
  }
  listener(why());
}

}  // namespace foretoken::group
