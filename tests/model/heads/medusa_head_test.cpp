#include "model/heads/medusa_head.h"

#include <gtest/gtest.h>

#include "model/heads/changed_chain.h"

// What the heads draft is held to tests/golden/chain_heads in tests/draft/chain_drafter_test.cpp.

namespace foretoken::test {
namespace {

Result<std::unique_ptr<ChainHead>> load_heads(int32_t count, const std::string& folder,
                                              Model& target, const DraftHeadOptions& options) {
  FT_ASSIGN_OR_RETURN(const MedusaConfig config, read_medusa_config(folder, target.config()));
  return load_medusa_head(model_device(), folder, config, count > 0 ? count : config.num_heads,
                          target, options);
}

ChangedChain medusa(const std::string& name, int32_t count = 0) {
  return {name, [count](const std::string& folder, Model& target, const DraftHeadOptions& options) {
            return load_heads(count, folder, target, options);
          }};
}

class MedusaHeadTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
  }
};

TEST_F(MedusaHeadTest, ReadsBothLayoutsOfConfigs) {
  const auto target = load_test_model(golden_folder() + "architectures/llama", {}, 8);
  const auto read = [&](const char* name) {
    return read_medusa_config(ChangedChain::folder_of(name), target->config()).value();
  };
  EXPECT_EQ(read("medusa").num_heads, 4);
  EXPECT_EQ(read("medusa").num_layers, 1);
  EXPECT_EQ(read("medusa").rows, 256);
  EXPECT_EQ(read("medusa-shared").num_layers, 2);
  EXPECT_EQ(read("medusa-mapped").num_heads, 4);
  EXPECT_EQ(read("medusa-mapped").rows, 96);
  const ScratchFolder empty;
  const auto missing = read_medusa_config(empty.path(), target->config());
  EXPECT_EQ(missing.status().code(), StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find(empty.path()), std::string::npos);
}

TEST_F(MedusaHeadTest, OutputMatricesAreOwnMappedOrTheTargets) {
  ChangedChain own = medusa("medusa"), shared = medusa("medusa-shared"),
               mapped = medusa("medusa-mapped");
  ASSERT_TRUE(own.load().ok());
  EXPECT_EQ(own.head->output(0).head.rows, 256);
  EXPECT_EQ(own.head->output(0).hidden, 32);
  EXPECT_NE(own.head->output(0).head.weight, own.head->output(3).head.weight);
  ASSERT_TRUE(shared.load().ok());
  EXPECT_EQ(shared.head->output(0).head.weight, shared.target().shared_head().weight);
  EXPECT_EQ(shared.head->output(3).head.weight, shared.head->output(0).head.weight);
  ASSERT_TRUE(mapped.load().ok());
  EXPECT_EQ(mapped.head->output(1).head.rows, 96);
  EXPECT_NE(mapped.head->output(1).head.id_map, nullptr);
  EXPECT_GT(mapped.head->weight_bytes(), 0);
  EXPECT_GT(mapped.head->scratch_bytes(), 0);
}

TEST_F(MedusaHeadTest, OneMatrixForAllHeadsAndWholeOnesUnderAMap) {
  ChangedChain mapped = medusa("medusa-mapped");
  mapped.config["original_lm_head"] = true;
  ASSERT_TRUE(mapped.load().ok()) << "lm_heads.0 is that of all";
  EXPECT_EQ(mapped.head->output(3).head.weight, mapped.head->output(0).head.weight);
  for (TensorToWrite& tensor : mapped.tensors) {
    if (tensor.name.starts_with("lm_heads.")) {
      tensor.shape[0] = 256;
      tensor.fill = [](std::byte* out) { std::memset(out, 0, 256 * 32 * 2); };
    }
  }
  mapped.config.erase("original_lm_head");
  ASSERT_TRUE(mapped.load().ok()) << "vLLM takes the mapped rows of whole ones";
  EXPECT_EQ(mapped.head->output(2).head.rows, 96);
}

