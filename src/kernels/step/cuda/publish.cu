#include "kernels/step/publish.h"

#include <cstddef>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/plan_layout.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kManyThreads = 1024;  // with logprobs or pooled states

// Calls f(i) for the block's share of [0, count).
template <class F>
__device__ void for_share(int64_t count, const F& f) {
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) f(i);
}

constexpr int kHeaderWords = static_cast<int>(align16(sizeof(ResultHeader)) / 4);
constexpr int kSpanWords = static_cast<int>(sizeof(SpanResult) / 4);
constexpr int kIdsWord = static_cast<int>(offsetof(SpanResult, ids) / 4);
constexpr int kDraftsWord = static_cast<int>(offsetof(SpanResult, drafts) / 4);

// Spans with the ids and drafts that they can have.
__device__ void copy_spans(int32_t* to, const int32_t* from, int num_spans, int max_draft_tokens) {
  const int before_drafts = kIdsWord + max_draft_tokens + 1;
  const int words = before_drafts + max_draft_tokens;
  for_share(num_spans * words, [&](int64_t i) {
    const int span = static_cast<int>(i) / words;
    const int word = static_cast<int>(i) % words;
    const int at =
        span * kSpanWords + (word < before_drafts ? word : kDraftsWord + word - before_drafts);
    to[at] = from[at];
  });
}

__device__ void copy_logprobs(const ResultView& to, const ResultView& from,
                              const ResultLimits& limits) {
  const int rows = min(from.header->num_logits_rows, limits.max_rows);
  for_share(rows, [&](int64_t i) { to.rows[i] = from.rows[i]; });
  for (int row = threadIdx.x / 32; row < rows; row += blockDim.x / 32) {
    const int count = min(from.rows[row].num_top, limits.max_top);
    const int64_t begin = int64_t{row} * limits.max_top;
    for (int i = threadIdx.x % 32; i < count; i += 32) to.top[begin + i] = from.top[begin + i];
  }
}

__device__ void copy_pooled(const ResultView& to, const ResultView& from,
                            const ResultLimits& limits) {
  for (int span = 0; span < from.header->num_spans; ++span) {
    if (!has_pooled(from.spans[span])) continue;
    const int64_t begin = int64_t{span} * limits.hidden;
    for_share(limits.hidden, [&](int64_t i) { to.pooled[begin + i] = from.pooled[begin + i]; });
    if (limits.max_states == 0) continue;
    const RowsOfStates rows = from.state_rows[span];
    if (threadIdx.x == 0) to.state_rows[span] = rows;
    const int64_t first = int64_t{rows.begin} * limits.hidden;
    for_share(int64_t{rows.count} * limits.hidden,
              [&](int64_t i) { to.states[first + i] = from.states[first + i]; });
  }
}

__global__ void __launch_bounds__(kManyThreads) publish_kernel(PublishArgs args) {
  wait_for_previous();
  let_next_start();
  const uint64_t step = *args.step;
  const auto* header = static_cast<const ResultHeader*>(args.result);
  const auto* from = static_cast<const int32_t*>(args.result);
  auto* to = reinterpret_cast<int32_t*>(args.ring + (step % kStepRingSize) * args.entry_bytes);
  for_share(kHeaderWords, [&](int64_t i) { to[i] = from[i]; });
  copy_spans(to + kHeaderWords, from + kHeaderWords, header->num_spans, args.max_draft_tokens);
  if (args.with_logprobs != 0 || args.with_pooled != 0) {
    const ResultView source = result_view(const_cast<void*>(args.result), args.limits);
    const ResultView target = result_view(to, args.limits);
    if (args.with_logprobs != 0) copy_logprobs(target, source, args.limits);
    if (args.with_pooled != 0) copy_pooled(target, source, args.limits);
  }
  if (args.stamps != nullptr && threadIdx.x == 0) {
    StepStamps& stamps = args.stamps[step % kStepRingSize];
    stamps.published_ns = stamps.end_ns = global_nanoseconds();
  }
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    *args.step = step + 1;
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(args.word), "l"(step + 1) : "memory");
  }
}

}  // namespace

void launch_publish(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<PublishArgs>(packed);
  const int threads = args.with_logprobs != 0 || args.with_pooled != 0 ? kManyThreads : kThreads;
  launch_kernel(publish_kernel, 1, threads, 0, stream, args);
}

}  // namespace foretoken::cuda
