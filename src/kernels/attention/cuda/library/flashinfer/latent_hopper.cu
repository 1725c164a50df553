// As in attention/cuda/flashinfer/fa3.cu: FlashInfer's helpers for other kernels need cuRAND.
#define FLASHINFER_CUTLASS_UTILS_CUH_
#include <cutlass/numeric_types.h>
#include <cute/tensor.hpp>
#include <flashinfer/attention/mla_hopper.cuh>
#include <flashinfer/attention/mla_params.cuh>

#include "kernels/attention/cuda/library/attention_library.cuh"

namespace foretoken::cuda {
namespace {

using Element = __nv_bfloat16;
using Params = flashinfer::MLAParams<Element, Element, Element, int32_t>;

// Blocks of the cache are FlashInfer's pages. It merges nothing: its lists for that are empty.
Params params_of(const AttentionArgs& args, const LibraryRoom& room) {
  const LibraryLists& lists = room.lists;
  Params params{};
  params.q_nope = static_cast<Element*>(const_cast<void*>(args.q));
  params.q_pe = params.q_nope + kLibraryValues;
  params.ckv = static_cast<Element*>(args.kv.k);
  params.kpe = params.ckv + kLibraryValues;
  params.partial_o = static_cast<Element*>(room.partials.values);
  params.partial_lse = room.partials.sums;
  params.final_o = static_cast<Element*>(args.out);
  params.q_indptr = lists.work_first;
  params.kv_indptr = lists.work_pages;
  params.partial_indptr = lists.work_place;
  params.merge_packed_offset_start = params.merge_packed_offset_end = lists.zeros;
  params.merge_partial_packed_offset_start = params.merge_partial_packed_offset_end = lists.zeros;
  params.merge_partial_stride = lists.zeros;
  params.kv_indices = const_cast<int32_t*>(args.block_tables);
  params.q_len = lists.work_rows;
  params.kv_len = lists.work_len;
  params.q_start = lists.work_query;
  params.kv_start = lists.work_begin;
  params.kv_end = lists.work_end;
  params.work_indptr = lists.bounds;
  params.block_size = flashinfer::uint_fastdiv(static_cast<uint32_t>(args.kv.block_size));
  params.num_heads = flashinfer::uint_fastdiv(static_cast<uint32_t>(args.num_heads));
  params.q_nope_stride_h = params.q_pe_stride_h = kLibraryDim;
  params.q_nope_stride_n = params.q_pe_stride_n = args.num_heads * kLibraryDim;
  params.ckv_stride_n = params.kpe_stride_n = kLibraryDim;
  params.ckv_stride_page = params.kpe_stride_page = args.kv.block_size * kLibraryDim;
  params.o_stride_h = kLibraryValues;
  params.o_stride_n = args.num_heads * kLibraryValues;
  params.sm_scale = args.scale;
  return params;
}

template <flashinfer::MaskMode Mask>
bool run(const Params& params, int blocks, cudaStream_t stream) {
  return flashinfer::mla::BatchMLAPageAttentionHopper<Mask, kLibraryValues,
                                                      kLibraryDim - kLibraryValues>(
             params, 1, static_cast<uint32_t>(blocks), stream) == cudaSuccess;
}

}  // namespace

bool run_flashinfer_mla(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream) {
  const Params params = params_of(args, room);
  const int blocks = room.shape.chunks * room.shape.parts;
  // Its causal bound of a chunk is rounded down to whole rows, so rows of several chunks have none.
  return room.shape.tokens > 1 ? run<flashinfer::MaskMode::kCausal>(params, blocks, stream)
                               : run<flashinfer::MaskMode::kNone>(params, blocks, stream);
}

}  // namespace foretoken::cuda
