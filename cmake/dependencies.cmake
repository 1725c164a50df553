# Libraries of the distribution; docs/DEPENDENCIES.md gives the reason for each.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL 7.85 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)

# Not find_package(dnnl): Debian's package file wants OpenCL, which the CPU engine never uses.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
if(NOT DNNL_INCLUDE_DIR OR NOT DNNL_LIBRARY)
  message(FATAL_ERROR "oneDNN not found: install libdnnl-dev, or set DNNL_INCLUDE_DIR and DNNL_LIBRARY")
endif()
add_library(foretoken_dnnl INTERFACE)
target_include_directories(foretoken_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(foretoken_dnnl INTERFACE ${DNNL_LIBRARY})

# Line editing of `foretoken chat`.
find_path(EDIT_INCLUDE_DIR histedit.h)
find_library(EDIT_LIBRARY edit)
if(NOT EDIT_INCLUDE_DIR OR NOT EDIT_LIBRARY)
  message(FATAL_ERROR "libedit not found: install libedit-dev, or set EDIT_INCLUDE_DIR and EDIT_LIBRARY")
endif()
add_library(foretoken_edit INTERFACE)
target_include_directories(foretoken_edit SYSTEM INTERFACE ${EDIT_INCLUDE_DIR})
target_link_libraries(foretoken_edit INTERFACE ${EDIT_LIBRARY})

# Header-only parts of Boost: Beast and Asio.
find_package(Boost 1.81 REQUIRED)
add_library(foretoken_boost INTERFACE)
target_link_libraries(foretoken_boost INTERFACE Boost::headers Threads::Threads)

# Not find_package(prometheus-cpp): its package file wants civetweb, which only its own server uses.
find_path(PROMETHEUS_INCLUDE_DIR prometheus/registry.h)
find_library(PROMETHEUS_CORE_LIBRARY prometheus-cpp-core)
if(NOT PROMETHEUS_INCLUDE_DIR OR NOT PROMETHEUS_CORE_LIBRARY)
  message(FATAL_ERROR "prometheus-cpp not found: install prometheus-cpp-dev, or set PROMETHEUS_INCLUDE_DIR and PROMETHEUS_CORE_LIBRARY")
endif()
add_library(foretoken_prometheus INTERFACE)
target_include_directories(foretoken_prometheus SYSTEM INTERFACE ${PROMETHEUS_INCLUDE_DIR})
target_link_libraries(foretoken_prometheus INTERFACE ${PROMETHEUS_CORE_LIBRARY})
