#include "engine/local_ranks.h"

#include "dialled/dialled_parts.h"
#include "engine/dialled_engine.h"
#include "model/registry.h"
#include "support/folders.h"
#include "support/scratch_folder.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

class LocalRanksTest : public DialledRanks {};

TEST_F(LocalRanksTest, AnEngineMakesItsRanksAndEndsThem) {
  for (const int ranks : {2, 4}) {
    if (const std::string missing = missing_devices(ranks); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
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

// Each rank uploads it with the plan, whether it drafts or not.
TEST_F(LocalRanksTest, APredictionIsDraftedOnAllRanks) {
  Request predicted = request(7, 9, 40);
  predicted.prediction_token_ids = expected(7, 9, 40);
  for (const bool stages : {false, true}) {
    EngineConfig two = config(3);
    two.cpu_threads = 1;
    (stages ? two.parallel.pipeline_parallel_size : two.parallel.tensor_parallel_size) = 2;
    const auto engine = make(two);
    ASSERT_NE(engine, nullptr);
    const RequestOutput output = engine->generate({predicted})[0];
    EXPECT_EQ(output.token_ids, predicted.prediction_token_ids) << stages;
    EXPECT_GE(output.stats.num_accepted_prediction_tokens, 27) << stages;
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

// Rank 0 has the last of two stages: one layer, the final norm and the output matrix, which is as
// large as the first stage's embedding.
TEST_F(LocalRanksTest, WhatAStageReports) {
  EngineConfig two = config(3);
  two.cpu_threads = 1;
  const auto whole = make(two);
  two.parallel.pipeline_parallel_size = 2;
  const auto cut = make(two);
  ASSERT_TRUE(whole != nullptr && cut != nullptr);
  const int64_t norm_bytes = int64_t{DialledShape().hidden_size} * 4;
  EXPECT_EQ(cut->info().weight_bytes, (whole->info().weight_bytes + norm_bytes) / 2);
  EXPECT_EQ(cut->info().num_parameters, whole->info().num_parameters);
  EXPECT_EQ(cut->info().kv_cache_bytes, whole->info().kv_cache_bytes / 2);
}

// Every stage and either lane of a step knows where texts end.
TEST_F(LocalRanksTest, TextsSeeThemselvesOnAllRanks) {
  EngineConfig one = config(0);
  one.model = std::string(kSourceFolder) + "/tests/golden/encoders/bert";
  one.skip_tokenizer_init = true;
  one.dtype = "float32";
  one.max_model_len = 64;
  one.cpu_threads = 1;
  std::vector<Request> requests(3);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt_token_ids = {5, 9, 17, 3, static_cast<int32_t>(40 + i)};
    requests[i].prompt_token_ids.resize(3 + i);
    requests[i].pooling = Pooling::kMean;
  }
  const auto whole = make(one);
  ASSERT_NE(whole, nullptr);
  const std::vector<RequestOutput> wanted = whole->generate(requests);
  for (const bool stages : {true, false}) {
    EngineConfig two = one;
    (stages ? two.parallel.pipeline_parallel_size : two.parallel.tensor_parallel_size) = 2;
    two.parallel.enable_dbo = !stages;
    two.parallel.dbo_prefill_token_threshold = 1;
    const auto engine = make(two);
    ASSERT_NE(engine, nullptr);
    const std::vector<RequestOutput> outputs = engine->generate(requests);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(outputs[i].embedding.size(), 32u);
      for (size_t j = 0; j < 32; ++j) {
        EXPECT_NEAR(outputs[i].embedding[j], wanted[i].embedding[j], 1e-4) << stages << i << j;
      }
    }
  }
}

TEST_F(LocalRanksTest, ATensorIsMissedWhoeverWouldLoadIt) {
  const test::ScratchFolder folder;
  const DialledShape shape;
  ASSERT_TRUE(write_dialled_checkpoint(folder.path(), shape).ok());
  const ModelConfig model = read_model_config(folder.path(), {}).value();
  const auto tensors =
      dialled_tensors(shape, model, find_architecture(shape.architecture)->decoder);
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight",
        "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"}) {
    std::vector<TensorToWrite> rest = tensors;
    std::erase_if(rest, [&](const TensorToWrite& tensor) { return tensor.name == name; });
    ASSERT_EQ(rest.size() + 1, tensors.size());
    ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), rest).ok());
    for (const int stages : {1, 2}) {
      EngineConfig several = config(0);
      several.model = folder.path();
      several.cpu_threads = 1;
      several.parallel.pipeline_parallel_size = stages;
      std::unique_ptr<Engine> engine;
      const Status status = make_engine(several, &engine);
      ASSERT_FALSE(status.ok()) << name;
      EXPECT_NE(status.message().find(std::string("'") + name + "' is missing"), std::string::npos)
          << status.message();
    }
  }
}

}  // namespace
}  // namespace foretoken
