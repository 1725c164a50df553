#pragma once
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace foretoken::group {

// A rank that runs as a child of this process.
struct ChildRank {
  int rank = 0;
  std::string master_host;
  int master_port = 0;
  int first_device = 0;  // GPU of the host's first rank
};

// Starts this program again, with the same arguments, once for each rank, and watches over the
// children. They are killed when this process ends, however it ends. stdin of children is empty,
// stdout is closed to them (it belongs to rank 0), stderr is shared.
class ChildRanks {
 public:
  // Called on a thread of its own when a child ends with an exit code other than 0 or by a signal:
  // what happened, and to which rank.
  using Listener = std::function<void(const Status&)>;

  static Result<std::unique_ptr<ChildRanks>> start(const std::vector<ChildRank>& children,
                                                   Listener listener);
  // Ends all and waits for them: SIGTERM, and SIGKILL for those that live on 1 s later.
  virtual ~ChildRanks() = default;
  virtual std::vector<pid_t> pids() const = 0;
};

}  // namespace foretoken::group
