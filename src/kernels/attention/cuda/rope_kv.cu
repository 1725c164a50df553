#include "kernels/attention/rope_kv.h"

#include <algorithm>

#include "base/float8.h"
#include "kernels/attention/cuda/kv_codes.cuh"
#include "kernels/attention/cuda/rotation.cuh"
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/cuda/norm_row.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kHeadsPerBlock = kThreads / 32;  // a warp sums the squares of each

// Index of a row's entry of a KV head in the K or V cache.
__device__ int64_t entry_index(const KvLayer& kv, int slot, int kv_head) {
  const int entry = kv.context_size == 1 ? slot : entry_of_slot(kv, slot);
  return (int64_t{entry / kv.block_size} * kv.num_kv_heads + kv_head) * kv.block_size +
         entry % kv.block_size;
}

// Whether a head's result is stored here: entries of other ranks' positions are not.
__device__ bool is_kept(const RopeKvArgs& args, int slot, int head) {
  return head < args.num_heads || args.kv.context_size == 1 || holds_slot(args.kv, slot);
}

// Whether a head's result is stored as codes of KvFormat::kFp8.
__device__ bool has_codes(const RopeKvArgs& args, int head) {
  return args.kv.format == KvFormat::kFp8 && head >= args.num_heads;
}

// Where a head's result goes: q_out, or the entry of the row in the K or V cache. T: of an element,
// or of a code.
template <class T>
__device__ T* destination(const RopeKvArgs& args, int row, int slot, int head) {
  const KvLayer& kv = args.kv;
  if (head < args.num_heads) {
    return static_cast<T*>(args.q_out) + (int64_t{row} * args.num_heads + head) * kv.head_dim;
  }
  const int kv_head = (head - args.num_heads) % kv.num_kv_heads;
  const bool is_key = head < args.num_heads + kv.num_kv_heads;
  return static_cast<T*>(is_key ? kv.k : kv.v) + entry_index(kv, slot, kv_head) * kv.head_dim;
}

// What the codes of a key's or value's head are multiplied by.
__device__ float scale_of(const RopeKvArgs& args, int head) {
  const KvLayer& kv = args.kv;
  const int kv_head = (head - args.num_heads) % kv.num_kv_heads;
  return head < args.num_heads + kv.num_kv_heads ? key_scale(kv, kv_head)
                                                 : value_scale(kv, kv_head);
}
__device__ uint8_t code_of(float value, float scale) { return e4m3_code(__fdiv_rn(value, scale)); }

// Element i of a head's result, there.
template <class T>
__device__ void store_element(const RopeKvArgs& args, int row, int slot, int head, int i,
                              float value) {
  if (has_codes(args, head)) {
    destination<uint8_t>(args, row, slot, head)[i] = code_of(value, scale_of(args, head));
  } else {
    destination<T>(args, row, slot, head)[i] = from_float<T>(value);
  }
}

__device__ void store_codes(uint8_t* to, float4 v, float scale) {
  *reinterpret_cast<uchar4*>(to) = {code_of(v.x, scale), code_of(v.y, scale), code_of(v.z, scale),
                                    code_of(v.w, scale)};
}

// Weight of the norm of q, k or v head number `head`; null: the head is taken as it is.
__device__ const float* norm_weight(const RopeKvArgs& args, int head) {
  if (head < args.num_heads) return args.q_norm;
  return head < args.num_heads + args.kv.num_kv_heads ? args.k_norm : nullptr;
}

__device__ float clipped(const RopeKvArgs& args, float x) {
  return args.clip > 0 ? fminf(fmaxf(x, -args.clip), args.clip) : x;
}

// 1 / sqrt(mean(x^2) + eps), for each lane of the warp.
__device__ float norm_factor(const RopeKvArgs& args, const float* x) {
  const int dim = args.kv.head_dim;
  const float eps = args.norm_eps;
  float squares = 0;
  for (int i = threadIdx.x % 32; i < dim; i += 32) {
    const float value = clipped(args, x[i]);
    squares = fmaf(value, value, squares);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  }
  return 1.0f / sqrtf(squares / static_cast<float>(dim) + eps);
}

// A head of a row as it is stored, element by element.
struct RopedHead {
  const RopeKvArgs& args;
  const float* x;
  const float* weight;  // of its norm, or null
  float factor;         // of its norm
  const float2* turns;  // [half], (cos, sin)
  int half;             // 0: it does not turn
  float scale;          // of queries

  __device__ float before(int i) const {
    const float value = clipped(args, x[i]);
    if (weight == nullptr) return value;
    const float normed = value * factor;
    return args.norm_after != 0 ? normed : normed * weight[i];
  }
  __device__ float operator[](int i) const {
    float value = before(i);
    if (i < half) {
      value = value * turns[i].x - before(i + half) * turns[i].y;
    } else if (i < 2 * half) {
      value = value * turns[i - half].x + before(i - half) * turns[i - half].y;
    }
    if (args.norm_after != 0 && weight != nullptr) value *= weight[i];
    return value * scale;
  }
};

