#include <climits>

#include <sm90/decode/dense/splitkv_mla.cuh>

#include "kernels/attention/cuda/library/attention_library.cuh"

namespace foretoken::cuda {
namespace {

// FlashMLA's blocks by part: the first and last of its works.
__global__ void flashmla_parts_kernel(const __grid_constant__ LibraryLists lists, int parts,
                                      DecodingSchedMeta* out) {
  wait_for_all_before();
  for (int part = static_cast<int>(threadIdx.x); part < parts;
       part += static_cast<int>(blockDim.x)) {
    const int begin = lists.bounds[part];
    const int end = lists.bounds[part + 1];
    DecodingSchedMeta meta{};
    if (begin == end) {
      meta.begin_req_idx = meta.end_req_idx = INT_MAX;
    } else {
      const int last = end - 1;
      meta.begin_req_idx = lists.work_tile[begin];
      meta.end_req_idx = lists.work_tile[last];
      meta.begin_block_idx = lists.work_begin[begin] / kLibraryUnit;
      meta.end_block_idx = foretoken::cuda::ceil_div(lists.work_end[last], kLibraryUnit);
      meta.is_first_req_splitted = lists.num_works[meta.begin_req_idx] > 1;
      meta.is_last_req_splitted = lists.num_works[meta.end_req_idx] > 1;
      if (meta.is_first_req_splitted != 0) {
        meta.begin_split_idx =
            lists.work_place[begin] / kLibraryQueries - lists.place[meta.begin_req_idx];
      }
    }
    out[part] = meta;
  }
}

// Tiles are FlashMLA's sequences, each with `tokens` rows; blocks of the cache are its pages.
DenseAttnDecodeParams params_of(const AttentionArgs& args, const LibraryRoom& room) {
  constexpr float kLog2E = 1.44269504088896341f;
  const LibraryShape& shape = room.shape;
  const LibraryTiles& tiles = room.tiles;
  DenseAttnDecodeParams params{};
  params.b = args.max_rows;
  params.s_q = shape.tokens;
  params.q_seq_per_hk = shape.queries;
  params.d = kLibraryDim;
  params.d_v = kLibraryValues;
  params.h_q = params.q_head_per_hk = args.num_heads;
  params.h_k = 1;
  params.num_blocks = 1 << 24;  // bounds nothing: tables name blocks that exist
  params.is_causal = shape.tokens > 1;
  params.scale_softmax = args.scale;
  params.scale_softmax_log2 = args.scale * kLog2E;
  params.q_ptr = tiles.q != nullptr ? tiles.q : const_cast<void*>(args.q);
  params.k_ptr = args.kv.k;
  params.o_ptr = tiles.out != nullptr ? tiles.out : args.out;
  params.softmax_lse_ptr = room.rest;
  params.q_row_stride = params.q_head_stride = kLibraryDim;
  params.q_batch_stride = int64_t{shape.queries} * kLibraryDim;
  params.k_row_stride = params.k_head_stride = kLibraryDim;
  params.k_batch_stride = int64_t{kLibraryUnit} * kLibraryDim;
  params.o_row_stride = params.o_head_stride = kLibraryValues;
  params.o_batch_stride = int64_t{shape.queries} * kLibraryValues;
  params.block_table = tiles.pages;
  params.block_table_batch_stride = args.max_blocks;
  params.page_block_size = kLibraryUnit;
  params.seqlens_k_ptr = room.lists.kv_len;
  params.num_sm_parts = shape.parts;
  params.num_splits_ptr = room.lists.place;
  params.total_num_splits = shape.max_places;
  params.softmax_lseaccum_ptr = room.partials.sums;
  params.oaccum_ptr = static_cast<float*>(room.partials.values);
  return params;
}

}  // namespace

bool run_flashmla(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream) {
  DenseAttnDecodeParams params = params_of(args, room);
  const int64_t sums = int64_t{args.max_rows} * room.shape.queries;
  auto* parts = reinterpret_cast<DecodingSchedMeta*>(room.rest + (sums + 15) / 16 * 16);
  if (!args.repeats) {
    launch_kernel(flashmla_parts_kernel, 1, 256, 0, stream, room.lists, room.shape.parts, parts);
  }
  params.tile_scheduler_metadata_ptr = parts;
  params.stream = stream;
  sm90::run_flash_splitkv_mla_kernel<cutlass::bfloat16_t>(params);
  return true;
}

}  // namespace foretoken::cuda
