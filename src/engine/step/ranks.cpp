#include "engine/step/ranks.h"

#include <algorithm>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/log.h"

namespace foretoken {
namespace {

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

Ranks::Ranks(group::LaneLinks links) : links_(std::move(links)) {
  if (links_[0] == nullptr) return;
  rank_ = links_[0]->rank();
  size_ = links_[0]->size();
  layout_.tp = size_;
  place_ = place_of(layout_, rank_);
}

Ranks::Ranks(group::LaneLinks links, const group::RankLayout& layout, bool deals_experts)
    : Ranks(std::move(links)) {
  deals_experts_ = deals_experts;
  if (links_[0] == nullptr) return;
  FT_CHECK(layout.num_ranks() == size_);
  layout_ = layout;
  place_ = place_of(layout_, rank_);
}

Status Ranks::open(Device& device, const CommunicatorOptions& options) {
  if (layout_.tp > 1) {
    FT_ASSIGN_OR_RETURN(
        communicator_, meet(device, group::Lane::kCollectives, tp_ranks(layout_, place_), options));
  }
  if (layout_.pp > 1) {
    FT_ASSIGN_OR_RETURN(ring_,
                        meet(device, group::Lane::kStages, pp_ranks(layout_, place_), options));
  }
  {
    const std::lock_guard lock(watched_->mutex);
    for (Communicator* made : {communicator_.get(), ring_.get()}) {
      if (made != nullptr) watched_->communicators.push_back(made);
    }
  }
  if (is_alone()) return {};
  control().on_end([watched = watched_] {
    const std::lock_guard lock(watched->mutex);
    for (Communicator* communicator : watched->communicators) communicator->abort();
  });
  return {};
}

Ranks::~Ranks() {
  const std::lock_guard lock(watched_->mutex);
  watched_->communicators.clear();
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
  if (is_alone()) return value;
  std::vector<int64_t> all(static_cast<size_t>(size_));
  FT_RETURN_IF_ERROR(
      control().all_gather(bytes_of(value), std::as_writable_bytes(std::span(all)), what));
  return *std::min_element(all.begin(), all.end());
}

Result<int64_t> Ranks::most(int64_t value, std::string_view what) {
  FT_ASSIGN_OR_RETURN(const int64_t negated, least(-value, what));
  return -negated;
}

Result<int64_t> Ranks::of_first(int64_t value, std::string_view what) {
  if (is_alone()) return value;
  FT_RETURN_IF_ERROR(control().broadcast(0, bytes_of(value), what));
  return value;
}

Result<std::string> Ranks::of_first(const std::string& text, std::string_view what) {
  if (is_alone()) return text;
  FT_ASSIGN_OR_RETURN(const int64_t size, of_first(static_cast<int64_t>(text.size()), what));
  std::string shared = text;
  shared.resize(static_cast<size_t>(size));
  FT_RETURN_IF_ERROR(control().broadcast(0, std::as_writable_bytes(std::span(shared)), what));
  return shared;
}

void Ranks::abort(const Status& why) {
  if (is_alone()) return;
  links_[0]->abort(why);
  for (const auto& link : links_) link->abort(why);
}

}  // namespace foretoken
