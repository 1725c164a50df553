# The CUDA plug-in alone, from a kit of tools/cuda/pack_for_gpu.sh: the host libraries and third-party
# headers that another machine built and brought. Its programs lie in this build folder already.
find_package(Threads REQUIRED)
set(kit ${FORETOKEN_GPU_KIT})
if(NOT EXISTS ${kit}/definitions.txt)
  message(FATAL_ERROR "FORETOKEN_GPU_KIT=${kit} is no unpacked kit; run tools/cuda/unpack_on_gpu.sh")
endif()
file(GLOB kit_shared ${kit}/lib/libspdlog.so.* ${kit}/lib/libfmt.so.*)
file(STRINGS ${kit}/definitions.txt kit_definitions)
add_library(ft_device INTERFACE)
target_include_directories(ft_device INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_include_directories(ft_device SYSTEM INTERFACE ${kit}/include)
target_compile_definitions(ft_device INTERFACE ${kit_definitions})
target_link_libraries(ft_device INTERFACE ${kit}/libft_device.a ${kit}/libft_group.a
  ${kit}/libft_base.a ${kit_shared} Threads::Threads ${CMAKE_DL_LIBS})
if(EXISTS ${kit}/flashinfer AND NOT FORETOKEN_FLASHINFER_ROOT)
  set(FORETOKEN_FLASHINFER_ROOT ${kit}/flashinfer)
endif()
include(cmake/cuda.cmake)
