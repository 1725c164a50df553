#include "kernels/attention/cuda/library/library_plan.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kWarps = 4;              // of a block, each with one row and query head
constexpr int kPieces = 512 / 4 / 32;  // of four values, of a lane

__device__ float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}
__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

__device__ float4 load_four(const float* from) { return *reinterpret_cast<const float4*>(from); }
__device__ float4 load_four(const __nv_bfloat16* from) {
  const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(from);
  const float2 low = __bfloat1622float2(pairs[0]);
  const float2 high = __bfloat1622float2(pairs[1]);
  return {low.x, low.y, high.x, high.y};
}

__device__ void store_four(__nv_bfloat16* to, const float4& value, float factor) {
  auto* pairs = reinterpret_cast<__nv_bfloat162*>(to);
  pairs[0] = __floats2bfloat162_rn(value.x * factor, value.y * factor);
  pairs[1] = __floats2bfloat162_rn(value.z * factor, value.w * factor);
}

// A warp: `count` results, `rows` rows of the partial results apart.
template <class T>
__device__ void combine(const LibraryPartials& partials, int64_t first, int count,
                        __nv_bfloat16* out, int lane) {
  const float* sums = partials.sums + first;
  float highest = -INFINITY;
  for (int i = lane; i < count; i += 32) {
    highest = fmaxf(highest, sums[int64_t{i} * partials.rows]);
  }
  highest = warp_max(highest);
  const float base = highest == -INFINITY ? 0.0f : highest;
  float all = 0;
  for (int i = lane; i < count; i += 32) all += exp2f(sums[int64_t{i} * partials.rows] - base);
  all = warp_sum(all);
  float4 values[kPieces] = {};
  for (int i = 0; i < count; ++i) {
    const int64_t row = first + int64_t{i} * partials.rows;
    const float weight = exp2f(partials.sums[row] - base);
    if (weight == 0) continue;
    const T* from = static_cast<const T*>(partials.values) + row * kLibraryValues + lane * 4;
#pragma unroll
    for (int j = 0; j < kPieces; ++j) {
      const float4 piece = load_four(from + j * 128);
      values[j].x += weight * piece.x;
      values[j].y += weight * piece.y;
      values[j].z += weight * piece.z;
      values[j].w += weight * piece.w;
    }
  }
  const float factor = all > 0 ? 1.0f / all : 0.0f;
  for (int j = 0; j < kPieces; ++j) store_four(out + lane * 4 + j * 128, values[j], factor);
}

__global__ void __launch_bounds__(kWarps * 32)
    library_combine_kernel(const __grid_constant__ AttentionArgs args,
                           const __grid_constant__ LibraryRoom room) {
  wait_for_previous();
  const int row = static_cast<int>(blockIdx.x);
  const int head = static_cast<int>(blockIdx.y * kWarps + threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (row >= min(args.counts->num_rows, args.max_rows) || head >= args.num_heads) return;
  const LibraryLists& lists = room.lists;
  const int tile = lists.tile_of_row[row];
  const int count = lists.num_works[tile];
  int token = row - lists.first_row[tile];
  const LibraryTiles& tiles = room.tiles;
  // Gathered tiles end with their last row.
  if (tiles.q != nullptr)
    token += room.shape.tokens - (lists.first_row[tile + 1] - lists.first_row[tile]);
  const int query = token * args.num_heads + head;
  auto* out = static_cast<__nv_bfloat16*>(args.out) +
              (int64_t{row} * args.num_heads + head) * kLibraryValues;
  if (count == 1) {
    if (tiles.out == nullptr) return;
    const auto* from = tiles.out + (int64_t{tile} * tiles.queries + query) * kLibraryValues;
    for (int i = lane; i < kLibraryValues / 8; i += 32) {
      reinterpret_cast<uint4*>(out)[i] = reinterpret_cast<const uint4*>(from)[i];
    }
    return;
  }
  const LibraryPartials& partials = room.partials;
  const int64_t place = int64_t{query / partials.rows} * room.shape.max_places + lists.place[tile];
  const int64_t first = place * partials.rows + query % partials.rows;
  if (partials.are_floats) {
    combine<float>(partials, first, count, out, lane);
  } else {
    combine<__nv_bfloat16>(partials, first, count, out, lane);
  }
}

}  // namespace

void launch_library_combine(const AttentionArgs& args, const LibraryRoom& room,
                            cudaStream_t stream) {
  const dim3 grid(args.max_rows, ceil_div(args.num_heads, kWarps));
  library_combine_kernel<<<grid, kWarps * 32, 0, stream>>>(args, room);
}

}  // namespace foretoken::cuda
