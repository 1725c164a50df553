#include <algorithm>

#include "kernels/comm/cuda/nccl_ops.h"
#include "kernels/comm/cuda/rank_ops.cuh"
#include "kernels/cuda/common.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

// One block: how many masks each span has, a word for each.
__global__ void __launch_bounds__(kThreads)
    write_answers_kernel(ShareMasksArgs args, uint64_t* words) {
  wait_for_previous();
  for (int i = threadIdx.x; i < args.counts->num_spans; i += kThreads) {
    const SpanState span = args.spans[i];
    words[i] = has_masks(args, span) ? mask_counts(args.slots[span.slot]) : 0;
  }
}

// One block. The slots of the other ranks take the words; then a word is where the span's masks
// begin among those of all spans.
__global__ void __launch_bounds__(kThreads)
    take_answers_kernel(ShareMasksArgs args, uint64_t* words, int own) {
  wait_for_previous();
  __shared__ int counts[kThreads];
  __shared__ int begun;
  if (threadIdx.x == 0) begun = 0;
  for (int begin = 0; begin < args.counts->num_spans; begin += kThreads) {
    const int i = begin + static_cast<int>(threadIdx.x);
    const bool wanted = i < args.counts->num_spans && has_masks(args, args.spans[i]);
    const uint64_t word = wanted ? words[i] : 0;
    counts[threadIdx.x] = static_cast<int>(word >> 32);
    if (wanted && own != 0) take_mask_counts(word, args.slots[args.spans[i].slot]);
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int& count : counts) {
        const int here = count;
        count = begun;
        begun += here;
      }
    }
    __syncthreads();
    if (i < args.counts->num_spans) words[i] = static_cast<uint64_t>(counts[threadIdx.x]);
    __syncthreads();
  }
}

// Masks [first, first + count) of all spans, from their places to `box` or back; a block a span.
__global__ void __launch_bounds__(kThreads)
    move_masks_kernel(ShareMasksArgs args, const uint64_t* begins, uint32_t* box, int first,
                      int count, bool out) {
  wait_for_previous();
  for (int i = blockIdx.x; i < args.counts->num_spans; i += gridDim.x) {
    const SpanState span = args.spans[i];
    if (!has_masks(args, span)) continue;
    const SlotState& state = args.slots[span.slot];
    for (int row = 0; row < state.num_masks; ++row) {
      const int at = static_cast<int>(begins[i]) + row - first;
      if (at < 0 || at >= count) continue;
      uint32_t* mask = args.masks + (int64_t{state.mask_begin} + row) * args.mask_words;
      uint32_t* boxed = box + int64_t{at} * args.mask_words;
      for (int w = threadIdx.x; w < args.mask_words; w += kThreads) {
        if (out) {
          boxed[w] = __ldcv(mask + w);
        } else {
          mask[w] = boxed[w];
        }
      }
    }
  }
}

}  // namespace

void nccl_share_masks(const ShareMasksArgs& args, NcclExchange& nccl, cudaStream_t stream) {
  const bool tells = nccl.rank() == 0;
  if (tells) {
    launch_kernel(write_answers_kernel, 1, kThreads, 0, stream, args, nccl.words());
  }
  nccl.broadcast(nccl.words(), args.max_spans * int64_t{sizeof(uint64_t)}, 0, stream);
  launch_kernel(take_answers_kernel, 1, kThreads, 0, stream, args, nccl.words(), nccl.rank());
  const int64_t row_bytes = int64_t{args.mask_words} * int64_t{sizeof(uint32_t)};
  const int piece = static_cast<int>(kNcclPieceBytes / row_bytes);
  auto* box = reinterpret_cast<uint32_t*>(nccl.outbox());
  const auto move = [&](int first, int rows) {
    launch_kernel(move_masks_kernel, args.max_spans, kThreads, 0, stream, args,
                  static_cast<const uint64_t*>(nccl.words()), box, first, rows, tells);
  };
  for (int first = 0; first < args.max_rows; first += piece) {
    const int rows = std::min(args.max_rows - first, piece);
    if (tells) move(first, rows);
    nccl.broadcast(box, rows * row_bytes, 0, stream);
    if (!tells) move(first, rows);
  }
}

}  // namespace foretoken::cuda
