#include "group/shape_agreement.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace foretoken::group {
namespace {

// As bytes on the link: the host's order, since all ranks run the same program.
using Packed = std::array<uint32_t, 4>;

Packed pack(const StepShapeWish& wish) {
  return {wish.rows, wish.draft_passes, wish.features,
          static_cast<uint32_t>(wish.has_work) | static_cast<uint32_t>(wish.wants_end) << 1};
}

StepShapeWish unpack(const Packed& packed) {
  return {.rows = packed[0],
          .draft_passes = packed[1],
          .features = packed[2],
          .has_work = (packed[3] & 1) != 0,
          .wants_end = (packed[3] & 2) != 0};
}

}  // namespace

AgreedShape agree(const std::vector<StepShapeWish>& wishes) {
  FT_CHECK(!wishes.empty());
  AgreedShape agreed;
  agreed.shape.wants_end = true;
  for (const StepShapeWish& wish : wishes) {
    agreed.shape.rows = std::max(agreed.shape.rows, wish.rows);
    agreed.shape.draft_passes = std::max(agreed.shape.draft_passes, wish.draft_passes);
    agreed.shape.features |= wish.features;
    agreed.shape.has_work |= wish.has_work;
    agreed.shape.wants_end &= wish.wants_end;
  }
  // Rows that no request stands behind any more, such as the last catch-up of drafts, still run.
  if (agreed.shape.has_work || agreed.shape.rows > 0) return agreed;
  agreed.next = agreed.shape.wants_end ? AgreedShape::Next::kEnd : AgreedShape::Next::kSleep;
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
