#pragma once
#include <foretoken/config.h>

#include <thread>
#include <vector>

#include "engine/step/ranks.h"

namespace foretoken {

// The ranks above 0 of an engine whose ranks are threads of this process. Each makes its own part
// of the engine at the same time as rank 0, and runs rank 0's plans until they end.
class LocalRanks {
 public:
  LocalRanks() = default;
  // Waits for them: rank 0 has sent its last plan or ended the group.
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  // Once. `links`: of the ranks from 1 on. `config` is that of rank 0; on CUDA rank r takes the
  // r-th device from device_ordinal on. An error of a rank ends the group, and so comes to rank 0
  // from its own link. Throws where a thread does not start; those before it run then.
  void start(const EngineConfig& config, std::vector<RankLinks> links);

 private:
  std::vector<std::thread> threads_;
};

}  // namespace foretoken
