#include "kernels/comm/cuda/all_reduce_norm.cuh"

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/launchers.h"

namespace foretoken::cuda {
namespace {

// Dealing rows out moves 2 (n - 1) / n of the bytes at most instead of n - 1 times them, in two
// exchanges instead of one. Of 2 and 4 H100 measured with rows of 4,096 (h100-parallel-b.md in
// bench/results).
int max_rows_at_once(int ranks) { return ranks == 2 ? 64 : ranks == 4 ? 32 : 12; }

template <class T, int Ranks>
bool launch_rows(const AllReduceNormArgs& args, const CommView& comm, cudaStream_t stream) {
  const auto row_bytes = static_cast<int64_t>(sizeof(float)) * args.hidden;
  const int blocks =
      static_cast<int>(std::min<int64_t>(comm.max_blocks(kRowBlocks), kRowPartBytes / row_bytes));
  const bool deals = args.max_rows > max_rows_at_once(Ranks);
  const int rows_of_block = deals ? Ranks : 1;
  return with_norm_shape(args.hidden, [&](auto threads, auto vectors) {
    const auto kernel = deals ? sum_dealt_rows_kernel<T, threads(), vectors(), Ranks>
                              : sum_each_row_kernel<T, threads(), vectors(), Ranks>;
    for (int first = 0; first < args.max_rows; first += blocks * rows_of_block) {
      const int left = ceil_div(args.max_rows - first, rows_of_block);
      launch_kernel(kernel, std::min(left, blocks), threads(), 0, stream, args, comm, first);
    }
  });
}

// False: this form is not among the kernels.
template <class T>
bool launch(const AllReduceNormArgs& args, const CommView& comm, cudaStream_t stream) {
  switch (comm.size) {
    case 2:
      return launch_rows<T, 2>(args, comm, stream);
    case 4:
      return launch_rows<T, 4>(args, comm, stream);
    case 8:
      return launch_rows<T, 8>(args, comm, stream);
  }
  return false;
}

}  // namespace

void launch_all_reduce_norm(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<AllReduceNormArgs>(packed);
  if (nccl_of(args.comm) == nullptr) {
    const CommView& comm = peers_of(args.comm);
    const bool launched = args.out_dtype == DType::kBF16 ? launch<__nv_bfloat16>(args, comm, stream)
                                                         : launch<float>(args, comm, stream);
    if (launched) return;
  }
  const AllReduceNormOps ops = all_reduce_norm_ops(args);
  launch_all_reduce(&ops.sum, stream);
  launch_rms_norm(&ops.norm, stream);
}

}  // namespace foretoken::cuda
