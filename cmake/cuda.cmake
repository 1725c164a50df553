# The CUDA plug-in: opened at run time, so that the same programs start on a machine without a driver.
if(FORETOKEN_CUDA_ARCHS STREQUAL "all")
  set(FORETOKEN_CUDA_ARCHS 80-real 86-real 89-real 90a-real 100a-real 120-real)
endif()
set(CMAKE_CUDA_ARCHITECTURES ${FORETOKEN_CUDA_ARCHS})
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
enable_language(CUDA)
# CMake 3.25 does not know that nvcc 13 speaks C++20.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
find_package(CUDAToolkit 13.0 REQUIRED)

file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cu)
list(FILTER cuda_sources EXCLUDE REGEX "/attention/cuda/(library/)?(flashinfer|flashmla)/")
if(NOT cuda_sources)
  message(FATAL_ERROR "FORETOKEN_CUDA is ON, but no cuda/ folder holds a .cu file; set it to OFF")
endif()
set(cuda_options
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr -lineinfo -Xcompiler=-Wall,-Wextra,-Wshadow>)
add_library(foretoken_cuda MODULE ${cuda_sources})
target_link_libraries(foretoken_cuda PRIVATE ft_device CUDA::cudart)
target_compile_options(foretoken_cuda PRIVATE ${cuda_options})
include(cmake/flashinfer.cmake)
include(cmake/flashmla.cmake)
# What the plug-in says where it has no code for a device.
list(JOIN FORETOKEN_CUDA_ARCHS "+" archs_text)
target_compile_definitions(foretoken_cuda PRIVATE FORETOKEN_CUDA_ARCHS="${archs_text}")
# wgmma needs code for 90a; code for plain 90 has to do without.
if(FORETOKEN_CUDA_ARCHS MATCHES "90" AND NOT FORETOKEN_CUDA_ARCHS MATCHES "90a")
  target_compile_definitions(foretoken_cuda PRIVATE FORETOKEN_PLAIN_SM90=1)
endif()
# Every symbol must be found at link time, not when the plug-in is opened.
target_link_options(foretoken_cuda PRIVATE -Wl,--no-undefined)
# The runtime library is copied beside the plug-in: the build folder can be moved to a GPU machine.
set_target_properties(foretoken_cuda PROPERTIES
  BUILD_RPATH "$ORIGIN;${CUDAToolkit_LIBRARY_DIR}" BUILD_WITH_INSTALL_RPATH OFF
  INSTALL_RPATH "$ORIGIN")
add_custom_command(TARGET foretoken_cuda POST_BUILD VERBATIM
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:CUDA::cudart>
          ${PROJECT_BINARY_DIR}/libcudart.so.${CUDAToolkit_VERSION_MAJOR})
if(TARGET foretoken)
  add_dependencies(foretoken foretoken_cuda)
endif()
