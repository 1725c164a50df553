#pragma once
#include <type_traits>

#include "kernels/gemm/cuda/gemm_dequant_few.cuh"
#include "kernels/gemm/cuda/gemm_dequant_many.cuh"

// Which kernel and shape a product of quantised weights takes.
namespace foretoken::cuda {

// Whether blocks of 64 rows of the weight have a multiprocessor each: then they share little, and
// wgmma's chain, which widens ahead, is the fastest from one row on (measured on an H100).
inline bool is_narrow(const GemmArgs& args) {
  return ceil_div(args.n, 64) <= device_traits().num_sms;
}

template <class Form, class Epilogue>
bool launch_few_rows(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                     cudaStream_t stream) {
  return args.max_rows <= 8 ? launch_dequant_few<Form, DequantShape<8, 2, 1, 1, 14>>(
                                  args, matrix, epilogue, stream)
                            : launch_dequant_few<Form, DequantShape<16, 2, 1, 1, 14>>(
                                  args, matrix, epilogue, stream);
}

template <class Form, class Epilogue>
bool launch_many_rows(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                      cudaStream_t stream) {
  const auto many = [&]<int Rows, int Warpgroups, int Places>() {
    return launch_dequant_many<Form, DequantManyShape<Form, Rows, Warpgroups, Places>>(
        args, matrix, epilogue, stream);
  };
  const bool narrow = is_narrow(args);
  if (args.max_rows <= 32) {
    return narrow ? many.template operator()<32, 1, 10>() : many.template operator()<32, 2, 8>();
  }
  const bool has_room = 2 * ceil_div(args.n, 64) <= device_traits().num_sms;
  if (args.max_rows <= 64 || (args.max_rows <= 128 && has_room)) {
    return narrow ? many.template operator()<64, 1, 8>() : many.template operator()<64, 2, 6>();
  }
  if (args.max_rows <= 128 && narrow) return many.template operator()<128, 1, 4>();
  if constexpr (Form::kGroup == 0) {
    if (args.max_rows > (narrow ? 512 : 128)) return many.template operator()<256, 2, 2>();
  }
  return many.template operator()<128, 2, 4>();
}

template <class Form, class Epilogue>
void launch_dequant(const GemmArgs& args, const QuantizedMatrix& matrix, Epilogue& epilogue,
                    cudaStream_t stream) {
  if constexpr (std::is_same_v<Epilogue, KeepBest>) {
    // As few columns of keys as more than 64 rows may have.
    launch_dequant_few<Form, DequantShape<16, 4, 1, 1, 7>>(args, matrix, epilogue, stream);
  } else if constexpr (Form::kGroup == 0) {
    // Sums of parts would take registers that so many warps do not have.
    args.max_rows <= 16 && !is_narrow(args)
        ? launch_few_rows<Form>(args, matrix, epilogue, stream)
        : launch_many_rows<Form>(args, matrix, epilogue, stream);
  } else {
    launch_many_rows<Form>(args, matrix, epilogue, stream);
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
