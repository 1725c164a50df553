# libforetoken.so with the public API only, and what find_package(foretoken) needs.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(foretoken_shared SHARED ${PROJECT_SOURCE_DIR}/cmake/shared_library.cpp)
target_link_libraries(foretoken_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,ft_engine>)
target_include_directories(foretoken_shared INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(foretoken_shared INTERFACE cxx_std_20)
set(export_map ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.map)
target_link_options(foretoken_shared PRIVATE -Wl,--version-script=${export_map} -Wl,--no-undefined)
set_target_properties(foretoken_shared PROPERTIES
  OUTPUT_NAME foretoken EXPORT_NAME foretoken LINK_DEPENDS ${export_map}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

install(TARGETS foretoken_shared EXPORT foretokenTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/foretoken DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET foretoken)
  install(TARGETS foretoken RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  # Of a build of the program alone it is not there.
  install(TARGETS foretoken-dial RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime OPTIONAL)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/foretoken
  COMPONENT runtime)
if(TARGET foretoken_mpi)
  install(TARGETS foretoken_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()
if(TARGET foretoken_cuda)
  install(TARGETS foretoken_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
  install(FILES ${PROJECT_BINARY_DIR}/libcudart.so.${CUDAToolkit_VERSION_MAJOR}
    DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime)
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/foretoken)
install(EXPORT foretokenTargets NAMESPACE foretoken:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/foretokenConfig.cmake.in
  ${PROJECT_BINARY_DIR}/foretokenConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/foretokenConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/foretokenConfig.cmake
  ${PROJECT_BINARY_DIR}/foretokenConfigVersion.cmake DESTINATION ${package_dir})

# The example is built outside of this tree, against an installed copy, and run.
if(FORETOKEN_TESTS AND NOT FORETOKEN_SANITIZE)
  add_test(NAME install/example
    COMMAND ${CMAKE_COMMAND} -D SOURCE_DIR=${PROJECT_SOURCE_DIR} -D BINARY_DIR=${PROJECT_BINARY_DIR}
            -P ${PROJECT_SOURCE_DIR}/cmake/test_install.cmake)
  set_tests_properties(install/example PROPERTIES TIMEOUT 1800 LABELS slow)
endif()
