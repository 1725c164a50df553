#include "engine/start/kv_budget.h"

#include <gtest/gtest.h>

#include <random>

#include "engine/dialled_engine.h"
#include "kernels/step_types.h"

namespace foretoken {
namespace {

// Ten blocks a sequence, four sequences, steps of two blocks.
EngineConfig small_config() {
  EngineConfig config;
  config.max_model_len = 160;
  config.max_num_seqs = 4;
  config.max_num_batched_tokens = 32;
  return config;
}

KvBlockCounts counts(const EngineConfig& config, const KvDemand& demand, int64_t budget) {
  const auto chosen = choose_num_blocks(config, demand, budget);
  EXPECT_TRUE(chosen.ok()) << chosen.status().message();
  return chosen.ok() ? chosen.value() : KvBlockCounts{};
}

int64_t bytes_of(const KvBlockCounts& blocks, const KvDemand& demand) {
  return blocks.full * demand.block_bytes + blocks.windowed * demand.window_block_bytes;
}

constexpr KvDemand kFull{.block_bytes = 1000};
// Window of three blocks: it touches four, and with two drafts in flight the fifth.
constexpr KvDemand kBoth{
    .block_bytes = 1000, .window_block_bytes = 4000, .window = 48, .max_draft_tokens = 2};

TEST(KvBudget, TheOverrideCountsUsableBlocks) {
  EngineConfig config = small_config();
  config.num_gpu_blocks_override = 7;
  EXPECT_EQ(counts(config, kFull, 0).full, 8);
  EXPECT_EQ(counts(config, kFull, 0).windowed, 0);
  config.num_gpu_blocks_override = 1000;
  EXPECT_EQ(counts(config, kFull, 0).full, 41);
}

TEST(KvBudget, BytesBuyBlocksButNeverMoreThanAllSequencesUse) {
  EXPECT_EQ(counts(small_config(), kFull, 20500).full, 20);
  EXPECT_EQ(counts(small_config(), kFull, int64_t{1} << 40).full, 41);
  EXPECT_EQ(counts(small_config(), kFull, int64_t{1} << 40).windowed, 0);
}

TEST(KvBudget, OneSequenceMustFit) {
  EXPECT_TRUE(choose_num_blocks(small_config(), kFull, 11000).ok());
  const auto blocks = choose_num_blocks(small_config(), kFull, 10999);
  EXPECT_EQ(blocks.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(blocks.status().message().find("max_model_len 160"), std::string::npos);
  EXPECT_EQ(kv_bytes_alone(small_config(), kFull), 11000);
  // What would not help is not named.
  EXPECT_EQ(blocks.status().message().find("--gpu-memory-utilization"), std::string::npos);
  EngineConfig gpu = small_config();
  gpu.device = "cuda";
  EXPECT_NE(choose_num_blocks(gpu, kFull, 10999)
                .status()
                .message()
                .find("--gpu-memory-utilization or --kv-cache-memory-bytes"),
            std::string::npos);
}

TEST(KvBudget, KvSlotsFitThirtyOneBits) {
  EngineConfig huge = small_config();
  huge.max_model_len = 1 << 30;
  huge.max_num_seqs = 1024;
  for (const KvDemand& demand :
       {KvDemand{.block_bytes = 1},
        KvDemand{.block_bytes = 1, .window_block_bytes = 1, .window = 1 << 29}}) {
    huge.num_gpu_blocks_override = 0;
    KvBlockCounts chosen = counts(huge, demand, INT64_MAX / 2);
    EXPECT_LE(int64_t{chosen.full} * huge.block_size, int64_t{INT32_MAX});
    EXPECT_LE(int64_t{chosen.windowed} * huge.block_size, int64_t{INT32_MAX});
    huge.num_gpu_blocks_override = INT32_MAX / huge.block_size;
    chosen = counts(huge, demand, 0);
    EXPECT_LE(int64_t{chosen.full} * huge.block_size, int64_t{INT32_MAX});
    EXPECT_LE(int64_t{chosen.windowed} * huge.block_size, int64_t{INT32_MAX});
  }
}

TEST(KvBudget, WithPlentyBothGroupsHaveAllThatIsOfUse) {
  const KvBlockCounts chosen = counts(small_config(), kBoth, int64_t{1} << 40);
  EXPECT_EQ(chosen.full, 41);
  // Five each, and two chunks of two blocks in flight.
  EXPECT_EQ(chosen.windowed, 4 * 5 + 4 + 1);
}

TEST(KvBudget, LongSequencesRunOutOfBothGroupsTogether) {
  EngineConfig config = small_config();
  config.max_model_len = 16 * 10000;
  config.max_num_seqs = 100;
  const int64_t budget = int64_t{200} << 20;
  const KvBlockCounts chosen = counts(config, kBoth, budget);
  EXPECT_LE(bytes_of(chosen, kBoth), budget);
  EXPECT_GT(bytes_of(chosen, kBoth), budget - 10000);
  // 100 short sequences of 512 tokens still keep 5 windowed blocks each.
  EXPECT_EQ(chosen.windowed, 100 * 5 + 4 + 1);
  EXPECT_GE(chosen.full, 10001 * 20);

  // With a large window the short ones do not count.
  KvDemand wide = kBoth;
  wide.window = 16 * 5000;
  config.max_num_seqs = 20;
  const KvBlockCounts even = counts(config, wide, budget);
  const double sequences = (even.full - 1) / 10000.0;
  EXPECT_NEAR((even.windowed - 1 - 4) / 5001.0, sequences, 0.01);
}

TEST(KvBudget, OneLongSequenceFitsWhateverTheShortOnesNeed) {
  EngineConfig config = small_config();
  config.max_model_len = 16 * 10000;
  config.max_num_seqs = 256;
  config.max_num_batched_tokens = 2048;
  KvDemand demand = kBoth;
  demand.window = 4096;
  // The window and the drafts in flight touch 258 blocks, a chunk 128.
  const int64_t alone = (10000 + 1) * 1000 + (258 + 128 + 1) * int64_t{4000};
  const KvBlockCounts chosen = counts(config, demand, alone);
  EXPECT_EQ(chosen.full, 10001);
  EXPECT_EQ(chosen.windowed, 258 + 128 + 1);
  EXPECT_FALSE(choose_num_blocks(config, demand, alone - 1).ok());
}

TEST(KvBudget, TheOverrideTakesTheWindowedGroupAlong) {
  EngineConfig config = small_config();
  config.max_num_seqs = 1;
  config.num_gpu_blocks_override = 5;
  EXPECT_EQ(counts(config, kBoth, 0).windowed, 6);  // never more than the full group
  config.num_gpu_blocks_override = 10;
  EXPECT_EQ(counts(config, kBoth, 0).windowed, 5 + 4 + 1);
}

TEST(KvBudget, ModelsWithWindowedLayersOnlyPayTokenPages) {
  const KvGroupSpec full{.num_layers = 0, .num_kv_heads = 2, .head_dim = 8};
  const KvGroupSpec windowed{
      .num_layers = 4, .num_kv_heads = 2, .head_dim = 8, .dtype = DType::kF32, .window = 48};
  const KvDemand demand = kv_demand({full, windowed}, 16, {.max_draft_tokens = 2});
  EXPECT_EQ(demand.block_bytes, 16 * 4 + static_cast<int64_t>(sizeof(PageHeader)));
  EXPECT_EQ(demand.window_block_bytes, 2 * 4 * 2 * 16 * 8 * 4);
  EXPECT_EQ(demand.window, 48);
  EngineConfig config = small_config();
  config.max_model_len = 1 << 20;
  const KvBlockCounts chosen = counts(config, demand, int64_t{1} << 30);
  EXPECT_EQ(chosen.full, 4 * 65536 + 1);
  EXPECT_EQ(chosen.windowed, 4 * 5 + 4 + 1);
}

TEST(KvBudget, DraftersPayWithTheFullGroup) {
  const KvGroupSpec full{.num_layers = 2, .num_kv_heads = 2, .head_dim = 8};
  const KvDemand plain = kv_demand({full}, 16, {});
  const KvDemand drafting = kv_demand({full}, 16, {.max_draft_tokens = 5, .block_bytes = 4000});
  EXPECT_EQ(drafting.block_bytes, plain.block_bytes + 4000);
  EXPECT_EQ(drafting.window_block_bytes, 0);
  EXPECT_EQ(drafting.max_draft_tokens, 5);
  const int64_t budget = 60 * plain.block_bytes;
  EXPECT_LT(counts(small_config(), drafting, budget).full,
            counts(small_config(), plain, budget).full);
}

// Whatever the numbers: within the budget, one sequence fits, and no group could use more.
TEST(KvBudget, RandomDemandsKeepTheirBounds) {
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int i = 0; i < 2000; ++i) {
    EngineConfig config;
    config.max_model_len = pick(2, 1 << pick(2, 20));
    config.max_num_seqs = pick(1, 300);
    config.max_num_batched_tokens = pick(1, 4096);
    config.steps_in_flight = pick(1, 3);
    const KvDemand demand{.block_bytes = pick(80, 1 << 20),
                          .window_block_bytes = pick(1, 1 << 20),
                          .window = pick(1, 1 << pick(1, 16)),
                          .max_draft_tokens = pick(0, 16)};
    const int64_t budget = int64_t{pick(1, 1 << 16)} << pick(4, 20);
    const auto chosen = choose_num_blocks(config, demand, budget);
    if (!chosen.ok()) continue;
    const int each = (config.max_model_len + 15) / 16;
    EXPECT_LE(bytes_of(chosen.value(), demand), budget);
    EXPECT_GE(chosen.value().full - 1, each);
    EXPECT_GE(chosen.value().windowed - 1, std::min(each, (demand.window - 1 + 15) / 16 + 1));
    EXPECT_LE(chosen.value().full - 1, int64_t{each} * config.max_num_seqs);
    const auto longest = choose_max_model_len(config, demand, budget, 1 << 20);
    ASSERT_TRUE(longest.ok());
    EXPECT_GE(longest.value(), std::min(config.max_model_len, 1 << 20));
  }
}

TEST(KvBudget, TheAutomaticLengthIsTheLargestThatFits) {
  EngineConfig config = small_config();
  for (const int64_t budget : {int64_t{30000}, int64_t{123456}, int64_t{9000000}}) {
    for (const KvDemand& demand : {kFull, kBoth}) {
      const auto chosen = choose_max_model_len(config, demand, budget, 1 << 20);
      ASSERT_TRUE(chosen.ok()) << chosen.status().message();
      config.max_model_len = chosen.value();
      EXPECT_TRUE(choose_num_blocks(config, demand, budget).ok());
      config.max_model_len = chosen.value() + 1;
      EXPECT_FALSE(choose_num_blocks(config, demand, budget).ok());
    }
  }
}

TEST(KvBudget, TheAutomaticLengthStopsAtTheModelsAndAtTheOverride) {
  EngineConfig config = small_config();
  EXPECT_EQ(choose_max_model_len(config, kFull, int64_t{1} << 40, 4000).value(), 4000);
  config.num_gpu_blocks_override = 9;
  EXPECT_EQ(choose_max_model_len(config, kFull, 0, 4000).value(), 9 * 16);
  config.num_gpu_blocks_override = 0;
  const auto nothing = choose_max_model_len(config, kFull, 1500, 4000);
  EXPECT_EQ(nothing.status().code(), StatusCode::kResourceExhausted);
}

constexpr int64_t kGiB = int64_t{1} << 30;

MemoryUse gpu_use() {
  return {.device = "a GPU",
          .of_host = false,
          .total = 100 * kGiB,
          .free_at_start = 98 * kGiB,
          .free_now = 80 * kGiB,
          .still_to_take = 2 * kGiB};
}

TEST(KvBudget, TheConfiguredBytesGoFirst) {
  EngineConfig config;
  config.kv_cache_memory_bytes = 12345;
  EXPECT_EQ(kv_budget(config, gpu_use()).value(), 12345);
  MemoryUse full = gpu_use();
  full.free_at_start = full.free_now = 1;
  EXPECT_EQ(kv_budget(config, full).value(), 12345);
}

TEST(KvBudget, OfTheHostAShareOfHalfOfWhatIsFree) {
  EngineConfig config;
  config.gpu_memory_utilization = 0.5;
  MemoryUse use;
  use.free_now = 4 * kGiB;
  EXPECT_EQ(kv_budget(config, use).value(), kGiB);
  use.free_now = 400 * kGiB;
  EXPECT_EQ(kv_budget(config, use).value(), 4 * kGiB);
  use.one_sequence = 5 * kGiB;
  EXPECT_EQ(kv_budget(config, use).value(), 5 * kGiB);
  use.one_sequence = 500 * kGiB;
  EXPECT_EQ(kv_budget(config, use).value(), 100 * kGiB);
}

// The share is one of the whole device: weights, scratch and graphs come out of it.
TEST(KvBudget, OfADeviceWhatTheShareLeaves) {
  EngineConfig config;
  config.gpu_memory_utilization = 0.5;
  config.enforce_eager = true;
  EXPECT_EQ(kv_budget(config, gpu_use()).value(), (50 - 18 - 2) * kGiB);
  config.enforce_eager = false;
  const int64_t with_graphs = kv_budget(config, gpu_use()).value();
  EXPECT_LT(with_graphs, 30 * kGiB);
  EXPECT_GT(with_graphs, 29 * kGiB);
  // What other processes held at the start is not the engine's.
  MemoryUse shared = gpu_use();
  shared.free_at_start -= 20 * kGiB;
  shared.free_now -= 20 * kGiB;
  EXPECT_EQ(kv_budget(config, shared).value(), with_graphs);
}

TEST(KvBudget, SaysWhatToDoWhenAGpuIsTooSmallOrTooFull) {
  EngineConfig config;
  config.gpu_memory_utilization = 0.9;
  MemoryUse use = gpu_use();
  use.free_at_start = use.free_now = 40 * kGiB;
  const Status held = kv_budget(config, use).status();
  EXPECT_EQ(held.code(), StatusCode::kResourceExhausted);
  for (const char* said : {"0.90", "a GPU", "40960 MiB", "lower it to 0.39", "other processes"}) {
    EXPECT_NE(held.message().find(said), std::string::npos) << held.message();
  }
  config.gpu_memory_utilization = 0.2;
  const Status nothing = kv_budget(config, gpu_use()).status();
  EXPECT_EQ(nothing.code(), StatusCode::kResourceExhausted);
  for (const char* said :
       {"KV cache", "0.20", "20480 MiB", "raise it", "--max-num-batched-tokens"}) {
    EXPECT_NE(nothing.message().find(said), std::string::npos) << nothing.message();
  }
  config.num_gpu_blocks_override = 8;
  EXPECT_TRUE(kv_budget(config, gpu_use()).ok());
}

class KvBudgetEngine : public DialledEngine {};

TEST_F(KvBudgetEngine, AnAutomaticLengthRunsAsFarAsItsMemory) {
  EngineConfig automatic = config(2);
  automatic.num_gpu_blocks_override = 0;
  automatic.kv_cache_memory_bytes = 200000;
  automatic.max_model_len = 0;
  std::unique_ptr<Engine> engine;
  const Status refused = make_engine(automatic, &engine);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.message();
  EXPECT_NE(refused.message().find("auto"), std::string::npos) << refused.message();

  automatic.max_model_len = -1;
  engine = make(automatic);
  ASSERT_NE(engine, nullptr);
  const int longest = engine->info().max_model_len;
  EXPECT_GT(longest, 32);
  EXPECT_LE(longest, engine->info().num_blocks * automatic.block_size);
  EXPECT_LE(engine->info().kv_cache_bytes + engine->info().token_page_bytes, 200000 + 256);
  const auto outputs = engine->generate({request(3, 10, longest - 10)});
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].token_ids, expected(3, 10, longest - 10));
}

}  // namespace
}  // namespace foretoken
