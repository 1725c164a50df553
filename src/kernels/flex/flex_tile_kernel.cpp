#include "kernels/flex/flex_tile_kernel.h"

namespace foretoken {

const char* const kFlexTileSource = R"cuda(
#define ALL 0xffffffffu
#define BLOCKS (TILE_DIM / 8)
#define CHUNKS (TILE_DIM / 32)
#define GROUPS (TILE_DIM / 64)
__device__ inline int split_shift(int position) {
  return 8 + (position >= 6144) + (position >= 16384);
}
__device__ inline int splits_before(int position) {
  return (position >= 6144 ? 12 : 0) + (position >= 16384 ? 16 : 0);
}
__device__ inline int split_of(int position) {
  return splits_before(position) + (position >> split_shift(position));
}
__device__ inline int split_begin(int split) {
  const int position = split < 24 ? 0 : split < 44 ? 6144 : 16384;
  return (split - splits_before(position)) << split_shift(position);
}
__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ inline unsigned int pack(float low, float high) {
  unsigned int word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ inline void multiply(float (&c)[4], unsigned int a0, unsigned int a1, unsigned int a2,
                                unsigned int a3, unsigned int b0, unsigned int b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// Two codes of a word as two of bfloat16, exactly: code `index` and the one behind it.
__device__ inline unsigned int widened(unsigned int codes, int index) {
  const unsigned int low = codes >> index * 8 & 255, high = codes >> index * 8 + 8 & 255;
  const float raise = __int_as_float(0x7b800000);  // 2^120
  const float a = __fmul_rn(__int_as_float((low & 128) << 24 | (low & 127) << 20), raise);
  const float b = __fmul_rn(__int_as_float((high & 128) << 24 | (high & 127) << 20), raise);
  return __byte_perm(__float_as_int(a), __float_as_int(b), 0x7632);
}
// Eight neighbouring elements of the cache from number `at` on; zeros where there is no entry.
__device__ inline uint4 eight_of(const void* cache, long long entry, int at) {
  uint4 words = make_uint4(0, 0, 0, 0);
  if (entry < 0) return words;
  const long long first = entry * TILE_DIM + at;
#if CODES
  const uint2 codes = *(const uint2*)((const unsigned char*)cache + first);
  words = make_uint4(widened(codes.x, 0), widened(codes.x, 2), widened(codes.y, 0),
                     widened(codes.y, 2));
#else
  words = *(const uint4*)((const unsigned short*)cache + first);
#endif
  return words;
}
__device__ inline unsigned int word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

// Up to 16 query rows of a KV head: token m / heads from `row` on, head first_head + m % heads.
struct Tile {
  int row, tokens, position, slot, kv_head, first_head, heads, first, last, prompt_end;
};
// What a lane knows of its rows lane / 4 and lane / 4 + 8.
struct Rows {
  int position[2], first[2], last[2], head[2];
  int slot, asked_query[2], asked_head[2];  // of expressions
};
struct Sums { float highest[2], weights[2], values[BLOCKS][4]; };

__device__ inline int first_seen(const FlexKernelArgs& a, int position) {
  int first = min(a.kv_begin, position);
  if (a.window > 0) first = max(first, position + 1 - a.window);
  if (a.chunk > 0) first = max(first, position - position % a.chunk);
  return first;
}
__device__ inline bool follows(const FlexKernelArgs& a, int row) {
  return a.row_slot[row] == a.row_slot[row - 1] && a.positions[row] == a.positions[row - 1] + 1;
}
// Tiles begin at the first row of a run and at positions that `tokens` divides.
__device__ inline bool begins_tile(const FlexKernelArgs& a, int row, int tokens) {
  return row == 0 || a.positions[row] % tokens == 0 || !follows(a, row);
}
__device__ inline Tile tile_of(const FlexKernelArgs& a, int row, int live, int most, int pair,
                               int heads) {
  const int group = a.num_heads / a.num_kv_heads, parts = (group + heads - 1) / heads;
  Tile tile;
  tile.row = row;
  tile.position = a.positions[row];
  tile.slot = a.row_slot[row];
  tile.tokens = 1;
  while (row + tile.tokens < live && !begins_tile(a, row + tile.tokens, most)) ++tile.tokens;
  tile.kv_head = pair / parts;
  tile.first_head = tile.kv_head * group + pair % parts * heads;
  tile.heads = min(heads, group - pair % parts * heads);
  tile.first = first_seen(a, tile.position);
  tile.last = tile.position + tile.tokens - 1;
  for (int i = 1; i < tile.tokens; ++i) tile.first = min(tile.first, first_seen(a, tile.position + i));
  tile.prompt_end = SEES_PROMPTS ? end_of_prompt(a, row) : 0;
  tile.last = max(tile.last, tile.prompt_end - 1);
  return tile;
}
__device__ inline Rows rows_of(const FlexKernelArgs& a, const Tile& tile) {
  Rows rows;
  for (int i = 0; i < 2; ++i) {
    const int m = threadIdx.x % 32 / 4 + i * 8, token = m / tile.heads;
    const bool valid = token < tile.tokens;
    rows.position[i] = tile.position + (valid ? token : 0);
    rows.head[i] = tile.first_head + m % tile.heads;
    rows.first[i] = first_seen(a, rows.position[i]);
    rows.last[i] = valid ? max(rows.position[i], tile.prompt_end - 1) : -1;
    rows.asked_query[i] = asked_query(a, tile.row, rows.position[i]);
    rows.asked_head[i] = asked_head(a, tile.row, rows.head[i]);
  }
  rows.slot = tile.slot;
  return rows;
}
// Positions of the unit of 32 from `begin` on that this lane's rows see: bit i * 8 + n * 2 + j is
// position begin + n * 8 + lane % 4 * 2 + j of row i.
__device__ inline unsigned int seen_of(const FlexKernelArgs& a, const Rows& rows, int begin,
                                       int prompt_end) {
  unsigned int seen = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int kv = begin + n * 8 + threadIdx.x % 4 * 2 + j;
        if (kv < rows.first[i] || kv > rows.last[i]) continue;
        if (flex_mask(rows.asked_query[i], asked_key(a, rows.slot, kv), rows.asked_head[i],
                      kv < prompt_end, words_of(a, rows.slot))) {
          seen |= 1u << (i * 8 + n * 2 + j);
        }
      }
    }
  }
  return seen;
}
__device__ inline float score_of(const FlexKernelArgs& a, const Rows& rows, int i, int kv,
                                 float product, float of_keys) {
  float score = __fmul_rn(__fmul_rn(product, a.scale), of_keys);
  if (a.softcap > 0) score = __fmul_rn(a.softcap, tanhf(__fdiv_rn(score, a.softcap)));
  if (a.slopes) {
    score = __fadd_rn(score, __fmul_rn(a.slopes[rows.head[i]], (float)(kv - rows.position[i])));
  }
  score = flex_score(score, rows.asked_query[i], asked_key(a, rows.slot, kv), rows.asked_head[i],
                     words_of(a, rows.slot));
  if (score != score || score == NONE) return NONE;
  return fmaxf(fminf(__fmul_rn(fminf(score, MOST), 1.44269504f), MOST), -MOST);
}
__device__ inline void clear(Sums& sums) {
  for (int i = 0; i < 2; ++i) {
    sums.highest[i] = NONE;
    sums.weights[i] = 0;
  }
#pragma unroll
  for (int d = 0; d < BLOCKS; ++d) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.values[d][i] = 0;
  }
}
// Turns the scores of a unit into weights and adds these up: see apply_softmax of
// attention_rows.cuh, whose highest score moves as seldom.
__device__ inline void weigh(Sums& sums, float (&scores)[4][4]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    float top = NONE;
#pragma unroll
    for (int n = 0; n < 4; ++n) top = fmaxf(top, fmaxf(scores[n][i * 2], scores[n][i * 2 + 1]));
    top = fmaxf(top, __shfl_xor_sync(ALL, top, 1));
    top = fmaxf(top, __shfl_xor_sync(ALL, top, 2));
    const float before = sums.highest[i];
    const bool rises = top > __fadd_rn(before, 8.0f);
    const float keep = rises ? exp2_of(__fsub_rn(before, top)) : 1.0f;
    if (rises) {
      sums.highest[i] = top;
#pragma unroll
      for (int d = 0; d < BLOCKS; ++d) {
        sums.values[d][i * 2] = __fmul_rn(sums.values[d][i * 2], keep);
        sums.values[d][i * 2 + 1] = __fmul_rn(sums.values[d][i * 2 + 1], keep);
      }
    }
    const float base = sums.highest[i] == NONE ? 0.0f : sums.highest[i];
    float sum = 0;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = scores[n][i * 2 + j];
        score = score == NONE ? 0.0f : exp2_of(__fsub_rn(score, base));
        sum = __fadd_rn(sum, score);
      }
    }
    sums.weights[i] = fmaf(sums.weights[i], keep, sum);
  }
}
// The unit of 32 positions from `begin` on. entry: of position begin + lane, -1 where there is none.
// Products take dimensions in the order in which a lane reads them, eight at a time.
__device__ inline void add_unit(const FlexKernelArgs& a, const Rows& rows, Sums& sums, int begin,
                                unsigned int seen, int entry, const uint4 (&q)[CHUNKS][2],
                                float of_keys) {
  const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  float scores[4][4] = {};
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const int of_key = __shfl_sync(ALL, entry, n * 8 + g);
#pragma unroll
    for (int j = 0; j < CHUNKS; ++j) {
      const uint4 k = eight_of(a.k, of_key, j * 32 + c * 8);
      multiply(scores[n], q[j][0].x, q[j][1].x, q[j][0].y, q[j][1].y, k.x, k.y);
      multiply(scores[n], q[j][0].z, q[j][1].z, q[j][0].w, q[j][1].w, k.z, k.w);
    }
  }
