#include "device/cpu/cpu_graph.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace foretoken::cpu {
namespace {

TEST(CpuGraph, TasksComeBackInOrderWithTheirArguments) {
  CpuGraph graph;
  int target = 0;
  std::array<char, 3> odd = {'a', 'b', 'c'};
  graph.add({TaskKind::kOp, 7}, odd.data(), odd.size());
  graph.add({TaskKind::kOp, 8}, nullptr, 0);
  const FillArgs fill{&target, 5, sizeof target};
  graph.add({TaskKind::kFill, 0}, &fill, sizeof fill);
  odd = {};
  std::vector<int> ops;
  graph.for_each([&](TaskName name, const void* args) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(args) % alignof(std::max_align_t), 0u);
    if (name.op == 7) {
      EXPECT_EQ(std::memcmp(args, "abc", 3), 0);
    }
    if (name.kind == TaskKind::kFill) {
      EXPECT_EQ(static_cast<const FillArgs*>(args)->dst, &target);
      EXPECT_EQ(static_cast<const FillArgs*>(args)->byte_value, 5);
    }
    ops.push_back(name.op);
  });
  EXPECT_EQ(ops, (std::vector<int>{7, 8, 0}));
  EXPECT_EQ(graph.num_nodes(), 3);
}

// An engine keeps up to a thousand graphs of a hundred and more tasks.
TEST(CpuGraph, ATaskTakesTheBytesOfItsArguments) {
  CpuGraph graph;
  const std::array<char, kMaxOpArgs> args{};
  for (int i = 0; i < 100; ++i) graph.add({TaskKind::kOp, 1}, args.data(), 48);
  EXPECT_LE(graph.num_bytes(), 100u * 64);
  graph.clear();
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_EQ(graph.num_bytes(), 0u);
}

}  // namespace
}  // namespace foretoken::cpu
