# FlashInfer's kernels: header-only, those for Hopper compiled for 90a alone and CUTLASS's for latents
# on Blackwell for 100a alone, whatever else the plug-in is built for. Without its headers or these
# architectures the plug-in has its own kernels only.
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
message(STATUS "FlashInfer: ${flashinfer_root}")

# Objects of the plug-in from sources that read FlashInfer's headers, for one architecture.
function(add_flashinfer_objects name arch definition)
  set(sources ${ARGN})
  list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/src/kernels/attention/cuda/)
  add_library(${name} OBJECT ${sources})
  set_target_properties(${name} PROPERTIES
    CUDA_ARCHITECTURES ${arch}-real POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${name} PRIVATE ft_device CUDA::cudart)
  target_compile_options(${name} PRIVATE ${cuda_options})
  # They need a newer libcu++ than CUDA 13.0 has, which the wheel brings.
  target_include_directories(${name} SYSTEM PRIVATE
    ${flashinfer_root}/cccl/libcudacxx/include ${flashinfer_root}/include
    ${flashinfer_root}/cutlass/include)
  target_compile_definitions(foretoken_cuda PRIVATE ${definition}=1)
  target_link_libraries(foretoken_cuda PRIVATE ${name})
endfunction()

if(FORETOKEN_CUDA_ARCHS MATCHES "90a")
  add_flashinfer_objects(foretoken_flashinfer 90a FORETOKEN_FLASHINFER
    flashinfer/fa3.cu library/flashinfer/latent_hopper.cu)
else()
  message(STATUS "FlashInfer: FORETOKEN_CUDA_ARCHS names no 90a, so that Hopper's are left out")
endif()
if(FORETOKEN_CUDA_ARCHS MATCHES "100a")
  add_flashinfer_objects(foretoken_cutlass_mla 100a FORETOKEN_CUTLASS_MLA
    library/flashinfer/latent_blackwell.cu)
endif()
