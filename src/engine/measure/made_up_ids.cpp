#include "engine/measure/made_up_ids.h"

#include <algorithm>

#include "base/check.h"
#include "base/philox.h"

namespace foretoken {
namespace {

constexpr uint64_t kMadeUpKey = 0x4D616465;
constexpr size_t kFirstDraft = MadeUpIds::kCount / 2;

}  // namespace

Status MadeUpIds::draw(Arena& pinned, int32_t vocab_size) {
  FT_CHECK(vocab_size > 0);
  FT_ASSIGN_OR_RETURN(ids_, pinned.take_array<int32_t>(kCount, "ids of made-up sequences"));
  for (size_t i = 0; i < kCount; i += 4) {
    const Philox4 drawn = philox4x32(static_cast<uint32_t>(i), 0, 0, 0, kMadeUpKey);
    for (size_t j = 0; j < 4; ++j) {
      ids_[i + j] = static_cast<int32_t>(drawn.v[j] % static_cast<uint32_t>(vocab_size));
    }
  }
  return {};
}

// In runs of blocks that follow one another, which they nearly always do.
void MadeUpIds::copy_to_pages(Queue& queue, const BatchState& batch,
                              std::span<const int32_t> blocks) const {
  const auto block_size = static_cast<size_t>(batch.block_size);
  size_t place = 0;
  for (size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    for (end = begin + 1; end < blocks.size(); ++end) {
      if (blocks[end] != blocks[end - 1] + 1) break;
    }
    int32_t* to = batch.token_pages + static_cast<size_t>(blocks[begin]) * block_size;
    for (size_t left = (end - begin) * block_size; left > 0;) {
      const size_t count = std::min(left, kCount - place);
      queue.copy(to, ids_ + place, count * sizeof(int32_t));
      to += count;
      left -= count;
      place = (place + count) % kCount;
    }
  }
}

void MadeUpIds::write_drafts(size_t index, SlotState& state) const {
  for (size_t i = 0; i < size_t{kMaxDraftTokens}; ++i) {
    state.drafts[i] = at(kFirstDraft + index * kMaxDraftTokens + i);
  }
}

}  // namespace foretoken
