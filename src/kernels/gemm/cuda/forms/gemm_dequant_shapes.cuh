#pragma once
#include <type_traits>

#include "kernels/gemm/cuda/forms/gemm_dequant_few.cuh"
#include "kernels/gemm/cuda/forms/gemm_dequant_many.cuh"
#include "kernels/gemm/cuda/forms/gemm_dequant_split.cuh"
#include "kernels/gemm/cuda/forms/gemm_dequant_teams.cuh"

// Which kernel and shape a product of quantised weights takes.
namespace foretoken::cuda {

// Whether teams of warps take up to 16 rows of x times any number of rows of the weight, and not
// only few, where no blocks have to share k: gates and ups of 28672 x 4096 at 1 and 16 rows on an
// H200, 30.1 and 32.6 us with E4M3, and 32.1 and 33.2 in blocks of 128 rows; the others are slower
// or even, as 30.4 and 32.1 beside 20.9 and 23.8 with 4 bits.
template <class Form>
inline constexpr bool kTeamsTakeWide = Form::kScalesUnits || std::is_same_v<Form, Fp8Form>;

// Whether blocks of 64 rows of the weight have a multiprocessor each.
inline bool is_narrow(const GemmArgs& args) {
  return ceil_div(args.n, 64) <= device_traits().num_sms;
}

// Up to how many rows of x teams take, and with how many warps of each there are four of them.
constexpr int kMaxTeamRows = 16, kManyTeamPairs = 4;

// As many teams as there are warps for, and as long stages as there is room for, since each costs
// the threads that copy some hundred cycles.
template <class Form, class Epilogue>
bool launch_few_rows(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                     cudaStream_t stream) {
  const auto launch_rows = [&]<int Rows, int Teams, int Units>() {
    return launch_dequant_teams<DequantTeamShape<Form, Rows, Teams, Units>>(args, matrix, epilogue,
                                                                            stream);
  };
  const auto launch = [&]<int Teams, int Units>() {
    return args.max_rows <= 8 ? launch_rows.template operator()<8, Teams, Units>()
                              : launch_rows.template operator()<16, Teams, Units>();
  };
  const int pairs = ceil_div(ceil_div(args.n, kTileN), device_traits().num_sms);
  if (pairs <= kManyTeamPairs) {
    return launch.template operator()<4, 4>() || launch.template operator()<4, 2>() ||
           launch.template operator()<2, 1>();
  }
  if constexpr (kTeamsTakeWide<Form>) {
    if (pairs <= 8) return launch.template operator()<2, 1>();
    return launch.template operator()<1, 1>();
  }
  return false;
}

// Up to 64 rows without scales of units. Which blocks have parts of k changes no bits.
template <class Form, class Epilogue>
bool launch_split(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                  cudaStream_t stream) {
  const int sms = device_traits().num_sms;
  // Whether clusters of two blocks a multiprocessor are all there at once; not all multiprocessors
  // can have one of four blocks.
  const bool apart = ceil_div(args.n, 128) * kMaxParts <= sms * 2 * 9 / 10;
  const auto launch = [&]<int Rows, int Warpgroups>() {
    return launch_dequant_split<DequantSplitShape<Form, Rows, Warpgroups>>(
        args, matrix, epilogue, apart ? kMaxParts : 1, stream);
  };
  if (args.max_rows <= 8) return launch.template operator()<8, 2>();
  if (args.max_rows <= 16) return launch.template operator()<16, 2>();
  if (args.max_rows <= 32) return launch.template operator()<32, 2>();
  // Twice as many rows of the weight read x half as often.
  const int wide = ceil_div(args.n, 256);
  if (!apart && wide <= sms && wide >= sms * 3 / 4) return launch.template operator()<64, 4>();
  return launch.template operator()<64, 2>();
}

template <class Form, class Epilogue>
bool launch_many_rows(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                      cudaStream_t stream) {
  const auto many = [&]<int Rows, int Warpgroups, int Places>() {
    return launch_dequant_many<Form, DequantManyShape<Form, Rows, Warpgroups, Places>>(
        args, matrix, epilogue, stream);
  };
  const bool narrow = is_narrow(args);
  if constexpr (Form::kScalesUnits) {
    if (args.max_rows <= 32) {
      return narrow ? many.template operator()<32, 1, 10>() : many.template operator()<32, 2, 8>();
    }
  }
  // Whether tiles of 64 columns and so many rows have a multiprocessor each.
  const auto have_room = [&](int rows) {
    return ceil_div(args.n, 64) * ceil_div(args.max_rows, rows) <= device_traits().num_sms;
  };
  if (args.max_rows <= 64 || have_room(64)) {
    return narrow ? many.template operator()<64, 1, 8>() : many.template operator()<64, 2, 6>();
  }
  if (have_room(128)) return many.template operator()<128, 1, 4>();
  return many.template operator()<128, 2, 4>();
}

template <class Form, class Epilogue>
void launch_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                    cudaStream_t stream) {
  if constexpr (std::is_same_v<Epilogue, KeepBest>) {
    // As few columns of keys as more than 64 rows may have.
    launch_dequant_few<Form, DequantShape<16, 4, 1, 1, 7>>(args, matrix, epilogue, stream);
  } else {
    if (args.max_rows <= kMaxTeamRows && launch_few_rows<Form>(args, matrix, epilogue, stream)) {
      return;
    }
    if constexpr (!Form::kScalesUnits) {
      if (args.max_rows <= kFewRows && launch_split<Form>(args, matrix, epilogue, stream)) return;
    }
    launch_many_rows<Form>(args, matrix, epilogue, stream);
  }
}

#define FT_DEQUANT_FORM(...)                                                                       \
  template void launch_dequant<__VA_ARGS__>(const GemmArgs&, const QuantizedMatrix&, StoreOutput&, \
                                            cudaStream_t);                                         \
  template void launch_dequant<__VA_ARGS__>(const GemmArgs&, const QuantizedMatrix&, StoreGated&,  \
                                            cudaStream_t);                                         \
  template void launch_dequant<__VA_ARGS__>(const GemmArgs&, const QuantizedMatrix&, KeepBest&,    \
                                            cudaStream_t);

}  // namespace foretoken::cuda
