#include "kernels/rows/embed.h"

#include "base/check.h"
#include "kernels/cuda/launchers.h"
#include "kernels/rows/cuda/norm_row.cuh"
#include "kernels/rows/rms_norm.h"

namespace foretoken::cuda {
namespace {

constexpr int kThreads = 256;

template <class T>
__device__ const T* table_row(const EmbedArgs& args, int row) {
  const int32_t id = args.token_ids[row];
  const bool valid = id >= 0 && id < args.vocab;
  return static_cast<const T*>(args.table.data) + int64_t{valid ? id : 0} * args.hidden;
}

template <class T>
__global__ void embed_kernel(EmbedArgs args) {
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const T* from = table_row<T>(args, row);
  float* to = args.out + int64_t{row} * args.hidden;
  for (int i = threadIdx.x; i < args.hidden; i += kThreads) {
    to[i] = to_float(from[i]) * args.scale;
  }
}

// One block: one row and its norm.
template <class T, class Out, int Threads, int Vectors>
__global__ void __launch_bounds__(Threads) embed_norm_kernel(EmbedArgs args) {
  auto weight = load_norm_weight<Threads, Vectors>(args.norm_weight, args.hidden);
  wait_for_previous();
  let_next_start();
  const int row = blockIdx.x;
  if (row >= args.counts->num_rows) return;
  const T* from = table_row<T>(args, row);
  const int64_t begin = int64_t{row} * args.hidden;
  NormRow<Threads, Vectors> values{args.hidden, {}};
  values.for_each([&](int at, float4& v) {
    v = load4(from + at);
    v = {v.x * args.scale, v.y * args.scale, v.z * args.scale, v.w * args.scale};
  });
  values.for_each([&](int at, float4& v) { store4(args.out + begin + at, v); });
  store_normed(values, weight, values.scale(args.eps), static_cast<Out*>(args.normed) + begin);
}

template <class T, class Out>
void launch(const EmbedArgs& args, cudaStream_t stream) {
  const auto launch_normed = [&](auto threads, auto vectors) {
    launch_kernel(embed_norm_kernel<T, Out, threads(), vectors()>, args.max_rows, threads(), 0,
                  stream, args);
  };
  if (args.norm_weight != nullptr && with_norm_shape(args.hidden, launch_normed)) return;
  launch_kernel(embed_kernel<T>, args.max_rows, kThreads, 0, stream, args);
  if (args.norm_weight == nullptr) return;
  const RmsNormArgs norm{args.counts, args.out, nullptr,   args.norm_weight,
                         args.normed, nullptr,  0,         args.max_rows,
                         args.hidden, args.eps, args.dtype};
  launch_rms_norm(&norm, stream);
}

}  // namespace

void launch_embed(const void* packed, cudaStream_t stream) {
  const auto& args = op_args<EmbedArgs>(packed);
  FT_CHECK(args.table.together == 1 &&
           !args.table.quantized);  // no weight of this device lends its rows
  switch (args.table.dtype) {
    case DType::kBF16:
      return launch<__nv_bfloat16, __nv_bfloat16>(args, stream);
    case DType::kF16:
      return launch<__half, float>(args, stream);
    default:
      return launch<float, float>(args, stream);
  }
}

}  // namespace foretoken::cuda
