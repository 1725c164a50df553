#include "base/background.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/thread_role.h"

namespace foretoken {
namespace {

constexpr int kNice = 15;

}  // namespace

void enter_background(const char* name) {
  set_thread_role(ThreadRole::kOther, name);
  // Linux keeps a nice value for each thread. Without it the thread runs like any other.
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  (void)setpriority(PRIO_PROCESS, thread, std::max(kNice, getpriority(PRIO_PROCESS, thread)));
}

}  // namespace foretoken
