#include "model/heads/mlp_speculator.h"

#include <gtest/gtest.h>

#include "model/heads/changed_chain.h"

// What the steps draft is held to tests/golden/chain_heads in tests/draft/chain_drafter_test.cpp.

namespace foretoken::test {
namespace {

ChangedChain speculator(const std::string& name, int32_t count = 0) {
  return {name,
          [count](const std::string& folder, Model& target,
                  const DraftHeadOptions& options) -> Result<std::unique_ptr<ChainHead>> {
            FT_ASSIGN_OR_RETURN(const MlpSpeculatorConfig config,
                                read_mlp_speculator_config(folder, target.config()));
            return load_mlp_speculator(model_device(), folder, config,
                                       count > 0 ? count : config.num_steps, target, options);
          }};
}

class MlpSpeculatorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
  }
};

TEST_F(MlpSpeculatorTest, ReadsConfigs) {
  const auto target = load_test_model(golden_folder() + "architectures/llama", {}, 8);
  const std::string folder = ChangedChain::folder_of("mlp_speculator-tied");
  const auto config = read_mlp_speculator_config(folder, target->config()).value();
  EXPECT_EQ(config.num_steps, 4);
  EXPECT_EQ(config.inner, 48);
  EXPECT_TRUE(config.ties_weights);
  EXPECT_TRUE(config.scales_input);
  ScratchFolder other;
  other.write("config.json",
              R"({"vocab_size": 256, "hidden_size": 32, "inner_dim": 0, "n_predict": 2})");
  const auto plain = read_mlp_speculator_config(other.path(), target->config()).value();
  EXPECT_EQ(plain.inner, 32) << "that of the states";
  EXPECT_FALSE(plain.ties_weights || plain.scales_input);
}

TEST_F(MlpSpeculatorTest, TiedStepsHaveOneMatrix) {
  ChangedChain own = speculator("mlp_speculator"), tied = speculator("mlp_speculator-tied");
  ASSERT_TRUE(own.load().ok());
  EXPECT_NE(own.head->output(0).head.weight, own.head->output(3).head.weight);
  EXPECT_EQ(own.head->output(2).hidden, 48);
  ASSERT_TRUE(tied.load().ok());
  EXPECT_EQ(tied.head->output(0).head.weight, tied.head->output(3).head.weight);
  EXPECT_LT(tied.head->weight_bytes(), own.head->weight_bytes());
  EXPECT_GT(tied.head->scratch_bytes(), 0);
}

TEST_F(MlpSpeculatorTest, StepsThatAreNotAskedForAndCopiesOfTiedTensorsAreLeftOut) {
  for (const char* name : {"mlp_speculator", "mlp_speculator-tied"}) {
    ChangedChain one = speculator(name, 1);
    const Status status = one.load();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  ChangedChain copies = speculator("mlp_speculator-tied");
  for (const char* part : {"emb", "head", "ln"}) {
    const std::string base = "speculator." + std::string(part) + ".";
    copies.add(base + "2.weight", base + "0.weight");
  }
  copies.add("speculator.proj.3.weight", "speculator.proj.1.weight");
  EXPECT_TRUE(copies.load().ok());
  ChangedChain plain = speculator("mlp_speculator");
  for (TensorToWrite& tensor : plain.tensors) tensor.name = tensor.name.substr(11);
  EXPECT_TRUE(plain.load().ok()) << "names without 'speculator.'";
}

TEST_F(MlpSpeculatorTest, AReducedVocabularyCutsTheMatrices) {
  ChangedChain head = speculator("mlp_speculator");
  DraftHeadOptions options;
  options.vocab_ids = {3, 40, 200};
  ASSERT_TRUE(head.load(options).ok());
  EXPECT_EQ(head.head->output(3).head.rows, 3);
}

TEST_F(MlpSpeculatorTest, WrongConfigsAreNamed) {
  const std::vector<std::pair<nlohmann::json, std::string>> cases = {
      {{{"n_predict", nullptr}}, "'n_predict' is missing"},
      {{{"n_predict", -3}}, "'n_predict'"},
      {{{"n_predict", 100}}, "at most 64"},
      {{{"vocab_size", nullptr}}, "'vocab_size' is missing"},
      {{{"vocab_size", 128}}, "vocab_size 128 of the head is not the target's 256"},
      {{{"emb_dim", 64}}, "emb_dim 64 of the head is not the target's 32"},
      {{{"emb_dim", nullptr}}, "'hidden_size' is missing"},
      {{{"tie_weights", "yes"}}, "'tie_weights'"},
      {{{"scale_input", 1}}, "'scale_input'"},
      {{{"inner_dim", -1}}, "'inner_dim'"},
  };
  for (const auto& [change, says] : cases) {
    ChangedChain head = speculator("mlp_speculator");
    head.config.update(change);
    head.expect_error({"config.json", says});
  }
}

TEST_F(MlpSpeculatorTest, MissingAndWrongTensorsAreNamed) {
  for (const char* part :
       {"emb.1.weight", "proj.2.weight", "ln.0.weight", "ln.3.bias", "head.3.weight"}) {
    const std::string name = std::string("speculator.") + part;
    ChangedChain head = speculator("mlp_speculator");
    head.remove(name);
    head.expect_error({"'" + name + "'"});
  }
  ChangedChain wide = speculator("mlp_speculator");
  wide.config["inner_dim"] = 40;
  wide.expect_error({"speculator.emb.0.weight"});
  ChangedChain more = speculator("mlp_speculator");
  more.add("speculator.emb.4.weight", "speculator.emb.0.weight");
  more.expect_error({"has no use for tensor 'speculator.emb.4.weight'"});
  ChangedChain tied = speculator("mlp_speculator-tied");
  tied.remove("speculator.proj.1.weight");
  tied.expect_error({"'speculator.proj.1.weight'"});
}

}  // namespace
}  // namespace foretoken::test
