#include "engine/dialled_engine.h"
#include "model/files/quantized_gguf.h"
#include "support/scratch_folder.h"
#include "support/test_device.h"

namespace foretoken {
namespace {

constexpr int kQuantizedVocab = 512;

// Quantised weights give the same ids with drafts as without, sampled and greedy, whatever shares a
// step.
TEST(QuantizedEngine, DraftsDoNotChangeTheText) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  test::QuantizedGguf().write(path, 2, kQuantizedVocab);
  EngineConfig config;
  config.model = path;
  config.device = engine_test_device();
  config.skip_tokenizer_init = true;
  config.max_model_len = 256;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 64;
  config.num_gpu_blocks_override = 8 * 16;
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i) {
    Request request;
    for (int j = 0; j < 20 + 13 * i; ++j) request.prompt_token_ids.push_back(j * (i + 1) % 29);
    request.sampling.max_tokens = 60;
    request.sampling.ignore_eos = true;
    request.sampling.temperature = i % 2 == 0 ? 0.0F : 0.7F;
    request.sampling.seed = 5;
    requests.push_back(request);
  }
  std::unique_ptr<Engine> plain;
  ASSERT_TRUE(make_engine(config, &plain).ok());
  std::vector<std::vector<int32_t>> want;
  for (const Request& request : requests) {
    want.push_back(plain->generate({request})[0].token_ids);
    EXPECT_EQ(want.back().size(), 60u);
  }
  config.speculative = {ngram_config(4)};
  std::unique_ptr<Engine> drafting;
  ASSERT_TRUE(make_engine(config, &drafting).ok());
  const auto outputs = drafting->generate(requests);
  int64_t accepted = 0, drafted = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(outputs[i].token_ids, want[i]) << i;
    accepted += outputs[i].stats.num_accepted_tokens;
    drafted += outputs[i].stats.num_draft_tokens;
  }
  std::printf("accepted %lld of %lld\n", static_cast<long long>(accepted),
              static_cast<long long>(drafted));
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, drafted);
}

// Ranks cut quantised rows between groups; where these are too wide, that is said.
TEST(QuantizedEngine, RanksShareQuantisedWeights) {
  if (const std::string missing = missing_devices(2); !missing.empty()) GTEST_SKIP() << missing;
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  EngineConfig config;
  config.model = path;
  config.device = engine_test_device();
  config.cpu_threads = 1;
  config.skip_tokenizer_init = true;
  config.max_model_len = 64;
  config.num_gpu_blocks_override = 16;
  Request request;
  for (int j = 0; j < 20; ++j) request.prompt_token_ids.push_back(j * 7 % 29);
  request.sampling.max_tokens = 20;
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  test::QuantizedGguf().write(path, 2, kQuantizedVocab, "Q8_0");
  std::vector<std::vector<int32_t>> ids;
  for (const int ranks : {1, 2}) {
    config.parallel.tensor_parallel_size = ranks;
    std::unique_ptr<Engine> engine;
    const Status status = make_engine(config, &engine);
    ASSERT_TRUE(status.ok()) << status.message();
    ids.push_back(engine->generate({request})[0].token_ids);
  }
  EXPECT_EQ(ids[0], ids[1]);
  test::QuantizedGguf().write(path, 2, kQuantizedVocab);
  std::unique_ptr<Engine> engine;
  const Status status = make_engine(config, &engine);
  ASSERT_FALSE(status.ok());
  for (const char* said : {"down_proj", "lower --tensor-parallel-size"}) {
    EXPECT_NE(status.message().find(said), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace foretoken
