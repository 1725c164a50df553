#include "group/shape_agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace foretoken::group {
namespace {

// As bytes on the link: the host's order, since all ranks run the same program.
constexpr std::size_t kFront = 3;
using Packed = std::array<uint32_t, kFront + 3 * kMaxDrafters>;

Packed pack(const StepShapeWish& wish) {
  Packed packed{wish.rows,
                static_cast<uint32_t>(wish.has_work) | static_cast<uint32_t>(wish.wants_end) << 1 |
                    static_cast<uint32_t>(wish.without_graph) << 2 |
                    static_cast<uint32_t>(wish.wants_rest) << 3 |
                    static_cast<uint32_t>(wish.rests) << 4,
                wish.lane_rows};
  for (std::size_t i = 0; i < wish.drafts.size(); ++i) {
    const DraftPassesWish& passes = wish.drafts[i];
    packed[kFront + 3 * i] = passes.num_draft_tokens;
    packed[kFront + 1 + 3 * i] = passes.catch_up_rows;
    packed[kFront + 2 + 3 * i] = passes.spans;
  }
  return packed;
}

StepShapeWish unpack(const Packed& packed) {
  StepShapeWish wish{.rows = packed[0],
                     .lane_rows = packed[2],
                     .without_graph = (packed[1] & 4) != 0,
                     .has_work = (packed[1] & 1) != 0,
                     .wants_end = (packed[1] & 2) != 0,
                     .wants_rest = (packed[1] & 8) != 0,
                     .rests = (packed[1] & 16) != 0};
  for (std::size_t i = 0; i < wish.drafts.size(); ++i) {
    wish.drafts[i] = {packed[kFront + 3 * i], packed[kFront + 1 + 3 * i],
                      packed[kFront + 2 + 3 * i]};
  }
  return wish;
}

}  // namespace

AgreedShape agree(const std::vector<StepShapeWish>& wishes) {
  FT_CHECK(!wishes.empty());
  AgreedShape agreed;
  StepShapeWish& shape = agreed.shape;
  shape.wants_end = shape.wants_rest = true;
  bool in_lanes = true;
  for (const StepShapeWish& wish : wishes) {
    in_lanes &= wish.rows == 0 || wish.lane_rows > 0;
    shape.lane_rows = std::max(shape.lane_rows, wish.lane_rows);
    shape.rows = std::max(shape.rows, wish.rows);
    shape.without_graph |= wish.without_graph;
    shape.has_work |= wish.has_work;
    shape.wants_end &= wish.wants_end;
    shape.wants_rest &= wish.wants_rest;
    shape.rests |= wish.rests;
    for (std::size_t i = 0; i < shape.drafts.size(); ++i) {
      DraftPassesWish& most = shape.drafts[i];
      const DraftPassesWish& one = wish.drafts[i];
      most.num_draft_tokens = std::max(most.num_draft_tokens, one.num_draft_tokens);
      most.catch_up_rows = std::max(most.catch_up_rows, one.catch_up_rows);
      most.spans = std::max(most.spans, one.spans);
    }
  }
  if (!in_lanes) shape.lane_rows = 0;
  using Next = AgreedShape::Next;
  if (shape.rests) {
    agreed.next = Next::kRest;
  } else if (shape.rows > 0) {
    agreed.next = Next::kRun;
  } else if (shape.has_work) {
    agreed.next = Next::kWait;
  } else if (shape.wants_rest) {
    agreed.next = Next::kRest;
  } else {
    agreed.next = shape.wants_end ? Next::kEnd : Next::kSleep;
  }
  return agreed;
}

ShapeAgreement::ShapeAgreement(RankLink& link, std::shared_ptr<WakeBell> bell)
    : link_(link),
      bell_(std::move(bell)),
      all_(static_cast<std::size_t>(link.size()) * sizeof(Packed)),
      wishes_(static_cast<std::size_t>(link.size())) {
  std::vector<int> descriptors = link.news_descriptors();
  if (bell_ == nullptr && !descriptors.empty()) {
    watch_ = std::make_unique<NewsWatch>(std::move(descriptors));
  }
}

void ShapeAgreement::set_waker(std::function<void()> wake) {
  if (watch_ != nullptr) {
    watch_->set_waker(std::move(wake));
  } else if (bell_ != nullptr) {
    bell_->set_waker(link_.rank(), std::move(wake));
  }
}

Result<AgreedShape> ShapeAgreement::next(const StepShapeWish& mine, uint64_t step) {
  ++num_agreements_;
  if (bell_ != nullptr) bell_->ring(link_.rank(), num_agreements_);
  if (watch_ != nullptr) watch_->disarm();
  const Packed packed = pack(mine);
  FT_RETURN_IF_ERROR(link_.all_gather(std::as_bytes(std::span(packed)), all_,
                                      "shape of step " + std::to_string(step)));
  for (std::size_t rank = 0; rank < wishes_.size(); ++rank) {
    Packed theirs;
    std::memcpy(theirs.data(), all_.data() + rank * sizeof theirs, sizeof theirs);
    wishes_[rank] = unpack(theirs);
  }
  const AgreedShape agreed = agree(wishes_);
  const bool waits =
      agreed.next == AgreedShape::Next::kSleep || agreed.next == AgreedShape::Next::kRest;
  if (watch_ != nullptr && waits) watch_->arm();
  return agreed;
}

Status ShapeAgreement::fail(const Status& why) {
  link_.abort(why);
  const Status first = link_.send(link_.rank() == 0 ? 1 : 0, {}, "a step");
  return first.ok() ? why : first;
}

}  // namespace foretoken::group
