#pragma once
#include <type_traits>

#include "kernels/gemm/cuda/gemm_dequant_few.cuh"
#include "kernels/gemm/cuda/gemm_dequant_many.cuh"

// Which kernel and shape a product of quantised weights takes.
namespace foretoken::cuda {

// Groups of 8 rows of the weight a multiprocessor from which on its warps have enough of them.
inline constexpr int kWideGroups = 12;

template <class Form, class Epilogue>
bool launch_few_rows(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                     bool wide, cudaStream_t stream) {
  const auto few = [&]<class Shape>() {
    return launch_dequant_few<Form, Shape>(args, matrix, epilogue, stream);
  };
  constexpr int kNarrow = std::is_same_v<Epilogue, StoreGated> ? 2 : 1;
  if (args.max_rows <= 8) {
    return wide ? few.template operator()<DequantShape<8, 2, 1, 1, 14>>()
                : few.template operator()<DequantShape<8, kNarrow, 2, 1, 12>>();
  }
  return wide ? few.template operator()<DequantShape<16, 2, 1, 1, 14>>()
              : few.template operator()<DequantShape<16, kNarrow, 2, 2, 12>>();
}

template <class Form, class Epilogue>
bool launch_many_rows(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                      bool wide, cudaStream_t stream) {
  const auto many = [&]<int Rows, int Warpgroups, int Places>() {
    return launch_dequant_many<Form, DequantManyShape<Form, Rows, Warpgroups, Places>>(
        args, matrix, epilogue, stream);
  };
  if (args.max_rows <= 32) {
    return wide ? many.template operator()<32, 2, 8>() : many.template operator()<32, 1, 10>();
  }
  if (args.max_rows <= 64) {
    return wide ? many.template operator()<64, 2, 6>() : many.template operator()<64, 1, 8>();
  }
  if constexpr (Form::kGroup == 0) {
    if (args.max_rows > 128) return many.template operator()<256, 2, 2>();
  }
  return many.template operator()<128, 2, 4>();
}

template <class Form, class Epilogue>
void launch_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                    cudaStream_t stream) {
  if constexpr (std::is_same_v<Epilogue, KeepBest>) {
    // As few columns of keys as more than 64 rows may have.
    launch_dequant_few<Form, DequantShape<16, 4, 1, 1, 7>>(args, matrix, epilogue, stream);
  } else {
    const bool wide =
        ceil_div(ceil_div(args.n, kGroupRows), device_traits().num_sms) >= kWideGroups;
    // Sums of parts take registers that warps of many groups do not have.
    if (args.max_rows <= 8 || (args.max_rows <= 16 && !(wide && Form::kGroup != 0))) {
      launch_few_rows<Form>(args, matrix, epilogue, wide, stream);
    } else {
      launch_many_rows<Form>(args, matrix, epilogue, wide, stream);
    }
  }
}

#define FT_DEQUANT_FORM(Form)                                                               \
  template void launch_dequant<Form>(const GemmArgs&, const QuantizedMatrix&, StoreOutput&, \
                                     cudaStream_t);                                         \
  template void launch_dequant<Form>(const GemmArgs&, const QuantizedMatrix&, StoreGated&,  \
                                     cudaStream_t);                                         \
  template void launch_dequant<Form>(const GemmArgs&, const QuantizedMatrix&, KeepBest&,    \
                                     cudaStream_t);

}  // namespace foretoken::cuda
