#include "engine/parallel/make_engine.h"

#include <gtest/gtest.h>

#include <latch>

#include "engine/dialled_engine.h"

namespace foretoken {
namespace {

class MakeOneEngine : public DialledRanks {};

TEST_F(MakeOneEngine, AStartThatFailsLeavesTheBarrier) {
  std::latch engines(1);
  {
    StartBarrier barrier(engines, true);
    EngineConfig missing = config(0);
    missing.model = "/no/such/model";
    std::unique_ptr<Engine> engine;
    EXPECT_FALSE(make_one_engine(missing, &barrier, &engine).ok());
    EXPECT_EQ(engine, nullptr);
  }
  EXPECT_TRUE(engines.try_wait());
}

}  // namespace
}  // namespace foretoken