// Codes of KvFormat::kInt8 and their scale behind them, by a warp.
__device__ void store_int8_head(const RopeKvArgs& args, int row, int slot, int head,
                                const RopedHead& values) {
  constexpr int kEach = kMaxHeadDim / 32;
  const KvLayer& kv = args.kv;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float own[kEach];
  uint32_t bits = 0;
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = lane + j * 32;
    own[j] = i < kv.head_dim ? values[i] : 0.0f;
    bits = max(bits, __float_as_uint(own[j]) & 0x7fffffffu);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    bits = max(bits, __shfl_xor_sync(0xffffffffu, bits, offset));
  }
  const CodeScale found = scale_of_highest(bits, 127.0f);
  const int kv_head = (head - args.num_heads) % kv.num_kv_heads;
  const bool is_key = head < args.num_heads + kv.num_kv_heads;
  uint8_t* entry = static_cast<uint8_t*>(is_key ? kv.k : kv.v) +
                   entry_index(kv, slot, kv_head) * kv_entry_bytes(kv);
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int i = lane + j * 32;
    if (i < kv.head_dim) entry[i] = int8_code(own[j], found.inverse);
  }
  if (lane == 0) memcpy(entry + kv.head_dim, &found.scale, sizeof found.scale);
}

// One block: one row, kHeadsPerBlock of its q, k and v heads.
template <class T>
__global__ void __launch_bounds__(kThreads) rope_kv_kernel(RopeKvArgs args) {
  __shared__ float2 turns[kMaxHeadDim / 2];  // (cos, sin)
  __shared__ float factors[kHeadsPerBlock];
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const int half = args.inv_freq == nullptr ? 0 : args.rotary_dim / 2;
  const float position = turning_position(args.positions, row, args.position_shift);
  const float q_scale = query_scale_at(args.query_scale, position);
  const int slot = args.kv_slot[row];
  for (int i = threadIdx.x; i < half; i += kThreads) {
    turns[i] = turn_at(args.inv_freq[i], position, args.scaling);
  }
  const int dim = args.kv.head_dim;
  const int num_rotated = args.num_heads + args.kv.num_kv_heads;
  const int num_heads = num_rotated + args.kv.num_kv_heads;
  const int first = blockIdx.y * kHeadsPerBlock;
  const int count = min(kHeadsPerBlock, num_heads - first);
  const float* x = args.qkv + (int64_t{row} * num_heads + first) * dim;
  const int warp = threadIdx.x / 32;
  if (warp < count && norm_weight(args, first + warp) != nullptr) {
    factors[warp] = norm_factor(args, x + warp * dim);
  }
  __syncthreads();
  const auto head_at = [&](int head) {
    const bool turns_too = first + head < num_rotated;
    return RopedHead{args,
                     x + head * dim,
                     norm_weight(args, first + head),
                     norm_weight(args, first + head) != nullptr ? factors[head] : 1.0f,
                     turns,
                     turns_too ? half : 0,
                     first + head < args.num_heads ? q_scale : 1.0f};
  };
  if (args.kv.format == KvFormat::kInt8 && warp < count && first + warp >= args.num_heads) {
    if (is_kept(args, slot, first + warp)) {
      store_int8_head(args, row, slot, first + warp, head_at(warp));
    }
  }
  for (int e = threadIdx.x; e < count * dim; e += kThreads) {
    const int head = e / dim;
    if (args.kv.format == KvFormat::kInt8 && first + head >= args.num_heads) break;
    if (!is_kept(args, slot, first + head)) continue;
    store_element<T>(args, row, slot, first + head, e % dim, head_at(head)[e % dim]);
  }
}

// Heads of elements of T of which all turn or none, in groups of 8: 4 of the first half and the 4
// of the second half that turn with them. A thread has kGroups of them at once.
constexpr int kGroups = 2;
constexpr int kMaxThreads = 512;

struct Group {
  float4 low;
  float4 high;
};

__device__ float4 times(float4 a, float4 b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
__device__ float4 times(float4 a, float b) { return {a.x * b, a.y * b, a.z * b, a.w * b}; }
__device__ float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

__device__ float sum_of_squares(float4 v) {
  return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, v.x * v.x)));
}

// x / sqrt(mean(x^2) + eps) * weight of the heads whose `lanes` (a power of two) hold it; called by
// whole warps.
__device__ void norm_head(Group& group, const float* weight, int i, int lanes, float eps) {
  float squares = sum_of_squares(group.low) + sum_of_squares(group.high);
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  }
  if (weight == nullptr) return;
  const float factor = 1.0f / sqrtf(squares / static_cast<float>(8 * lanes) + eps);
  group.low = times(times(group.low, factor), load4(weight + i));
  group.high = times(times(group.high, factor), load4(weight + 4 * lanes + i));
}

