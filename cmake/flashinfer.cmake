# FlashInfer's attention for Hopper: header-only, compiled for 90a alone, whatever else the plug-in is
# built for. Without its headers or 90a the plug-in has its own kernels only.
set(FORETOKEN_FLASHINFER_ROOT "" CACHE STRING
  "Headers of FlashInfer, as in flashinfer/data of its wheel (empty: those of ./quickstart --cuda; OFF: none)")
set(flashinfer_root "${FORETOKEN_FLASHINFER_ROOT}")
if("${flashinfer_root}" STREQUAL "")
  set(flashinfer_root ${PROJECT_SOURCE_DIR}/build/cuda-toolkit/flashinfer)
endif()
set(flashinfer_header include/flashinfer/attention/hopper/prefill_sm90.cuh)
if(NOT EXISTS ${flashinfer_root}/${flashinfer_header})
  if(FORETOKEN_FLASHINFER_ROOT)
    message(FATAL_ERROR "FORETOKEN_FLASHINFER_ROOT holds no ${flashinfer_header}; leave it empty or "
      "set it to the folder flashinfer/data of the wheel flashinfer-python")
  endif()
  message(STATUS "FlashInfer: no headers; --batch-invariant off will change nothing")
  return()
endif()
if(NOT FORETOKEN_CUDA_ARCHS MATCHES "90a")
  message(STATUS "FlashInfer: left out, since FORETOKEN_CUDA_ARCHS names no 90a")
  return()
endif()
message(STATUS "FlashInfer: ${flashinfer_root}")
add_library(foretoken_flashinfer OBJECT
  ${PROJECT_SOURCE_DIR}/src/kernels/attention/cuda/flashinfer/fa3.cu)
set_target_properties(foretoken_flashinfer PROPERTIES
  CUDA_ARCHITECTURES 90a-real POSITION_INDEPENDENT_CODE ON)
target_link_libraries(foretoken_flashinfer PRIVATE ft_device CUDA::cudart)
target_compile_options(foretoken_flashinfer PRIVATE ${cuda_options})
# They need a newer libcu++ than CUDA 13.0 has, which the wheel brings.
target_include_directories(foretoken_flashinfer SYSTEM PRIVATE
  ${flashinfer_root}/cccl/libcudacxx/include ${flashinfer_root}/include
  ${flashinfer_root}/cutlass/include)
target_compile_definitions(foretoken_cuda PRIVATE FORETOKEN_FLASHINFER=1)
target_link_libraries(foretoken_cuda PRIVATE foretoken_flashinfer)
