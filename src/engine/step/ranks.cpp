#include "engine/step/ranks.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "compat/compat.h"
#include "group/local_link.h"

namespace foretoken {
namespace {

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Status check_lane_route(const Communicator& communicator) {
  return compat({.two_lanes = true,
                 .waiting_route = communicator.waits_crosswise() ? communicator.route() : ""});
}

}  // namespace

Ranks::Ranks(group::LaneLinks links) : links_(std::move(links)) {
  if (links_[0] == nullptr) return;
  rank_ = links_[0]->rank();
  size_ = links_[0]->size();
  layout_.tp = size_;
  place_ = place_of(layout_, rank_);
}

Ranks::Ranks(RankLinks links, const group::RankLayout& layout, bool deals_experts, int num_context)
    : Ranks(std::move(links.own)) {
  FT_CHECK(num_context > 0 && layout.tp % num_context == 0);
  deals_experts_ = deals_experts;
  num_context_ = num_context;
  beside_ = std::move(links.beside);
  bell_ = std::move(links.bell);
  if (links_[0] == nullptr) return;
  FT_CHECK(layout.num_ranks() == size_);
  layout_ = layout;
  place_ = place_of(layout_, rank_);
}

std::vector<RankLinks> local_rank_links(int num_ranks) {
  std::vector<RankLinks> links(static_cast<size_t>(num_ranks));
  if (num_ranks == 1) return links;
  std::vector<group::LaneLinks> own = group::make_local_links(num_ranks);
  for (size_t rank = 0; rank < links.size(); ++rank) links[rank].own = std::move(own[rank]);
  return links;
}

std::vector<std::vector<RankLinks>> local_links_of_engines(int num_engines, int num_ranks) {
  std::vector<std::vector<RankLinks>> engines;
  const auto bell = std::make_shared<group::WakeBell>(num_engines);
  for (int i = 0; i < num_engines; ++i) {
    engines.push_back(local_rank_links(num_ranks));
    engines.back().front().bell = bell;
  }
  for (size_t rank = 0; rank < static_cast<size_t>(num_ranks); ++rank) {
    std::vector<group::LaneLinks> beside = group::make_local_links(num_engines);
    for (size_t i = 0; i < engines.size(); ++i) engines[i][rank].beside = std::move(beside[i]);
  }
  return engines;
}

Sharding Ranks::sharding(int lane) const {
  const RowLane& own = lanes_[static_cast<size_t>(lane)];
  const void* comm = handle_of(own.own);
  Sharding sharding{place_.tp, layout_.tp, comm};
  if (num_context_ > 1) {
    const int place = place_.tp % num_context_;
    sharding.context = {comm, place_.tp - place, place, num_context_};
  }
  if (!deals_experts_) return sharding;
  sharding.experts = {place_.tp, layout_.tp};
  if (own.experts == nullptr) return sharding;
  const int engines = num_engines();
  sharding.experts = {own.experts->rank() * layout_.tp + place_.tp, engines * layout_.tp, engines,
                      own.experts->handle()};
  return sharding;
}

Status Ranks::open_lane(Device& device, group::Lane lane, const CommunicatorOptions& options,
                        RowLane* opened) {
  if (layout_.tp > 1) {
    FT_ASSIGN_OR_RETURN(opened->own, meet(device, lane, tp_ranks(layout_, place_), options));
    if (options.in_lanes) FT_RETURN_IF_ERROR(check_lane_route(*opened->own));
  }
  if (num_engines() > 1) {
    FT_ASSIGN_OR_RETURN(opened->experts, device.make_communicator(link_of(beside_, lane), options));
    if (options.in_lanes) FT_RETURN_IF_ERROR(check_lane_route(*opened->experts));
  }
  return {};
}

Status Ranks::open(Device& device, const CommunicatorOptions& options) {
  FT_RETURN_IF_ERROR(open_lane(device, group::Lane::kCollectives, options, &lanes_[0]));
  if (options.in_lanes) {
    FT_RETURN_IF_ERROR(open_lane(device, group::Lane::kSecondLane, options, &lanes_[1]));
  }
  if (layout_.pp > 1) {
    FT_ASSIGN_OR_RETURN(ring_,
                        meet(device, group::Lane::kStages, pp_ranks(layout_, place_), options));
    if (options.in_lanes) FT_RETURN_IF_ERROR(check_lane_route(*ring_));
  }
  {
    const std::lock_guard lock(watched_->mutex);
    for (Communicator* made : communicators()) {
      if (made != nullptr) watched_->communicators.push_back(made);
    }
  }
  watch(links_);
  watch(beside_);
  return {};
}

void Ranks::watch(const group::LaneLinks& links) {
  if (links[0] == nullptr) return;
  link_of(links, group::Lane::kControl).on_end([watched = watched_, bell = bell_] {
    watched->end();
    if (bell != nullptr) bell->wake_all();
  });
}

// The end of one group ends the other through the communicator, whose listeners may come back here.
void Ranks::Watched::end() {
  has_ended.store(true);
  std::vector<Communicator*> ending;
  {
    const std::lock_guard lock(mutex);
    ending = communicators;
    ++num_ending;
  }
  for (Communicator* communicator : ending) communicator->abort();
  {
    const std::lock_guard lock(mutex);
    --num_ending;
  }
  idle.notify_all();
}

Ranks::~Ranks() {
  std::unique_lock lock(watched_->mutex);
  watched_->communicators.clear();
  watched_->idle.wait(lock, [&] { return watched_->num_ending == 0; });
}

Result<std::unique_ptr<Communicator>> Ranks::meet(Device& device, group::Lane lane,
                                                  const std::vector<int>& ranks,
                                                  const CommunicatorOptions& options) {
  group::RankLink& link = link_of(links_, lane);
  if (static_cast<int>(ranks.size()) < size_) link.narrow(ranks);
  FT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> made, device.make_communicator(link, options));
  if (!made->route().empty())
    FT_LOG(info, "{} ranks exchange through {}", ranks.size(), made->route());
  return made;
}

