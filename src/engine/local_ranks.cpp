#include "engine/local_ranks.h"

#include <utility>

#include "base/log.h"
#include "base/thread_role.h"
#include "engine/rank_engine.h"

namespace foretoken {
namespace {

EngineConfig config_of_rank(const EngineConfig& config, int rank) {
  EngineConfig own = config;
  own.device_ordinal += rank;
  own.on_load_progress = nullptr;
  own.on_download_progress = nullptr;
  own.profile.clear();
  return own;
}

}  // namespace

void LocalRanks::start(const EngineConfig& config, std::vector<RankLinks> links) {
  make_logger();
  for (size_t i = 0; i < links.size(); ++i) {
    threads_.emplace_back([own = config_of_rank(config, static_cast<int>(i) + 1),
                           own_links = std::move(links[i])]() mutable {
      set_thread_role(ThreadRole::kEngine, "ft-rank");
      const Status status = run_rank(own, TestHooks{}, std::move(own_links));
      if (!status.ok()) FT_LOG(debug, "a rank ended: {}", status.message());
    });
  }
}

LocalRanks::~LocalRanks() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace foretoken
