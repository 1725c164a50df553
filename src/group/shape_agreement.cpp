#include "group/shape_agreement.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace foretoken::group {
namespace {

// As bytes on the link: the host's order, since all ranks run the same program.
using Packed = std::array<uint32_t, 2 + kMaxDrafters>;

Packed pack(const StepShapeWish& wish) {
  Packed packed{wish.rows,
                static_cast<uint32_t>(wish.has_work) | static_cast<uint32_t>(wish.wants_end) << 1};
  for (std::size_t i = 0; i < wish.drafts.size(); ++i) {
    const DraftPassesWish& passes = wish.drafts[i];
    packed[2 + i] = static_cast<uint32_t>(passes.catches_up) | passes.num_draft_tokens << 1;
  }
  return packed;
}

StepShapeWish unpack(const Packed& packed) {
  StepShapeWish wish{
      .rows = packed[0], .has_work = (packed[1] & 1) != 0, .wants_end = (packed[1] & 2) != 0};
  for (std::size_t i = 0; i < wish.drafts.size(); ++i) {
    wish.drafts[i] = {(packed[2 + i] & 1) != 0, packed[2 + i] >> 1};
  }
  return wish;
}

}  // namespace

AgreedShape agree(const std::vector<StepShapeWish>& wishes) {
  FT_CHECK(!wishes.empty());
  AgreedShape agreed;
  StepShapeWish& shape = agreed.shape;
  shape.wants_end = true;
  for (const StepShapeWish& wish : wishes) {
    shape.rows = std::max(shape.rows, wish.rows);
    shape.has_work |= wish.has_work;
    shape.wants_end &= wish.wants_end;
    for (std::size_t i = 0; i < shape.drafts.size(); ++i) {
      shape.drafts[i].catches_up |= wish.drafts[i].catches_up;
      shape.drafts[i].num_draft_tokens =
          std::max(shape.drafts[i].num_draft_tokens, wish.drafts[i].num_draft_tokens);
    }
  }
  using Next = AgreedShape::Next;
  if (shape.rows > 0) {
    agreed.next = Next::kRun;
  } else if (shape.has_work) {
    agreed.next = Next::kWait;
  } else {
    agreed.next = shape.wants_end ? Next::kEnd : Next::kSleep;
  }
  return agreed;
}

ShapeAgreement::ShapeAgreement(RankLink& link)
    : link_(link),
      all_(static_cast<std::size_t>(link.size()) * sizeof(Packed)),
      wishes_(static_cast<std::size_t>(link.size())) {}

Result<AgreedShape> ShapeAgreement::next(const StepShapeWish& mine, uint64_t step) {
  const Packed packed = pack(mine);
  FT_RETURN_IF_ERROR(link_.all_gather(std::as_bytes(std::span(packed)), all_,
                                      "shape of step " + std::to_string(step)));
  for (std::size_t rank = 0; rank < wishes_.size(); ++rank) {
    Packed theirs;
    std::memcpy(theirs.data(), all_.data() + rank * sizeof theirs, sizeof theirs);
    wishes_[rank] = unpack(theirs);
  }
  return agree(wishes_);
}

}  // namespace foretoken::group
