#include "engine/local_ranks.h"

#include "engine/dialled_engine.h"

namespace foretoken {
namespace {

class LocalRanksTest : public DialledEngine {};

TEST_F(LocalRanksTest, AnEngineMakesItsRanksAndEndsThem) {
  for (const int ranks : {2, 4}) {
    EngineConfig several = config(3);
    several.cpu_threads = 1;
    several.parallel.tensor_parallel_size = ranks;
    const auto engine = make(several);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->stats().timing.exchange_ns, 0);
    EXPECT_EQ(engine->generate({request(7, 9, 30)})[0].token_ids, expected(7, 9, 30)) << ranks;
    EXPECT_GT(engine->stats().timing.exchange_ns, 0) << ranks;
  }
}

TEST_F(LocalRanksTest, StartsAndEndsManyTimes) {
  for (int i = 0; i < 20; ++i) {
    EngineConfig several = config(0);
    several.cpu_threads = 1;
    several.parallel.tensor_parallel_size = 2;
    const auto engine = make(several);
    ASSERT_NE(engine, nullptr);
    if (i % 2 == 0) {
      EXPECT_EQ(engine->generate({request(i, 3, 4)})[0].token_ids, expected(i, 3, 4));
    }
  }
}

}  // namespace
}  // namespace foretoken
