#include "engine/step/shape/graph_mode.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

namespace foretoken {
namespace {

EngineConfig config_with(const std::function<void(EngineConfig&)>& change) {
  EngineConfig config;
  config.max_num_batched_tokens = 512;
  change(config);
  return config;
}

GraphConfig resolved(const std::function<void(EngineConfig&)>& change, bool in_graphs = true) {
  const auto graphs = resolve_graphs(config_with(change), in_graphs);
  EXPECT_TRUE(graphs.ok()) << graphs.status().message();
  return graphs.ok() ? graphs.value() : GraphConfig{};
}

void expect_refused(const std::function<void(EngineConfig&)>& change, const char* part) {
  const Status status = resolve_graphs(config_with(change), true).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(GraphMode, NamesAreVllms) {
  for (const char* name : {"NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}) {
    EXPECT_STREQ(graph_mode_name(resolved([&](auto& c) { c.cudagraph_mode = name; }).mode), name);
  }
  EXPECT_EQ(resolved([](auto& c) { c.cudagraph_mode = "full_decode_only"; }).mode,
            GraphMode::kFullDecodeOnly);
  EXPECT_EQ(resolved([](auto&) {}).mode, GraphMode::kFull);
  expect_refused([](auto& c) { c.cudagraph_mode = "MOST"; },
                 "use NONE, PIECEWISE, FULL, FULL_DECODE_ONLY or FULL_AND_PIECEWISE");
}

TEST(GraphMode, DecodingAndMixedSteps) {
  const auto both = [](GraphMode mode) {
    return std::pair(launch_of(mode, true), launch_of(mode, false));
  };
  using enum StepLaunch;
  EXPECT_EQ(both(GraphMode::kNone), std::pair(kOps, kOps));
  EXPECT_EQ(both(GraphMode::kPiecewise), std::pair(kPieces, kPieces));
  EXPECT_EQ(both(GraphMode::kFull), std::pair(kGraph, kGraph));
  EXPECT_EQ(both(GraphMode::kFullDecodeOnly), std::pair(kGraph, kOps));
  EXPECT_EQ(both(GraphMode::kFullAndPiecewise), std::pair(kGraph, kPieces));
}

TEST(GraphMode, EagerAndAttentionThatCannotBeCaptured) {
  EXPECT_EQ(resolved([](auto& c) { c.enforce_eager = true; }).mode, GraphMode::kNone);
  const auto without = [](const char* name) {
    return resolved([&](auto& c) { c.cudagraph_mode = name; }, false).mode;
  };
  EXPECT_EQ(without("FULL"), GraphMode::kPiecewise);
  EXPECT_EQ(without("FULL_AND_PIECEWISE"), GraphMode::kPiecewise);
  EXPECT_EQ(without("NONE"), GraphMode::kNone);
}

TEST(GraphMode, Sizes) {
  using Sizes = std::vector<int>;
  const auto sizes = [](Sizes given, int most) {
    return resolved([&](auto& c) {
             c.cudagraph_capture_sizes = std::move(given);
             c.max_cudagraph_capture_size = most;
           })
        .sizes;
  };
  EXPECT_EQ(sizes({}, 0), Sizes{});
  EXPECT_EQ(sizes({8, 1, 24, 8}, 0), (Sizes{1, 8, 24}));
  EXPECT_EQ(sizes({8, 1, 24}, 16), (Sizes{1, 8}));
  EXPECT_EQ(sizes({}, 24), (Sizes{1, 2, 4, 8, 16, 24}));
  EXPECT_EQ(sizes({}, 1), (Sizes{1}));
  EXPECT_EQ(sizes({}, 600), (Sizes{1, 2, 4, 8, 16, 32, 64, 128, 256, 512}));
  EXPECT_EQ(sizes({}, INT32_MAX), sizes({}, 600));
  EXPECT_EQ(sizes({4, 1000}, 0), (Sizes{4}));
  expect_refused([](auto& c) { c.cudagraph_capture_sizes = {4, 0}; }, "1 or more");
  expect_refused([](auto& c) { c.cudagraph_capture_sizes = {600}; },
                 "no size of cudagraph_capture_sizes is within --max-num-batched-tokens 512");
  expect_refused(
      [](auto& c) {
        c.cudagraph_capture_sizes = {64};
        c.max_cudagraph_capture_size = 32;
      },
      "within max_cudagraph_capture_size 32");
  expect_refused([](auto& c) { c.max_cudagraph_capture_size = -1; }, "1 or more");
}

}  // namespace
}  // namespace foretoken
