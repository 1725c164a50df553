#include "kernels/latent/choose_entries.h"

#include <algorithm>

#include "kernels/cuda/launchers.h"
#include "kernels/latent/cuda/best_of_ranks.cuh"
#include "kernels/latent/cuda/index_scores.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kSelectThreads = 1024;

// The positions behind the last whole key, of which `out` gets those that the rank holds. Returns
// how many these are.
__device__ int add_tail(const ChooseEntriesArgs& args, const SeenPositions& seen, int row,
                        int32_t* out) {
  const int position = args.positions[row];
  if ((position + 1) % args.positions_each == 0) return 0;
  const int64_t behind = seen.entry(args, position / args.positions_each - seen.begin);
  const TailPositions tail = tail_positions(args, position, behind);
  for (int j = threadIdx.x; j < tail.own; j += kSelectThreads) {
    out[j] = static_cast<int32_t>(tail.first + j);
  }
  return tail.own;
}

// Block: a row of the batch. Writes what it attends to: chosen positions, or of several ranks those
// that this one holds.
__global__ void __launch_bounds__(kSelectThreads)
    select_entries_kernel(ChooseEntriesArgs args, RowBatch batch) {
  __shared__ RankScratch<kSelectThreads> scratch;
  wait_for_previous();
  const int row = batch.first + static_cast<int>(blockIdx.x);
  if (row >= args.counts->num_rows) return;
  const SeenPositions seen(args, row);
  int32_t* out = args.entries + int64_t{row} * listed_entries(args);
  const float* scores = args.workspace + blockIdx.x * batch.stride;
  const bool all = seen.count <= args.top;
  const auto rank_at = [&](int i) { return all ? 0 : ~score_order(scores[i]); };
  RankThreshold threshold{1, 0};
  if (!all) threshold = find_threshold<kSelectThreads>(seen.count, args.top, scratch, rank_at);
  int own;
  if (args.spreads != 0) {
    const int held = args.positions_each / args.context_size;
    own = held * visit_best<kSelectThreads>(seen.count, threshold, scratch, rank_at, KeepsAll(),
                                            [&](int index, int place) {
                                              const int64_t first = seen.entry(args, index) * held;
                                              for (int j = 0; j < held; ++j) {
                                                out[place * held + j] =
                                                    static_cast<int32_t>(first + j);
                                              }
                                            });
    own += add_tail(args, seen, row, out + own);
  } else if (args.context_size == 1) {
    own = visit_best<kSelectThreads>(
        seen.count, threshold, scratch, rank_at, KeepsAll(),
        [&](int index, int place) { out[place] = static_cast<int32_t>(seen.entry(args, index)); });
  } else {
    const auto is_held = [&](int index) {
      return seen.entry(args, index) % args.context_size == args.context_rank;
    };
    own = visit_best<kSelectThreads>(
        seen.count, threshold, scratch, rank_at, is_held, [&](int index, int place) {
          out[place] = static_cast<int32_t>(seen.entry(args, index) / args.context_size);
        });
  }
  if (threadIdx.x != 0) return;
  args.last[row] = (own - 1) * args.context_size + args.context_rank;
  args.rows[row] = row;
}

void launch_scores(const ChooseEntriesArgs& args, const RowBatch& batch, int rows,
                   cudaStream_t stream) {
  if (args.dtype == DType::kF32) {
    return launch_index_scores<FloatIndexHeads>(args, batch, rows, stream);
  }
  switch (args.head_dim) {
    case 32:
      return launch_index_scores<WideIndexHeads<32>>(args, batch, rows, stream);
    case 64:
      return launch_index_scores<WideIndexHeads<64>>(args, batch, rows, stream);
    case 128:
      return launch_index_scores<WideIndexHeads<128>>(args, batch, rows, stream);
    default:
      return launch_index_scores<AnyIndexHeads>(args, batch, rows, stream);
  }
}

}  // namespace

void launch_choose_entries(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<ChooseEntriesArgs>(packed);
  const int64_t context = int64_t{args.max_blocks} * args.block_size;
  const int64_t room = kMaxScores / context;
  const int rows = static_cast<int>(std::clamp<int64_t>(room, 1, args.max_rows));
  for (int first = 0; first < args.max_rows; first += rows) {
    const RowBatch batch{first, context};
    const int own = std::min(rows, args.max_rows - first);
    launch_scores(args, batch, own, stream);
    launch_kernel(select_entries_kernel, own, kSelectThreads, 0, stream, args, batch);
  }
}

}  // namespace foretoken::cuda