TEST_F(MedusaHeadTest, HeadsThatAreNotAskedForAreLeftOut) {
  for (const char* name : {"medusa", "medusa-shared", "medusa-mapped"}) {
    ChangedChain all = medusa(name), two = medusa(name, 2);
    const Status status = two.load();
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(all.load().ok());
    EXPECT_LT(two.head->weight_bytes(), all.head->weight_bytes());
  }
}

TEST_F(MedusaHeadTest, AReducedVocabularyCutsTheMatrices) {
  for (const char* name : {"medusa", "medusa-shared"}) {
    ChangedChain head = medusa(name);
    DraftHeadOptions options;
    options.vocab_ids = {3, 40, 200};
    ASSERT_TRUE(head.load(options).ok());
    EXPECT_EQ(head.head->output(0).head.rows, 3);
  }
}

TEST_F(MedusaHeadTest, NamesOfOtherWritersAreKnown) {
  for (const char* prefix : {"medusa_heads.", "medusa_head."}) {
    ChangedChain head = medusa("medusa");
    for (TensorToWrite& tensor : head.tensors) tensor.name = prefix + tensor.name;
    const Status status = head.load();
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST_F(MedusaHeadTest, WrongConfigsAreNamed) {
  const std::vector<std::pair<nlohmann::json, std::string>> cases = {
      {{{"medusa_num_heads", nullptr}}, "'medusa_num_heads' is missing"},
      {{{"medusa_num_heads", 0}}, "'medusa_num_heads'"},
      {{{"medusa_num_heads", 65}}, "at most 64"},
      {{{"medusa_num_layers", "one"}}, "'medusa_num_layers'"},
      {{{"hidden_size", 64}}, "hidden_size 64 of the head is not the target's 32"},
      {{{"vocab_size", 300}}, "vocab_size 300 of the head is not the target's 256"},
      {{{"truncated_vocab_size", 257}}, "at most vocab_size 256"},
      {{{"logit_scale", 0.5}}, "'logit_scale'"},
  };
  for (const auto& [change, says] : cases) {
    ChangedChain head = medusa("medusa");
    head.config.update(change);
    head.expect_error({"config.json", says});
  }
}

TEST_F(MedusaHeadTest, MissingAndWrongTensorsAreNamed) {
  for (const char* name : {"1.0.linear.weight", "0.1.weight", "2.1.weight"}) {
    ChangedChain head = medusa("medusa");
    head.remove(name);
    head.expect_error({std::string("'") + name + "'"});
  }
  ChangedChain wide = medusa("medusa");
  wide.tensor("0.0.linear.weight").shape = {16, 64};
  wide.expect_error({"0.0.linear.weight", "[32, 32]"});
  ChangedChain more = medusa("medusa");
  more.add("9.0.linear.weight", "0.0.linear.weight");
  more.expect_error({"has no use for tensor '9.0.linear.weight'"});
  ChangedChain unmapped = medusa("medusa-mapped");
  unmapped.remove("token_map");
  unmapped.expect_error({"'token_map'"});
}

TEST_F(MedusaHeadTest, WrongMapsAreNamed) {
  for (const auto& [first, says] :
       {std::pair{int64_t{256}, "the id 256, which is outside"}, {int64_t{-1}, "the id -1"}}) {
    ChangedChain head = medusa("medusa-mapped");
    head.tensor("token_map").fill = [first](std::byte* out) {
      auto* ids = reinterpret_cast<int64_t*>(out);
      for (int64_t i = 0; i < 96; ++i) ids[i] = i == 0 ? first : i;
    };
    head.expect_error({"token_map", says});
  }
  ChangedChain twice = medusa("medusa-mapped");
  twice.tensor("token_map").fill = [](std::byte* out) {
    auto* ids = reinterpret_cast<int64_t*>(out);
    for (int64_t i = 0; i < 96; ++i) ids[i] = i == 5 ? 4 : i;
  };
  twice.expect_error({"the id 4 twice"});
}

}  // namespace
}  // namespace foretoken::test
