#include "kernels/sampling/sample.h"

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/logits_row.h"
#include "kernels/sample_math.h"
#include "kernels/sampling/cuda/row_search.cuh"
#include "kernels/sampling/cuda/sample_team.cuh"

namespace foretoken::cuda {
namespace {

namespace sm = sample_math;

// (score, id) of the best id among this thread's; scores are not negative, so their bits are
// ordered like their values.
template <int Size>
__device__ uint64_t race(const MaskedRow& row, const SlotParams& params, float max,
                         uint32_t threshold, int position) {
  uint64_t best = ~uint64_t{0};
  float best_score = INFINITY;
  const float inverse = fminf(1.0f / params.temperature, 3e38f);
  for_each_block<Size>(row, [&](int id, const float(&logits)[4]) {
    float most[4];  // that the weights can be
    bool any = false;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const bool kept = sm::ordered_key(logits[j]) >= threshold;
      most[j] = kept ? fmaf(__expf((logits[j] - max) * inverse), 1.01f, 1e-37f) : 0.0f;
      any |= most[j] > 0.0f;
    }
    if (!any) return;
    const Philox4 noise =
        sm::noise_words(id / 4, position, params.choice, kSampleTarget, params.seed);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      // -log1p(-v) >= v: most ids lose before the weight and the logarithm; the margins cover the
      // rounding.
      const float bound = sm::unit_from_word(noise.v[j]) * 0.999f;
      if (most[j] <= 0.0f || bound > best_score * most[j]) continue;
      const float weight = sm::weight_of(logits[j], max, params.temperature);
      if (weight <= 0.0f || weight < params.min_p) continue;
      const float score = sm::race_score(noise.v[j], weight);
      const uint64_t key = (uint64_t{sm::bits_of(score)} << 32) | static_cast<uint32_t>(id + j);
      if (key < best) {
        best = key;
        best_score = score;
      }
    }
  });
  return best;
}

// The id that `row` samples; -1 for a row with a NaN or without an id to sample.
template <int Size>
__device__ int32_t sample_row(const MaskedRow& row, const SlotParams& params, int position,
                              const Team<Size>& team) {
  uint64_t highest = 0;  // (ordered key, ~id): ties go to the lowest id; all ones: invalid row
  for_each_block<Size>(row, [&](int id, const float(&logits)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (id + j >= row.vocab) break;
      uint64_t key = (uint64_t{sm::ordered_key(logits[j])} << 32) | ~static_cast<uint32_t>(id + j);
      if (sm::is_invalid_logit(logits[j])) key = ~uint64_t{0};
      highest = key > highest ? key : highest;
    }
  });
  highest = team.reduce(highest, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
  const auto id_of_highest = static_cast<int32_t>(~static_cast<uint32_t>(highest));
  if (highest == ~uint64_t{0} || (highest >> 32) <= sm::kKeyOfMinusInf) return -1;
  if (params.temperature <= 0.0f) return id_of_highest;
  const float max = row.logits[id_of_highest];
  const uint32_t threshold = kept_threshold<Size>(row, params, max, team);
  const uint64_t winner = team.reduce(race<Size>(row, params, max, threshold, position),
                                      [](uint64_t a, uint64_t b) { return a < b ? a : b; });
  return static_cast<int32_t>(winner & 0xffffffffu);
}

// A team of Size blocks: one logits row.
template <int Size>
__global__ void __launch_bounds__(kTeamThreads) sample_kernel(SampleArgs args) {
  __shared__ TeamShared shared;
  __shared__ int32_t stop_ids[kMaxStopIds];
  wait_for_previous();
  let_next_start();
  const int i = blockIdx.x / Size;
  const int live = live_rows(args.tensors.counts, RowKind::kLogits, args.row_offset, args.max_rows);
  const LogitsRow at = logits_row(args.tensors, args.batch.slots, args.row_offset + i);
  if (i >= live) return;
  int32_t& sampled = args.tensors.sampled[args.row_offset + i];
  const int position = at.position + 1;
  const bool writes = threadIdx.x == 0 && Team<Size>::rank() == 0;
  if (at.scored) {
    if (writes) sampled = history_id(args.batch, at.slot, position);
    return;
  }
  const SlotParams& params = args.batch.params[at.slot];
  if (threadIdx.x < kMaxStopIds) stop_ids[threadIdx.x] = params.stop_ids[threadIdx.x];
  __syncthreads();
  const MaskedRow row{args.logits + int64_t{i} * args.vocab, stop_ids,
                      position < params.min_len ? params.num_stop_ids : 0, args.vocab};
  const int32_t id = sample_row<Size>(row, params, position, Team<Size>(shared));
  if (writes) sampled = id;
}

}  // namespace

void launch_sample(const void* args, cudaStream_t stream) {
  launch_teams<SampleArgs>({sample_kernel<8>, sample_kernel<4>, sample_kernel<2>, sample_kernel<1>},
                           op_args<SampleArgs>(args), stream);
}

}  // namespace foretoken::cuda
