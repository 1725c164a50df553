#include "kernels/comm/context_exchange.h"

#include "base/check.h"
#include "kernels/attention/kv_layer.h"

namespace foretoken {
namespace {

void check_ranks(const ContextRanks& ranks) {
  FT_CHECK(ranks.comm != nullptr && ranks.first >= 0);
  FT_CHECK(ranks.size > 1 && ranks.rank >= 0 && ranks.rank < ranks.size);
}

}  // namespace

void gather_parts(Queue& queue, const GatherPartsArgs& args) {
  check_ranks(args.ranks);
  FT_CHECK(args.counts != nullptr && args.in != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.pieces > 0);
  FT_CHECK(args.piece_bytes > 0 && args.piece_bytes % 4 == 0);
  queue.launch(args);
}

void merge_partials(Queue& queue, const MergePartialsArgs& args) {
  check_ranks(args.ranks);
  FT_CHECK(args.counts != nullptr && args.states != nullptr && args.out != nullptr);
  FT_CHECK(args.max_rows > 0 && args.num_heads > 0);
  FT_CHECK(args.value_size > 0 && args.value_size <= kMaxHeadDim);
  FT_CHECK(args.dtype == DType::kF32 || args.dtype == DType::kBF16);
  queue.launch(args);
}

}  // namespace foretoken