Result<int64_t> Ranks::least(int64_t value, std::string_view what) {
  FT_ASSIGN_OR_RETURN(const int64_t own, least_of(links_, value, what));
  return least_of(beside_, own, what);
}

Result<int64_t> Ranks::least_of(const group::LaneLinks& links, int64_t value,
                                std::string_view what) {
  if (links[0] == nullptr) return value;
  group::RankLink& control = link_of(links, group::Lane::kControl);
  std::vector<int64_t> all(static_cast<size_t>(control.size()));
  FT_RETURN_IF_ERROR(
      control.all_gather(bytes_of(value), std::as_writable_bytes(std::span(all)), what));
  return *std::min_element(all.begin(), all.end());
}

Result<int64_t> Ranks::most(int64_t value, std::string_view what) {
  FT_ASSIGN_OR_RETURN(const int64_t negated, least(-value, what));
  return -negated;
}

// From the first engine's rank 0 to that of each engine, and on to its ranks.
Status Ranks::give_first(std::span<std::byte> bytes, std::string_view what) {
  if (is_first() && num_engines() > 1) {
    FT_RETURN_IF_ERROR(link_of(beside_, group::Lane::kControl).broadcast(0, bytes, what));
  }
  if (is_alone()) return {};
  return link_of(links_, group::Lane::kControl).broadcast(0, bytes, what);
}

Result<int64_t> Ranks::of_first(int64_t value, std::string_view what) {
  FT_RETURN_IF_ERROR(give_first(bytes_of(value), what));
  return value;
}

Result<std::string> Ranks::of_first(const std::string& text, std::string_view what) {
  FT_ASSIGN_OR_RETURN(const int64_t size, of_first(static_cast<int64_t>(text.size()), what));
  std::string shared = text;
  shared.resize(static_cast<size_t>(size));
  FT_RETURN_IF_ERROR(give_first(std::as_writable_bytes(std::span(shared)), what));
  return shared;
}

void Ranks::abort(const Status& why) {
  for (const group::LaneLinks* links : {&links_, &beside_}) {
    for (const auto& link : *links) {
      if (link != nullptr) link->abort(why);
    }
  }
}

}  // namespace foretoken
