#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "device/communicator.h"
#include "device/device.h"
#include "group/rank_link.h"
#include "group/rank_place.h"
#include "group/wake_bell.h"
#include "model/weights/sharding.h"
#include "model/weights/stages.h"

namespace foretoken {

// The links of a rank of an engine, of all lanes.
struct RankLinks {
  group::LaneLinks own;     // to the ranks of its engine; none where it is alone
  group::LaneLinks beside;  // to the same rank of the engines that have experts together with it
  std::shared_ptr<group::WakeBell> bell = nullptr;  // of rank 0 of these engines
};
// Those of all ranks of an engine that are threads of this process.
std::vector<RankLinks> local_rank_links(int num_ranks);
// The same of several engines that have experts together, by engine.
std::vector<std::vector<RankLinks>> local_links_of_engines(int num_engines, int num_ranks);

// How an engine's rank meets the others. Its ranks are `layout.pp` groups of `layout.tp`, the first
// of which has the last stage, so that rank 0 schedules, samples and drafts; the others have the
// stages before it in their order. Start-up thread, unless said otherwise.
class Ranks {
 public:
  // One rank, which meets nobody.
  Ranks() = default;
  // Links of all lanes to all ranks, or none for one rank; without a layout all share each layer.
  explicit Ranks(group::LaneLinks links);
  // deals_experts: ranks that share layers have whole experts of mixtures. num_context: so many of
  // them, side by side, share the positions of sequences.
  Ranks(RankLinks links, const group::RankLayout& layout, bool deals_experts = false,
        int num_context = 1);
  ~Ranks();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_alone() const { return size_ == 1; }  // in its engine
  bool is_first() const { return rank_ == 0; }
  // Engines that have experts together: their steps are alike (group/shape_agreement.h).
  int num_engines() const { return beside_[0] != nullptr ? beside_[0]->size() : 1; }

  // Makes the communicators, of the second lane too with options.in_lanes; before the queue that
  // uses them.
  Status open(Device& device, const CommunicatorOptions& options);
  // Of the target: inside of its layers, in the first or the second lane of rows, and its layers
  // among the ranks.
  Sharding sharding(int lane = 0) const;
  Stages stages() const {
    return {(place_.pp + layout_.pp - 1) % layout_.pp, layout_.pp, handle_of(ring_)};
  }
  // With the ranks that share this one's layers; null: there are none.
  const void* comm() const { return handle_of(lanes_[0].own); }
  // The ranks before it have the last stage.
  int num_last_stage() const { return layout_.tp; }

  // Communicator::exchange_ns of all. Any thread, once the ranks are open.
  int64_t exchange_ns() const {
    int64_t sum = 0;
    for (const Communicator* each : communicators()) {
      if (each != nullptr) sum += each->exchange_ns();
    }
    return sum;
  }

  // The least of the ranks' values, on all of them, those of engines beside this one included, as
  // in all that follows; `what` is named in errors.
  Result<int64_t> least(int64_t value, std::string_view what);
  // The most of them.
  Result<int64_t> most(int64_t value, std::string_view what);
  // What rank 0 (of the first engine) says.
  Result<int64_t> of_first(int64_t value, std::string_view what);
  Result<std::string> of_first(const std::string& text, std::string_view what);

  group::RankLink& plans() const { return link_of(links_, group::Lane::kPlans); }
  // To rank 0 of the engines beside this one, for agreement.
  group::RankLink& shapes() const { return link_of(beside_, group::Lane::kPlans); }
  const std::shared_ptr<group::WakeBell>& bell() const { return bell_; }
  // With the ranks of the engine; not for one that is alone.
  group::RankLink& control() const { return link_of(links_, group::Lane::kControl); }
  // Ends all ranks of the group, and of the engines beside it, with `why`. Any thread.
  void abort(const Status& why);
  // Whether they have ended. Any thread.
  bool have_ended() const { return watched_->has_ended.load(); }

 private:
  static const void* handle_of(const std::unique_ptr<Communicator>& communicator) {
    return communicator != nullptr ? communicator->handle() : nullptr;
  }
  // What the rows of a lane meet other ranks with.
  struct RowLane {
    std::unique_ptr<Communicator> own;      // the ranks that share this one's layers
    std::unique_ptr<Communicator> experts;  // the engines beside this one
  };
  // All of them; null where there is none.
  std::array<Communicator*, 5> communicators() const {
    return {lanes_[0].own.get(), lanes_[0].experts.get(), lanes_[1].own.get(),
            lanes_[1].experts.get(), ring_.get()};
  }
  Status open_lane(Device& device, group::Lane lane, const CommunicatorOptions& options,
                   RowLane* opened);
  Result<std::unique_ptr<Communicator>> meet(Device& device, group::Lane lane,
                                             const std::vector<int>& ranks,
                                             const CommunicatorOptions& options);
  void watch(const group::LaneLinks& links);
  static Result<int64_t> least_of(const group::LaneLinks& links, int64_t value,
                                  std::string_view what);
  Status give_first(std::span<std::byte> bytes, std::string_view what);

  group::LaneLinks links_;
  group::LaneLinks beside_;
  std::shared_ptr<group::WakeBell> bell_;
  int rank_ = 0;
  int size_ = 1;
  group::RankLayout layout_;
  group::RankPlace place_;
  bool deals_experts_ = false;
  int num_context_ = 1;
  std::array<RowLane, 2> lanes_;        // without lanes the first alone
  std::unique_ptr<Communicator> ring_;  // of the stages
  // What ends with the group. A device that waits for a peer looks at nothing but its communicator.
  struct Watched {
    std::mutex mutex;
    std::condition_variable idle;
    std::vector<Communicator*> communicators;
    int num_ending = 0;  // listeners that use them now, without the mutex
    std::atomic<bool> has_ended{false};

    void end();
  };
  const std::shared_ptr<Watched> watched_ = std::make_shared<Watched>();
};

}  // namespace foretoken
