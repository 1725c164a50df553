# DeepSeek's FlashMLA for Hopper, of a folder of its source, compiled for 90a alone.
set(FORETOKEN_FLASHMLA_DIR "" CACHE PATH
  "A folder of FlashMLA's source, github.com/deepseek-ai/FlashMLA (empty: the plug-in has none of it)")
if(NOT FORETOKEN_FLASHMLA_DIR)
  return()
endif()
set(flashmla_header csrc/sm90/decode/dense/splitkv_mla.cuh)
if(NOT EXISTS ${FORETOKEN_FLASHMLA_DIR}/${flashmla_header})
  message(FATAL_ERROR "FORETOKEN_FLASHMLA_DIR holds no ${flashmla_header}; leave it empty or set it to "
    "a clone of https://github.com/deepseek-ai/FlashMLA")
endif()
if(NOT FORETOKEN_CUDA_ARCHS MATCHES "90a")
  message(FATAL_ERROR "FORETOKEN_FLASHMLA_DIR is for Hopper; give FORETOKEN_CUDA_ARCHS with 90a or leave it empty")
endif()
# CUTLASS: its submodule, else FlashInfer's copy.
set(flashmla_cutlass ${FORETOKEN_FLASHMLA_DIR}/csrc/cutlass/include)
if(NOT EXISTS ${flashmla_cutlass}/cute/tensor.hpp)
  set(flashmla_cutlass ${flashinfer_root}/cutlass/include ${flashinfer_root}/cccl/libcudacxx/include)
  if(NOT EXISTS ${flashinfer_root}/cutlass/include/cute/tensor.hpp)
    message(FATAL_ERROR "FORETOKEN_FLASHMLA_DIR holds no csrc/cutlass; run 'git submodule update --init "
      "csrc/cutlass' in it, or set FORETOKEN_FLASHINFER_ROOT")
  endif()
endif()
message(STATUS "FlashMLA: ${FORETOKEN_FLASHMLA_DIR}")
add_library(foretoken_flashmla OBJECT
  ${PROJECT_SOURCE_DIR}/src/kernels/attention/cuda/library/flashmla/flashmla.cu)
set_target_properties(foretoken_flashmla PROPERTIES
  CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
target_link_libraries(foretoken_flashmla PRIVATE ft_device CUDA::cudart)
# Fast functions as in its own build.
target_compile_options(foretoken_flashmla PRIVATE ${cuda_options} --use_fast_math)
target_include_directories(foretoken_flashmla SYSTEM PRIVATE
  ${FORETOKEN_FLASHMLA_DIR}/csrc ${flashmla_cutlass})
target_compile_definitions(foretoken_cuda PRIVATE FORETOKEN_FLASHMLA=1)
target_link_libraries(foretoken_cuda PRIVATE foretoken_flashmla)
