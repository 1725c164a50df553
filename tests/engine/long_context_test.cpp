#include "engine/dialled_engine.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

// A drafter that kept the tokens of max_num_seqs x max_model_len would take a gigabyte here.
TEST(LongContext, AMillionPositionsCostTheDrafterNothing) {
  const test::ScratchFolder folder;
  folder.write("config.json", R"({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 64,
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    "max_position_embeddings": 1048576, "rope_theta": 10000.0, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "tie_word_embeddings": true, "torch_dtype": "float32"})");
  EngineConfig config;
  config.model = folder.path();
  config.device = engine_test_device();
  config.load_format = "dummy";
  config.max_model_len = 1048576;
  config.max_num_seqs = 256;
  // One sequence at full length and some more.
  config.num_gpu_blocks_override = 1048576 / 16 + 1024;
  config.speculative = {ngram_config(4)};
  std::unique_ptr<Engine> engine;
  const Status made = make_engine(config, &engine);
  ASSERT_TRUE(made.ok()) << made.message();
  EXPECT_EQ(engine->info().max_model_len, 1048576);
  EXPECT_LE(engine->info().drafter_bytes, int64_t{16} << 20);
  EXPECT_LE(engine->info().token_page_bytes,
            int64_t{engine->info().num_blocks + 1} * (16 * 4 + 32));

  std::vector<Request> requests(3);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt_token_ids.assign(20 + 300 * i, static_cast<int32_t>(3 + i));
    requests[i].sampling.max_tokens = 8;
    requests[i].sampling.temperature = 0;
    requests[i].sampling.ignore_eos = true;
  }
  for (const RequestOutput& output : engine->generate(requests)) {
    EXPECT_TRUE(output.status.ok()) << output.status.message();
    EXPECT_EQ(output.finish_reason, FinishReason::kLength);
  }
}

}  // namespace
}  // namespace foretoken
