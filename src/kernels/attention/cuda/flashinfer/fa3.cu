// FlashInfer's helpers for other kernels include CUTLASS's test utilities, which need cuRAND; the
// attention kernels use none of them.
#define FLASHINFER_CUTLASS_UTILS_CUH_
#include <cutlass/numeric_types.h>
#include <cute/tensor.hpp>
#include <flashinfer/attention/hopper/default_params.cuh>
#include <flashinfer/attention/hopper/prefill_sm90.cuh>

#include "kernels/attention/cuda/attention_fa3.cuh"

namespace foretoken::cuda {
namespace {

using Element = cutlass::bfloat16_t;
using Params = flashinfer::BatchPrefillPagedParams<Element, Element, Element, int32_t>;

template <int Dim>
using Traits =
    flashinfer::AttentionKernelTraits</*USE_TMA_LOAD_KV=*/false, Dim, Dim, fa3_tile_rows(Dim),
                                      kFa3KvTile, /*NUM_STAGES=*/2, Element, Element, Element,
                                      int32_t, flashinfer::StandardAttention>;

// Blocks of the cache are FlashInfer's pages, [num_kv_heads, block_size, head_dim].
Params params_of(const AttentionArgs& args, const Fa3Lists& lists) {
  const KvLayer& kv = args.kv;
  Params params{};
  params.q_ptr = static_cast<Element*>(const_cast<void*>(args.q));
  params.k_ptr = static_cast<Element*>(kv.k);
  params.v_ptr = static_cast<Element*>(kv.v);
  params.o_ptr = static_cast<Element*>(args.out);
  params.work_indptr = lists.bounds;
  params.qo_tile_indices = lists.tile;
  params.head_indices = lists.head;
  params.qo_indptr = lists.first_row;
  params.qo_lens = lists.num_rows;
  params.kv_indptr = lists.kv_begin;
  params.kv_lens = lists.kv_len;
  params.kv_indices = const_cast<int32_t*>(args.block_tables);
  params.batch_indices = lists.head;  // read, but meant for a mask that is not used here
  params.additional_params.sm_scale = args.scale;
  params.q_stride_h = params.o_stride_h = kv.head_dim;
  params.q_stride_n = params.o_stride_n = int64_t{args.num_heads} * kv.head_dim;
  params.k_stride_n = params.v_stride_n = kv.head_dim;
  params.k_stride_h = params.v_stride_h = int64_t{kv.block_size} * kv.head_dim;
  params.k_page_stride = params.v_page_stride = kv.num_kv_heads * params.k_stride_h;
  params.nnz_qo = args.max_rows;
  params.num_qo_heads = args.num_heads;
  params.num_kv_heads = kv.num_kv_heads;
  params.group_size = args.num_heads / kv.num_kv_heads;
  params.page_size = kv.block_size;
  params.window_left = -1;
  params.causal = true;
  return params;
}

template <int Dim>
bool run(const AttentionArgs& args, const Fa3Lists& lists, cudaStream_t stream) {
  Params params = params_of(args, lists);
  return flashinfer::BatchPrefillWithPagedKVCacheKernelTraitsDispatched<
             Traits<Dim>, /*LEFT_SLIDING_WINDOW=*/false, /*CAUSAL=*/true,
             /*SAME_SCHEDULE_FOR_ALL_HEADS=*/false>(params, stream) == cudaSuccess;
}

}  // namespace

bool is_fa3_built() { return true; }

bool run_fa3(const AttentionArgs& args, const Fa3Lists& lists, cudaStream_t stream) {
  return args.kv.head_dim == 64 ? run<64>(args, lists, stream) : run<128>(args, lists, stream);
}

}  // namespace foretoken::cuda
