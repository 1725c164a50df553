#include "model/heads/assistant_head.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "dialled/safetensors_writer.h"
#include "model/files/checkpoint.h"
#include "model/forward_harness.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

// What it drafts is held to tests/golden/assistants in tests/draft/assistant_test.cpp.

namespace foretoken::test {
namespace {

// An assistant of tests/golden/assistants whose tensors a test changes before it is loaded.
class ChangedAssistant {
 public:
  ChangedAssistant(const std::string& name, const std::string& target)
      : folder_(golden_folder() + "assistants/" + name),
        checkpoint_(Checkpoint::open(folder_).value()),
        target_(load_test_model(golden_folder() + "architectures/" + target, {}, 8)) {
    for (const auto& [tensor, view] : checkpoint_.tensors()) {
      const TensorView* source = view;
      tensors.push_back({tensor, view->dtype, view->shape, [source](std::byte* out) {
                           std::memcpy(out, source->data, static_cast<size_t>(source->num_bytes));
                         }});
    }
  }

  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; });
  }
  TensorToWrite& tensor(const std::string& name) {
    for (TensorToWrite& each : tensors) {
      if (each.name == name) return each;
    }
    throw std::runtime_error("no tensor " + name);
  }

  Status load(DraftHeadOptions options = {}) {
    EXPECT_TRUE(write_safetensors(changed_.file("model.safetensors"), tensors).ok());
    options.max_rows = options.max_logits_rows = 8;
    FT_ASSIGN_OR_RETURN(const AssistantConfig config,
                        read_assistant_config(folder_, target_->config()));
    FT_ASSIGN_OR_RETURN(
        head, load_assistant_head(model_device(), changed_.path(), config, *target_, options));
    return {};
  }
  void expect_error(const std::string& says) {
    const Status status = load();
    ASSERT_FALSE(status.ok()) << says;
    EXPECT_NE(status.message().find(says), std::string::npos) << status.message();
  }

  std::vector<TensorToWrite> tensors;
  std::unique_ptr<ChainHead> head;

 private:
  const std::string folder_;
  Checkpoint checkpoint_;
  ScratchFolder changed_;
  std::unique_ptr<Model> target_;
};

class AssistantHeadTest : public testing::Test {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
  }
};

TEST_F(AssistantHeadTest, HasAnOutputMatrixOfItsOwn) {
  ChangedAssistant dense("dense", "gemma4-deep"), ordered("ordered", "gemma4-large");
  ASSERT_TRUE(dense.load().ok());
  EXPECT_EQ(dense.head->output(0).hidden, 48);
  EXPECT_EQ(dense.head->output(3).head.weight, dense.head->output(0).head.weight);
  EXPECT_FALSE(dense.head->output(0).head.clusters.exist());
  EXPECT_GT(dense.head->weight_bytes(), 0);
  EXPECT_GT(dense.head->scratch_bytes(), 0);
  ASSERT_TRUE(ordered.load().ok());
  const DraftHead::Head head = ordered.head->output(0).head;
  EXPECT_EQ(head.rows, 128);
  EXPECT_EQ(head.clusters.count, 16);
  EXPECT_EQ(head.clusters.each, 8);
  EXPECT_EQ(head.clusters.top, 3);
}

TEST_F(AssistantHeadTest, RandomWeightsNeedTheConfigAlone) {
  for (const auto& [name, target] :
       {std::pair{"dense", "gemma4-deep"}, std::pair{"ordered", "gemma4-large"}}) {
    ChangedAssistant assistant(name, target);
    DraftHeadOptions options;
    options.dummy = true;
    const Status status = assistant.load(options);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST_F(AssistantHeadTest, AReducedVocabularyCutsTheMatrix) {
  ChangedAssistant dense("dense", "gemma4-deep");
  DraftHeadOptions options;
  options.vocab_ids = {3, 40, 100};
  ASSERT_TRUE(dense.load(options).ok());
  EXPECT_EQ(dense.head->output(0).head.rows, 3);
}

TEST_F(AssistantHeadTest, ACopyOfTheTiedMatrixIsLeftOut) {
  ChangedAssistant dense("dense", "gemma4-deep");
  TensorToWrite copy = dense.tensor("model.embed_tokens.weight");
  copy.name = "lm_head.weight";
  dense.tensors.push_back(copy);
  EXPECT_TRUE(dense.load().ok());
}

TEST_F(AssistantHeadTest, MissingAndWrongTensorsAreNamed) {
  for (const char* name :
       {"pre_projection.weight", "post_projection.weight", "model.norm.weight",
        "model.embed_tokens.weight", "model.layers.1.self_attn.q_proj.weight",
        "model.layers.2.layer_scalar", "model.layers.0.self_attn.q_norm.weight"}) {
    ChangedAssistant dense("dense", "gemma4-deep");
    dense.remove(name);
    dense.expect_error("'" + std::string(name) + "'");
  }
  for (const char* name :
       {"masked_embedding.centroids.weight", "masked_embedding.token_ordering"}) {
    ChangedAssistant ordered("ordered", "gemma4-large");
    ordered.remove(name);
    ordered.expect_error("'" + std::string(name) + "'");
  }
  ChangedAssistant more("dense", "gemma4-deep");
  TensorToWrite other = more.tensor("post_projection.weight");
  other.name = "model.layers.3.self_attn.q_proj.weight";
  more.tensors.push_back(other);
  more.expect_error("has no use for tensor 'model.layers.3.self_attn.q_proj.weight'");
  ChangedAssistant twice("ordered", "gemma4-large");
  TensorToWrite& order = twice.tensor("masked_embedding.token_ordering");
  order.fill = [](std::byte* out) { std::memset(out, 0, 128 * sizeof(int64_t)); };
  twice.expect_error("which is no id or there already");
}

TEST_F(AssistantHeadTest, RanksWithoutTheSameHeadsShareNoPositions) {
  ChangedAssistant dense("dense", "gemma4-deep");
  DraftHeadOptions options;
  options.sharding.size = options.sharding.context.size = 2;
  const Status status = dense.load(options);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("2 ranks of --decode-context-parallel-size"), std::string::npos)
      << status.message();
}

}  // namespace
}  // namespace foretoken::test
