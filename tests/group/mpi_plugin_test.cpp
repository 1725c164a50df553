#include "group/mpi_plugin.h"

#include <gtest/gtest.h>

#include "socket_pairs.h"

namespace foretoken::group {
namespace {

// With the plug-in and mpirun: tests/e2e/group_suite.py.
TEST(MpiPlugin, AMissingPluginIsNamedWithItsRemedy) {
  setenv("FORETOKEN_MPI_PLUGIN", "/nowhere/libforetoken_mpi.so", 1);
  EXPECT_FALSE(has_mpi_plugin());
  const auto link = open_mpi_link(share(0, 2), std::vector<int>{0, 1});
  unsetenv("FORETOKEN_MPI_PLUGIN");
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(link.status().message().find("/nowhere/libforetoken_mpi.so"), std::string::npos);
  EXPECT_NE(link.status().message().find("--communicator sockets"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::group