#pragma unroll
  for (int n = 0; n < 4; ++n) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int i = r / 2, j = r % 2;
      scores[n][r] = seen >> (i * 8 + n * 2 + j) & 1
                         ? score_of(a, rows, i, begin + n * 8 + c * 2 + j, scores[n][r], of_keys)
                         : NONE;
    }
  }
  weigh(sums, scores);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float(&low)[4] = scores[half * 2];
    const float(&high)[4] = scores[half * 2 + 1];
    const unsigned int a0 = pack(low[0], low[1]), a1 = pack(low[2], low[3]);
    const unsigned int a2 = pack(high[0], high[1]), a3 = pack(high[2], high[3]);
    int of_values[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      of_values[p] = __shfl_sync(ALL, entry, half * 16 + c * 2 + p % 2 + p / 2 * 8);
    }
#pragma unroll
    for (int d = 0; d < GROUPS; ++d) {
      uint4 v[4];
#pragma unroll
      for (int p = 0; p < 4; ++p) v[p] = eight_of(a.v, of_values[p], d * 64 + g * 8);
#pragma unroll
      for (int t = 0; t < 8; ++t) {
        const int halves = t % 2 ? 0x7632 : 0x5410;
        const unsigned int b0 = __byte_perm(word_of(v[0], t / 2), word_of(v[1], t / 2), halves);
        const unsigned int b1 = __byte_perm(word_of(v[2], t / 2), word_of(v[3], t / 2), halves);
        multiply(sums.values[d * 8 + t], a0, a1, a2, a3, b0, b1);
      }
    }
  }
}
__device__ inline void reduce_split(const FlexKernelArgs& a, const Tile& tile, const Rows& rows,
                                    Sums& sums, int split, const uint4 (&q)[CHUNKS][2]) {
  clear(sums);
  const float of_keys = a.k_scales ? a.k_scales[head_of_scales(a, tile.row, tile.kv_head)] : 1.0f;
  const int end = min(split_begin(split + 1) - 1, tile.last);
  for (int begin = max(split_begin(split), tile.first) & -32; begin <= end; begin += 32) {
    const unsigned int seen = seen_of(a, rows, begin, tile.prompt_end);
    if (!__any_sync(ALL, seen != 0)) continue;
    const int mine = begin + threadIdx.x % 32;
    int entry = -1;
    if (mine >= tile.first && mine <= tile.last) {
      const int block = a.block_tables[(long long)tile.slot * a.max_blocks + mine / a.block_size];
      entry = (block * a.num_kv_heads + tile.kv_head) * a.block_size + mine % a.block_size;
    }
    add_unit(a, rows, sums, begin, seen, entry, q, of_keys);
  }
  for (int i = 0; i < 2; ++i) {
    sums.weights[i] = __fadd_rn(sums.weights[i], __shfl_xor_sync(ALL, sums.weights[i], 1));
    sums.weights[i] = __fadd_rn(sums.weights[i], __shfl_xor_sync(ALL, sums.weights[i], 2));
  }
}
// In the order and with the arithmetic of merge_scales and merge of attention_common.cuh.
__device__ inline void merge_into(Sums& running, const Sums& part) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float highest = fmaxf(running.highest[i], part.highest[i]);
    const float base = highest == NONE ? 0.0f : highest;
    const float keep = exp2_of(__fsub_rn(running.highest[i], base));
    const float take = exp2_of(__fsub_rn(part.highest[i], base));
    running.highest[i] = highest;
    running.weights[i] = fmaf(running.weights[i], keep, __fmul_rn(part.weights[i], take));
