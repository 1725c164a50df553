#include "draft/parts/tap_pages.h"

#include <utility>

#include "device/small_front.h"

namespace foretoken {

TapPages::TapPages(Device& device, Model& target, std::vector<int32_t> layers)
    : device_(device),
      target_(target),
      layers_(std::move(layers)),
      parts_(target.shared_head().sharding.context),
      arena_(device, MemoryKind::kDevice) {}

TapSink TapPages::sink() const {
  return {.layers = layers_, .pages = pages_, .part = parts_.rank, .num_parts = parts_.size};
}

int64_t TapPages::row_bytes() const {
  const int32_t width = TapSink::width_of(target_.config(), layers_.front());
  return static_cast<int64_t>(layers_.size()) * sink().columns_of(width) *
         static_cast<int64_t>(dtype_size(target_.config().dtype));
}

Status TapPages::take(int num_blocks, int block_size) {
  const auto bytes = static_cast<size_t>(num_blocks) * static_cast<size_t>(block_size) *
                     static_cast<size_t>(row_bytes());
  FT_ASSIGN_OR_RETURN(pages_, arena_.take(bytes, "the target's states for a drafter"));
  block_bytes_ = bytes_per_block(block_size);
  prefer_small_front(device_, pages_, bytes);
  target_.add_tap(sink());
  return {};
}

DraftHead::Source TapPages::source() const {
  return {.rows = pages_,
          .dtype = target_.config().dtype,
          .tapped = true,
          .are_parts = parts_.are_several()};
}

}  // namespace foretoken