__device__ void turn_group(Group& group, const float2* by) {
  turn(group.low.x, group.high.x, by[0]);
  turn(group.low.y, group.high.y, by[1]);
  turn(group.low.z, group.high.z, by[2]);
  turn(group.low.w, group.high.w, by[3]);
}

// One block: one row. The attention that follows makes its plan meanwhile, from what the kernels
// before this one wrote. Rows up to max_rows are readable, so that the loads need not wait for the
// live count.
template <class T, bool Norms>
__global__ void __launch_bounds__(kMaxThreads) rope_kv_groups_kernel(RopeKvArgs args) {
  __shared__ float2 turns[kMaxHeadDim / 2];  // (cos, sin)
  const int dim = args.kv.head_dim;
  const int lanes = dim / 8;  // groups of a head
  const int num_turning = args.num_heads + args.kv.num_kv_heads;
  const int num_groups = (num_turning + args.kv.num_kv_heads) * lanes;
  const int half = args.inv_freq == nullptr ? 0 : args.rotary_dim / 2;
  const int thread = static_cast<int>(threadIdx.x);
  float inv_freq = thread < half ? args.inv_freq[thread] : 0.0f;
  wait_for_all_before();
  let_next_start();
  const int row = blockIdx.x;
  const bool live = row < args.counts->num_rows;
  const float position = turning_position(args.positions, row, args.position_shift);
  const float q_scale = query_scale_at(args.query_scale, position);
  const int slot = args.kv_slot[row];
  const float* x = args.qkv + int64_t{row} * num_groups * 8;
  for (int begin = 0; begin < num_groups; begin += kGroups * blockDim.x) {
    Group groups[kGroups] = {};
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      const int g = begin + j * blockDim.x + thread;
      if (g >= num_groups) continue;
      const float* from = x + g / lanes * dim + g % lanes * 4;
      groups[j] = {load4(from), load4(from + dim / 2)};
    }
    if (!live) return;
    if (begin == 0) {
      for (int i = thread; i < half; i += blockDim.x) {
        if (i != thread) inv_freq = args.inv_freq[i];
        turns[i] = turn_at(inv_freq, position, args.scaling);
      }
      __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < kGroups; ++j) {
      const int g = begin + j * blockDim.x + thread;
      const int head = g / lanes;
      const int i = g % lanes * 4;
      if (Norms) norm_head(groups[j], norm_weight(args, head), i, lanes, args.norm_eps);
      if (g >= num_groups) continue;
      if (half > 0 && head < num_turning) turn_group(groups[j], turns + i);
      if (q_scale != 1.0f && head < args.num_heads) {
        groups[j] = {times(groups[j].low, q_scale), times(groups[j].high, q_scale)};
      }
      if (!is_kept(args, slot, head)) continue;
      if (has_codes(args, head)) {
        uint8_t* to = destination<uint8_t>(args, row, slot, head) + i;
        const float scale = scale_of(args, head);
        store_codes(to, groups[j].low, scale);
        store_codes(to + dim / 2, groups[j].high, scale);
        continue;
      }
      T* to = destination<T>(args, row, slot, head) + i;
      store4(to, groups[j].low);
      store4(to + dim / 2, groups[j].high);
    }
  }
}

bool takes_groups(const RopeKvArgs& args) {
  const int dim = args.kv.head_dim;
  const bool all_or_none =
      args.inv_freq == nullptr || args.rotary_dim == dim || args.rotary_dim == 0;
  if (args.kv.format == KvFormat::kInt8) return false;  // which wants a head's highest element
  if (dim % 8 != 0 || !all_or_none || args.clip > 0 || args.norm_after != 0) return false;
  const bool norms = args.q_norm != nullptr || args.k_norm != nullptr;
  const int lanes = dim / 8;
  return !norms || (lanes <= 32 && (lanes & (lanes - 1)) == 0);
}

template <class T>
void launch(const RopeKvArgs& args, cudaStream_t stream) {
  const int heads = args.num_heads + 2 * args.kv.num_kv_heads;
  if (!takes_groups(args)) {
    launch_kernel(rope_kv_kernel<T>, dim3(args.max_rows, ceil_div(heads, kHeadsPerBlock)), kThreads,
                  0, stream, args);
    return;
  }
  const bool norms = args.q_norm != nullptr || args.k_norm != nullptr;
  const int groups = heads * args.kv.head_dim / 8;
  const int threads = std::min(ceil_div(ceil_div(groups, kGroups), 32) * 32, kMaxThreads);
  const auto kernel = norms ? rope_kv_groups_kernel<T, true> : rope_kv_groups_kernel<T, false>;
  prefer_shared_memory(kernel);
  launch_kernel(kernel, args.max_rows, threads, 0, stream, args);
}

}  // namespace

void launch_rope_kv(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<RopeKvArgs>(packed);
  args.kv.dtype == DType::kBF16 ? launch<__nv_bfloat16>(args, stream) : launch<float>(args, stream);
}

}  // namespace foretoken::cuda
