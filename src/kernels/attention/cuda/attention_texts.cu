#include "kernels/attention/cuda/attention_common.cuh"
#include "kernels/attention/cuda/kv_codes.cuh"

// Rows of whole texts (AttentionArgs::last_seen) in plain float arithmetic: a block's rows share
// the keys and values that it reads, 32 positions at a time from multiples of 32 on. A row's
// arithmetic does not depend on the others.
namespace foretoken::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kRowsOfWarp = 4;
constexpr int kRows = kWarps * kRowsOfWarp;
constexpr int kKeys = 32;
constexpr int kMaxDim = 256;
static_assert(kRows == 32, "a lane looks at the slot of a row");

// What a block has in shared memory, of heads of dim elements: rows of q and v are padded to a
// multiple of four floats, those of k to one more, so that lanes read keys from different banks.
struct Shared {
  float* q;        // [kRows, stride]
  float* k;        // [kKeys, stride + 1]
  float* v;        // [kKeys, stride]
  float* weights;  // [kRows, kKeys]
  int stride;

  __host__ __device__ static int stride_of(int dim) { return (dim + 3) / 4 * 4; }
  static int bytes(int dim) {
    const int stride = stride_of(dim);
    return (kRows * (stride + kKeys) + kKeys * (2 * stride + 1)) * static_cast<int>(sizeof(float));
  }
  __device__ Shared(float* memory, int dim) : stride(stride_of(dim)) {
    q = memory;
    weights = q + kRows * stride;
    v = weights + kRows * kKeys;
    k = v + kKeys * stride;
  }
};

// The rows of one text in a block, and what any of them sees.
struct TextRows {
  int begin;  // rows of the step
  int end;
  int slot;
  int first_kv;
  int last_kv;
};

// A warp's rows; without a row first > last.
template <int PerLane>
struct RowStates {
  int position[kRowsOfWarp];
  int first[kRowsOfWarp];
  int last[kRowsOfWarp];
  float highest[kRowsOfWarp];
  float weights[kRowsOfWarp];
  float values[kRowsOfWarp][PerLane];

  __device__ bool sees(int r, int begin) const {
    return begin <= last[r] && begin + kKeys - 1 >= first[r] && first[r] <= last[r];
  }
};

template <class T, KvFormat Format>
__device__ float element_of(const KvLayer& kv, const void* cache, int64_t entry, int d) {
  const uint8_t* bytes = static_cast<const uint8_t*>(cache) + entry * kv_entry_bytes(kv);
  return entry_value<T, Format>(kv, bytes, d);
}

// The text that row `row` of those before `end` belongs to.
__device__ TextRows text_of(const AttentionArgs& args, int row, int end) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int slot = args.row_slot[row];
  const bool same = row + lane < end && args.row_slot[row + lane] == slot;
  const uint32_t others = ~__ballot_sync(0xffffffffu, same);
  const int count = others == 0 ? 32 : __ffs(static_cast<int>(others)) - 1;
  const int last = row + count - 1;
  return {row, row + count, slot, first_visible(args, args.positions[row]),
          last_seen(args, last, args.positions[last])};
}

// Elements beyond a head, and positions that no row sees, become zero.
template <class T, KvFormat Format>
__device__ void load_keys(const AttentionArgs& args, const TextRows& text, int kv_head, int begin,
                          const Shared& shared) {
  const int dim = args.kv.head_dim;
  for (int j = static_cast<int>(threadIdx.x) / 32; j < kKeys; j += kWarps) {
    const int position = begin + j;
    const bool seen = position >= text.first_kv && position <= text.last_kv;
    const int64_t entry = seen ? kv_entry(args, text.slot, position, kv_head) : 0;
    for (int d = static_cast<int>(threadIdx.x) % 32; d < shared.stride; d += 32) {
      const bool is_element = seen && d < dim;
      shared.k[j * (shared.stride + 1) + d] =
          is_element ? element_of<T, Format>(args.kv, args.kv.k, entry, d) : 0.0f;
      shared.v[j * shared.stride + d] =
          is_element ? element_of<T, Format>(args.kv, args.kv.v, entry, d) : 0.0f;
    }
  }
}

