# The MPI plug-in, where an MPI library is installed: opened at run time, so that the same programs
# start without one.
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  add_library(foretoken_mpi MODULE ${PROJECT_SOURCE_DIR}/src/group/mpi/mpi_link.cpp)
  target_link_libraries(foretoken_mpi PRIVATE foretoken_warnings ft_group)
  target_include_directories(foretoken_mpi SYSTEM PRIVATE ${MPI_CXX_INCLUDE_DIRS})
  target_compile_definitions(foretoken_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(foretoken_mpi PRIVATE ${MPI_CXX_LIBRARIES})
  target_link_options(foretoken_mpi PRIVATE -Wl,--no-undefined)
else()
  message(STATUS "No MPI library: --communicator mpi is left out (libopenmpi-dev)")
endif()
