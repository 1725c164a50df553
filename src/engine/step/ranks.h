#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/communicator.h"
#include "device/device.h"
#include "group/rank_link.h"
#include "group/rank_place.h"
#include "model/weights/sharding.h"
#include "model/weights/stages.h"

namespace foretoken {

// How an engine's rank meets the others. Its ranks are `layout.pp` groups of `layout.tp`, the first
// of which has the last stage, so that rank 0 schedules, samples and drafts; the others have the
// stages before it in their order. Start-up thread, unless said otherwise.
class Ranks {
 public:
  // One rank, which meets nobody.
  Ranks() = default;
  // Links of all lanes to all ranks, or none for one rank; without a layout all share each layer.
  explicit Ranks(group::LaneLinks links);
  // deals_experts: ranks that share layers have whole experts of mixtures.
  Ranks(group::LaneLinks links, const group::RankLayout& layout, bool deals_experts = false);
  ~Ranks();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_alone() const { return size_ == 1; }
  bool is_first() const { return rank_ == 0; }

  // Makes the communicators; before the queue that uses them.
  Status open(Device& device, const CommunicatorOptions& options);
  // Of the target: inside of its layers, and its layers among the ranks.
  Sharding sharding() const {
    return {place_.tp, layout_.tp, comm(),
            deals_experts_ ? ExpertRanks{place_.tp, layout_.tp} : ExpertRanks{}};
  }
  Stages stages() const {
    return {(place_.pp + layout_.pp - 1) % layout_.pp, layout_.pp, handle_of(ring_)};
  }
  // With the ranks that share this one's layers; null: there are none.
  const void* comm() const { return handle_of(communicator_); }
  // The ranks before it have the last stage.
  int num_last_stage() const { return layout_.tp; }

  // Communicator::exchange_ns of all. Any thread, once the ranks are open.
  int64_t exchange_ns() const {
    return (communicator_ != nullptr ? communicator_->exchange_ns() : 0) +
           (ring_ != nullptr ? ring_->exchange_ns() : 0);
  }

  // The least of the ranks' values, on all of them; `what` is named in errors.
  Result<int64_t> least(int64_t value, std::string_view what);
  // The most of them.
  Result<int64_t> most(int64_t value, std::string_view what);
  // What rank 0 says.
  Result<int64_t> of_first(int64_t value, std::string_view what);
  Result<std::string> of_first(const std::string& text, std::string_view what);

  group::RankLink& plans() const { return link_of(links_, group::Lane::kPlans); }
  // Ends all ranks of the group with `why`. Any thread.
  void abort(const Status& why);

 private:
  static const void* handle_of(const std::unique_ptr<Communicator>& communicator) {
    return communicator != nullptr ? communicator->handle() : nullptr;
  }
  Result<std::unique_ptr<Communicator>> meet(Device& device, group::Lane lane,
                                             const std::vector<int>& ranks,
                                             const CommunicatorOptions& options);
  group::RankLink& control() const { return link_of(links_, group::Lane::kControl); }

  group::LaneLinks links_;
  int rank_ = 0;
  int size_ = 1;
  group::RankLayout layout_;
  group::RankPlace place_;
  bool deals_experts_ = false;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Communicator> ring_;  // of the stages
  // What ends with the group. A device that waits for a peer looks at nothing but its communicator.
  struct Watched {
    std::mutex mutex;
    std::vector<Communicator*> communicators;
  };
  const std::shared_ptr<Watched> watched_ = std::make_shared<Watched>();
};

}  // namespace foretoken