template <class T>
__device__ void load_queries(const AttentionArgs& args, int first_row, int end, int head,
                             const Shared& shared) {
  const int dim = args.kv.head_dim;
  for (int m = static_cast<int>(threadIdx.x) / 32; m < kRows; m += kWarps) {
    const int64_t at = (int64_t{first_row + m} * args.num_heads + head) * dim;
    for (int d = static_cast<int>(threadIdx.x) % 32; d < shared.stride; d += 32) {
      const bool is_element = first_row + m < end && d < dim;
      shared.q[m * shared.stride + d] =
          is_element ? to_float(static_cast<const T*>(args.q)[at + d]) : 0.0f;
    }
  }
}

// Products of the warp's rows with the lane's key.
__device__ inline void multiply_keys(const Shared& shared, int warp, float (&dots)[kRowsOfWarp]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const float* key = shared.k + lane * (shared.stride + 1);
  const float* q = shared.q + warp * kRowsOfWarp * shared.stride;
  for (int d = 0; d < shared.stride; d += 4) {
    const float k[4] = {key[d], key[d + 1], key[d + 2], key[d + 3]};
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const float4 of_row = *reinterpret_cast<const float4*>(q + r * shared.stride + d);
      dots[r] = fmaf(of_row.x, k[0], dots[r]);
      dots[r] = fmaf(of_row.y, k[1], dots[r]);
      dots[r] = fmaf(of_row.z, k[2], dots[r]);
      dots[r] = fmaf(of_row.w, k[3], dots[r]);
    }
  }
}

// The weight of the lane's key for row r; rescales what the row has so far.
template <int PerLane>
__device__ float weigh_key(RowStates<PerLane>& rows, int r, bool visible, float score) {
  const float mine = visible ? score : -INFINITY;
  float highest = fmaxf(rows.highest[r], mine);
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, offset));
  }
  if (highest == -INFINITY) return 0.0f;
  const float keep = exp2_approx(__fsub_rn(rows.highest[r], highest));
  const float weight = visible ? exp2_approx(__fsub_rn(mine, highest)) : 0.0f;
  float sum = weight;
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, offset));
  }
  rows.weights[r] = fmaf(rows.weights[r], keep, sum);
  rows.highest[r] = highest;
#pragma unroll
  for (int i = 0; i < PerLane; ++i) rows.values[r][i] = __fmul_rn(rows.values[r][i], keep);
  return weight;
}

template <int PerLane>
__device__ void add_values(RowStates<PerLane>& rows, const Shared& shared, int warp) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const float* weights = shared.weights + warp * kRowsOfWarp * kKeys;
  for (int j = 0; j < kKeys; j += 4) {
    float w[kRowsOfWarp][4];
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; ++r) {
      const float4 four = *reinterpret_cast<const float4*>(weights + r * kKeys + j);
      w[r][0] = four.x, w[r][1] = four.y, w[r][2] = four.z, w[r][3] = four.w;
    }
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int i = 0; i < PerLane; ++i) {
        const int d = lane + i * 32;
        const float value = d < shared.stride ? shared.v[(j + n) * shared.stride + d] : 0.0f;
#pragma unroll
        for (int r = 0; r < kRowsOfWarp; ++r) {
          rows.values[r][i] = fmaf(w[r][n], value, rows.values[r][i]);
        }
      }
    }
  }
}

// One query head, and how its products become scores.
struct HeadScores {
  int head;
  int kv_head;
  float slope;
  Scoring scoring;
};

// Adds kKeys positions from `begin` on to the warp's rows.
template <int PerLane, KvFormat Format>
__device__ void add_keys(const AttentionArgs& args, const HeadScores& of, const Shared& shared,
                         int warp, int begin, RowStates<PerLane>& rows) {
  bool any = false;
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) any = any || rows.sees(r, begin);
  if (!any) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int mine = begin + lane;
  float dots[kRowsOfWarp] = {};
  multiply_keys(shared, warp, dots);
  __syncwarp();
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    float weight = 0.0f;
    if (rows.sees(r, begin)) {
      float dot = dots[r];
      if (Format == KvFormat::kFp8) dot = __fmul_rn(dot, key_scale(args.kv, of.kv_head));
      float score = __fmul_rn(of.scoring.capped ? capped(of.scoring, dot) : dot, of.scoring.scale);
      score = with_distance(args, of.head, of.slope, mine - rows.position[r], score);
      weight = weigh_key(rows, r, mine >= rows.first[r] && mine <= rows.last[r], score);
    }
    shared.weights[(warp * kRowsOfWarp + r) * kKeys + lane] = weight;
  }
  __syncwarp();
  add_values(rows, shared, warp);
}