#pragma unroll
    for (int d = 0; d < BLOCKS; ++d) {
#pragma unroll
      for (int j = i * 2; j < i * 2 + 2; ++j) {
        running.values[d][j] = fmaf(running.values[d][j], keep, __fmul_rn(part.values[d][j], take));
      }
    }
  }
}
__device__ inline int row_of(const Tile& tile, int i) {
  const int token = (threadIdx.x % 32 / 4 + i * 8) / tile.heads;
  return token < tile.tokens ? tile.row + token : -1;
}
__device__ inline void leave_partial(const FlexKernelArgs& a, const Tile& tile, const Rows& rows,
                                     const Sums& part, int split) {
  const long long all = (long long)a.max_rows * a.num_heads * a.max_splits;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = row_of(tile, i);
    if (row < 0) continue;
    const long long index = ((long long)row * a.num_heads + rows.head[i]) * a.max_splits + split;
    if (threadIdx.x % 4 == 0) {
      ((float2*)(a.workspace + all * TILE_DIM))[index] =
          make_float2(part.highest[i], part.weights[i]);
    }
    float* to = a.workspace + index * TILE_DIM + threadIdx.x % 4 * 16;
#pragma unroll
    for (int d = 0; d < GROUPS; ++d) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
#pragma unroll
        for (int t = 0; t < 8; t += 4) {
          *(float4*)(to + d * 64 + j * 8 + t) = make_float4(
              part.values[d * 8 + t][i * 2 + j], part.values[d * 8 + t + 1][i * 2 + j],
              part.values[d * 8 + t + 2][i * 2 + j], part.values[d * 8 + t + 3][i * 2 + j]);
        }
      }
    }
  }
}
__device__ inline void leave_result(const FlexKernelArgs& a, const Tile& tile, const Rows& rows,
                                    const Sums& sums) {
  const float of_values = a.v_scales ? a.v_scales[head_of_scales(a, tile.row, tile.kv_head)] : 1.0f;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = row_of(tile, i);
    if (row < 0) continue;
    float weights = sums.weights[i];
    if (a.sinks) {
      const float sink = __fmul_rn(a.sinks[rows.head[i]], 1.44269504088896341f);
      weights = __fadd_rn(weights, exp2_of(__fsub_rn(sink, sums.highest[i])));
    }
    const float inverse = weights > 0 ? __frcp_rn(weights) : 0.0f;
    const auto ended = [&](int d, int j) {
      const float value = __fmul_rn(sums.values[d][i * 2 + j], inverse);
      return a.v_scales ? __fmul_rn(value, of_values) : value;
    };
    unsigned short* to = (unsigned short*)a.out +
                         ((long long)row * a.num_heads + rows.head[i]) * TILE_DIM +
                         threadIdx.x % 4 * 16;
#pragma unroll
    for (int d = 0; d < BLOCKS; d += 8) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        *(uint4*)(to + d * 8 + j * 8) =
            make_uint4(pack(ended(d, j), ended(d + 1, j)), pack(ended(d + 2, j), ended(d + 3, j)),
                       pack(ended(d + 4, j), ended(d + 5, j)), pack(ended(d + 6, j), ended(d + 7, j)));
      }
    }
  }
}
__device__ inline void attend(const FlexKernelArgs& a, const Tile& tile, int part) {
  const int lane = threadIdx.x % 32;
  const Rows rows = rows_of(a, tile);
  uint4 q[CHUNKS][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = row_of(tile, i);
    const uint4* from = (const uint4*)((const unsigned short*)a.q +
                                       ((long long)max(row, 0) * a.num_heads + rows.head[i]) * TILE_DIM);
#pragma unroll
    for (int j = 0; j < CHUNKS; ++j) {
      q[j][i] = row < 0 ? make_uint4(0, 0, 0, 0) : from[j * 4 + lane % 4];
    }
  }
  const int first = split_of(tile.first), last = split_of(tile.last);
  Sums sums;
  if (a.num_parts > 0) {
    for (int split = first + part; split <= last; split += a.num_parts * 4) {
      reduce_split(a, tile, rows, sums, split, q);
      leave_partial(a, tile, rows, sums, split);
    }
    return;
  }
  Sums running;
  clear(running);
  for (int split = first; split <= last; ++split) {
    reduce_split(a, tile, rows, sums, split, q);
    merge_into(running, sums);
  }
  leave_result(a, tile, rows, running);
}
// Block (rows, KV head and up to 16 of its query heads, part). With parts, a row, whose tile's
// splits its warps and those of the other parts share; otherwise each warp has the tiles that begin
// in the next window of rows.
extern "C" __global__ void __launch_bounds__(128) flex_tiles(const FlexKernelArgs a) {
  const int warp = threadIdx.x / 32, live = min(*a.num_rows, a.max_rows);
  const int heads = min(a.num_heads / a.num_kv_heads, 16), most = 16 / heads;
  const int window = a.num_parts > 0 ? 1 : a.window_rows;
  const int begin = a.num_parts > 0 ? blockIdx.x : (blockIdx.x * 4 + warp) * window;
  for (int row = begin; row < min(begin + window, live); ++row) {
    if (!begins_tile(a, row, most)) continue;
    attend(a, tile_of(a, row, live, most, blockIdx.y, heads), blockIdx.z * 4 + warp);
  }
}
)cuda";

}  // namespace foretoken
