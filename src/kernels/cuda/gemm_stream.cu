#include "kernels/cuda/gemm_stream.cuh"

#include <type_traits>

namespace foretoken::cuda {
namespace {

// The narrowest tile that still leaves every block a multiprocessor of its own; matrices with more
// rows than that take wide tiles, which read x less often.
template <class Epilogue>
bool launch_for_width(const GemmArgs& args, Epilogue& epilogue, cudaStream_t stream) {
  const int num_sms = device_traits().num_sms / 4 * 4;
  const auto fits = [&](int width) { return ceil_div(args.n, width) <= num_sms; };
  if constexpr (!std::is_same_v<Epilogue, KeepBest>) {
    if (fits(16)) return launch_stream<StreamShape<16, 4, 8, 4, 8, 4>>(args, epilogue, stream);
    if (fits(48)) return launch_stream<StreamShape<48, 4, 4, 3, 8, 4>>(args, epilogue, stream);
    if (fits(64)) return launch_stream<StreamShape<64, 4, 4, 2, 8, 4>>(args, epilogue, stream);
    if (!fits(128) && fits(224)) {
      return launch_stream<StreamShape<224, 2, 3, 3, 8, 2>>(args, epilogue, stream);
    }
  }
  return launch_stream<StreamShape<128, 2, 4, 4, 8, 2>>(args, epilogue, stream);
}

bool can_stream(const GemmArgs& args) { return device_traits().wgmma && args.k % 8 == 0; }

}  // namespace

bool launch_gemm_stream(const GemmArgs& args, cudaStream_t stream) {
  if (!can_stream(args)) return false;
  return with_store(args, [&](const GemmArgs& all, auto& epilogue) {
    return launch_for_width(all, epilogue, stream);
  });
}

bool launch_gemm_stream(const GemmArgs& args, KeepBest& best, cudaStream_t stream) {
  return can_stream(args) && launch_for_width(args, best, stream);
}

}  // namespace foretoken::cuda