template <int PerLane>
__device__ void begin_rows(const AttentionArgs& args, const TextRows& text, int first_row, int warp,
                           RowStates<PerLane>& rows) {
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    const int row = first_row + warp * kRowsOfWarp + r;
    const bool has = row >= text.begin && row < text.end;
    rows.position[r] = has ? args.positions[row] : 0;
    rows.first[r] = has ? first_visible(args, rows.position[r]) : 1;
    rows.last[r] = has ? last_seen(args, row, rows.position[r]) : 0;
    rows.highest[r] = -INFINITY;
    rows.weights[r] = 0.0f;
#pragma unroll
    for (int i = 0; i < PerLane; ++i) rows.values[r][i] = 0.0f;
  }
}

template <class T, int PerLane>
__device__ void store_rows(const AttentionArgs& args, const HeadScores& of, int first_row, int warp,
                           const RowStates<PerLane>& rows) {
  const int dim = args.kv.head_dim;
#pragma unroll
  for (int r = 0; r < kRowsOfWarp; ++r) {
    if (rows.first[r] > rows.last[r]) continue;
    const int64_t row = first_row + warp * kRowsOfWarp + r;
    const float weights = with_sink(args, of.head, rows.highest[r], rows.weights[r]);
    T* to = static_cast<T*>(args.out) + (row * args.num_heads + of.head) * dim;
#pragma unroll
    for (int i = 0; i < PerLane; ++i) {
      const int d = static_cast<int>(threadIdx.x % 32) + i * 32;
      if (d >= dim) break;
      to[d] = from_float<T>(scaled(args, row, of.kv_head, normalized(rows.values[r][i], weights)));
    }
  }
}

// Block (kRows rows, query head): one text of them after the other.
template <class T, int PerLane, KvFormat Format>
__global__ void __launch_bounds__(kWarps * 32) attention_texts_kernel(AttentionArgs args) {
  extern __shared__ __align__(16) float memory[];
  wait_for_previous();
  let_next_start();
  const int live = min(args.counts->num_rows, args.max_rows);
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int end = min(first_row + kRows, live);
  if (first_row >= end) return;
  const Shared shared(memory, args.kv.head_dim);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int head = static_cast<int>(blockIdx.y);
  const HeadScores of{head, kv_head_of(args, head), slope_of(args, head), scoring_of(args)};
  load_queries<T>(args, first_row, end, head, shared);
  for (int row = first_row; row < end;) {
    const TextRows text = text_of(args, row, end);
    RowStates<PerLane> rows;
    begin_rows(args, text, first_row, warp, rows);
    for (int begin = text.first_kv / kKeys * kKeys; begin <= text.last_kv; begin += kKeys) {
      __syncthreads();
      load_keys<T, Format>(args, text, of.kv_head, begin, shared);
      __syncthreads();
      add_keys<PerLane, Format>(args, of, shared, warp, begin, rows);
    }
    store_rows<T>(args, of, first_row, warp, rows);
    row = text.end;
  }
}

template <int PerLane, KvFormat Format>
auto kernel_for(DType dtype) {
  return dtype == DType::kBF16 ? attention_texts_kernel<__nv_bfloat16, PerLane, Format>
                               : attention_texts_kernel<float, PerLane, Format>;
}

template <int PerLane>
bool launch(const AttentionArgs& args, cudaStream_t stream) {
  const auto kernel =
      args.kv.format == KvFormat::kFp8    ? kernel_for<PerLane, KvFormat::kFp8>(args.kv.dtype)
      : args.kv.format == KvFormat::kInt8 ? kernel_for<PerLane, KvFormat::kInt8>(args.kv.dtype)
                                          : kernel_for<PerLane, KvFormat::kPlain>(args.kv.dtype);
  const int bytes = Shared::bytes(args.kv.head_dim);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) !=
      cudaSuccess) {
    cudaGetLastError();  // float rows of 256 want more than some devices' blocks have
    return false;
  }
  const dim3 grid(ceil_div(args.max_rows, kRows), args.num_heads);
  launch_kernel(kernel, grid, kWarps * 32, bytes, stream, args);
  return true;
}

}  // namespace

bool launch_attention_texts(const AttentionArgs& args, cudaStream_t stream) {
  if (args.last_seen == nullptr || args.kv.value_dim > 0 || args.kv.head_dim > kMaxDim) {
    return false;
  }
  if (args.kv.head_dim <= 64) return launch<2>(args, stream);
  if (args.kv.head_dim <= 128) return launch<4>(args, stream);
  return launch<8>(args, stream);
}

}  // namespace foretoken::cuda
