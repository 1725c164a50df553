// clang-format off: in the order in which they find each other's names.
#define FLASHINFER_CUTLASS_UTILS_CUH_  // for other kernels, and in need of cuRAND
#include <cutlass/cutlass.h>
#include <cute/tensor.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#define CUTLASS_CHECK(status) static_cast<void>(status)  // of a function that is not called here
namespace cutlass::fmha {
using namespace cute;  // which FlashInfer's headers take for granted
}
#include <flashinfer/attention/cutlass_mla.cuh>
// clang-format on

#include "kernels/attention/cuda/library/attention_library.cuh"

namespace foretoken::cuda {
namespace {

using Mla = flashinfer::attention::MlaSm100<cutlass::bfloat16_t>;
using Fmha = Mla::Fmha;

// Each row is a sequence of its own with one query, of 128 heads.
Fmha::Arguments arguments_of(const AttentionArgs& args, const LibraryRoom& room) {
  const LibraryTiles& tiles = room.tiles;
  int device = 0;
  cudaGetDevice(&device);
  void* q = tiles.q != nullptr ? tiles.q : const_cast<void*>(args.q);
  void* out = tiles.out != nullptr ? tiles.out : args.out;
  Fmha::Arguments arguments = flashinfer::attention::args_from_options<Mla>(
      out, nullptr, q, args.kv.k, room.lists.kv_len, tiles.pages, args.max_rows, args.max_blocks,
      1 << 24, args.kv.block_size, device);
  arguments.mainloop.softmax_scale = args.scale;
  return arguments;
}

}  // namespace

int64_t cutlass_mla_floats(const AttentionArgs& args) {
  const auto bytes = Fmha::get_workspace_size(arguments_of(args, LibraryRoom{}));
  return static_cast<int64_t>(bytes + 3) / 4;
}

bool run_cutlass_mla(const AttentionArgs& args, const LibraryRoom& room, cudaStream_t stream) {
  const Fmha::Arguments arguments = arguments_of(args, room);
  Fmha fmha;
  const auto good = cutlass::Status::kSuccess;
  return Fmha::can_implement(arguments) == good &&
         fmha.initialize(arguments, room.rest, stream) == good && fmha.run(stream) == good;
}

}  // namespace foretoken::cuda
