#include "kernels/lora/cuda/lora_look_up.cuh"

#include "kernels/lora/cuda/lora_tiles.cuh"

namespace foretoken::cuda {
namespace {

constexpr int kLookUpThreads = 128;

// A block takes a tile and a product at a time, a thread an element of t.
template <class T>
__global__ void __launch_bounds__(kLookUpThreads) lora_look_up_kernel(LoraShrinkArgs args) {
  wait_for_previous();
  const int count = *args.rows.num_tiles * args.num_parts;
  for (int index = blockIdx.x; index < count; index += gridDim.x) {
    const LoraTile tile = args.rows.tiles[index / args.num_parts];
    const int part = index % args.num_parts;
    const LoraMatrix matrix = lora_matrix(args.matrices, tile.adapter, args.adapter_stride, part);
    for (int i = threadIdx.x; i < tile.count * matrix.rank; i += kLookUpThreads) {
      const int place = tile.begin + i / matrix.rank, rank = i % matrix.rank;
      const int own = args.token_ids[args.rows.rows[place]];
      const int64_t id = own >= 0 && own < args.k ? own : 0;
      args.t[(int64_t{place} * args.num_parts + part) * args.max_rank + rank] =
          matrix.scale * to_float(lora_a<T>(matrix)[id * matrix.rank + rank]);
    }
  }
}

}  // namespace

void launch_lora_look_up(const LoraShrinkArgs& args, cudaStream_t stream) {
  const int64_t items = int64_t{max_lora_tiles(args.max_rows, args.max_adapters)} * args.num_parts;
  const auto kernel =
      args.dtype == DType::kBF16 ? lora_look_up_kernel<__nv_bfloat16> : lora_look_up_kernel<float>;
  launch_kernel(kernel, lora_blocks(items, 8), kLookUpThreads, 0, stream, args);
}

}  // namespace foretoken::cuda
