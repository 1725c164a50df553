#pragma once
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "kernels/comm/context_exchange.h"
#include "kernels/step/move_blocks.h"
#include "model/draft_head.h"
#include "model/model.h"

namespace foretoken {

// The target's hidden states that a head reads, kept at the KV slot of their position beside the
// drafter's KV, so that any entry can be computed at any time. Ranks that share the keys and values
// of a sequence share the columns of its rows, too: pages would else be as large on each of them.
class TapPages {
 public:
  // `layers` as of TapSink. `target` lives longer.
  TapPages(Device& device, Model& target, std::vector<int32_t> layers);

  int64_t bytes_per_block(int block_size) const { return block_size * row_bytes(); }
  // Takes the memory and has the target fill it from now on.
  Status take(int num_blocks, int block_size);
  // The pages, once they are taken.
  BlockPart block_part() const { return {static_cast<std::byte*>(pages_), block_bytes_}; }
  // What a first pass reads.
  DraftHead::Source source() const;
  bool are_parts() const { return parts_.are_several(); }
  const ContextRanks& parts() const { return parts_; }

 private:
  TapSink sink() const;
  int64_t row_bytes() const;

  Device& device_;
  Model& target_;
  const std::vector<int32_t> layers_;
  const ContextRanks parts_;
  Arena arena_;
  void* pages_ = nullptr;  // TapSink::pages
  int64_t block_bytes_ = 0;
};

}  // namespace foretoken
