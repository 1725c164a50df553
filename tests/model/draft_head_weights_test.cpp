#include "model/draft_head_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "dialled/safetensors_writer.h"
#include "model/files/forms/convert.h"
#include "model/forward_harness.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ScratchFolder;

// A golden head whose config and tensors a test changes before it is loaded again.
class ChangedHead {
 public:
  ChangedHead(const std::string& name, HeadKind kind)
      : kind_(kind),
        checkpoint_(Checkpoint::open(test::golden_folder() + "heads/" + name).value()) {
    config = read_json_file(test::golden_folder() + "heads/" + name + "/config.json").value();
    for (const auto& [tensor_name, view] : checkpoint_.tensors()) {
      const TensorView* source = view;
      tensors.push_back({tensor_name, view->dtype, view->shape, [source](std::byte* out) {
                           std::memcpy(out, source->data, static_cast<size_t>(source->num_bytes));
                         }});
    }
  }

  TensorToWrite& tensor(const std::string& name) {
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    throw std::runtime_error("no tensor " + name);
  }
  void remove(const std::string& name) {
    std::erase_if(tensors, [&](const auto& tensor) { return tensor.name == name; });
  }
  void add(const std::string& name, const std::string& like) {
    tensors.push_back(tensor(like));
    tensors.back().name = name;
  }
  void set_offsets(std::vector<int64_t> values) {
    tensor("d2t").shape = {static_cast<int64_t>(values.size())};
    tensor("d2t").fill = [values](std::byte* out) {
      std::memcpy(out, values.data(), values.size() * sizeof(int64_t));
    };
  }

  Status load(const DraftHeadOptions& options) {
    folder_.write("config.json", config.dump());
    EXPECT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors).ok());
    return load_files(options);
  }
  Status load_files(const DraftHeadOptions& options) {
    target_ = test::load_test_model(test::golden_folder() + "architectures/llama", {}, 8);
    const auto read = read_draft_head_config(folder_.path(), kind_, target_->config(), {});
    if (!read.ok()) return read.status();
    DraftHeadOptions complete = options;
    complete.max_rows = complete.max_logits_rows = 8;
    auto loaded =
        load_draft_head(test::model_device(), folder_.path(), read.value(), *target_, complete);
    if (!loaded.ok()) return loaded.status();
    head = std::move(loaded).value();
    return {};
  }
  void expect_error(const std::vector<std::string>& says) {
    const Status status = load({});
    ASSERT_FALSE(status.ok()) << says[0];
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    for (const std::string& part : says) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << part << " in: " << status.message();
    }
  }

  nlohmann::json config;
  std::vector<TensorToWrite> tensors;
  std::unique_ptr<DraftHead> head;
  const ScratchFolder& folder() const { return folder_; }
  const Model& target() const { return *target_; }

 private:
  HeadKind kind_;
  Checkpoint checkpoint_;
  ScratchFolder folder_;
  std::unique_ptr<Model> target_;
};

TEST(DraftHeadWeights, NamesWithAndWithoutModel) {
  for (const char* name : {"eagle", "eagle3", "eagle3-speculators", "mtp-2"}) {
    const HeadKind kind = std::string(name) == "eagle"   ? HeadKind::kEagle
                          : std::string(name) == "mtp-2" ? HeadKind::kMtp
                                                         : HeadKind::kEagle3;
    ChangedHead head(name, kind);
    ASSERT_TRUE(head.load({}).ok()) << name;
    const int64_t bytes = head.head->weight_bytes();
    for (TensorToWrite& tensor : head.tensors) {
      const bool has = tensor.name.starts_with("model.");
      tensor.name = has ? tensor.name.substr(6) : "model." + tensor.name;
    }
    const Status status = head.load({});
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(head.head->weight_bytes(), bytes);
  }
}

// What a head holds of its own is loaded; otherwise it is the target's.
TEST(DraftHeadWeights, OwnEmbeddingAndOutputMatrix) {
  ChangedHead head("eagle", HeadKind::kEagle);
  ASSERT_TRUE(head.load({}).ok());
  const int64_t bytes = head.head->weight_bytes();
  const DraftHead::Head shared = head.head->head(0);
  EXPECT_EQ(shared.rows, 256);
  EXPECT_EQ(shared.id_map, nullptr);
  EXPECT_EQ(shared.weight, head.target().shared_head().weight);
  const auto matrix = [&](const char* name) {
    head.tensors.push_back({name, FileDType::kF32, {256, 32}, [](std::byte* out) {
                              std::memset(out, 0, 256 * 32 * 4);
                            }});
  };
  matrix("embed_tokens.weight");
  matrix("lm_head.weight");
  ASSERT_TRUE(head.load({}).ok());
  EXPECT_EQ(head.head->weight_bytes(), bytes + 2 * 256 * 32 * 2);
  EXPECT_NE(head.head->head(0).weight, head.target().shared_head().weight);
}

// A stage that embeds no tokens itself gets the table when the first module asks for it, unless the
// head has its own.
TEST(DraftHeadWeights, TheLastStageOfATargetLends) {
  const std::string golden = test::golden_folder();
  LoadOptions options;
  options.max_rows = options.max_logits_rows = 8;
  options.stages = {1, 2};
  for (const auto& [name, kind] : {std::pair{"eagle", HeadKind::kEagle},
                                   {"eagle3", HeadKind::kEagle3},
                                   {"mtp-2", HeadKind::kMtp}}) {
    const auto target = load_model(test::model_device(), golden + "architectures/llama", options);
    ASSERT_TRUE(target.ok()) << target.status().message();
    const int64_t bytes = target.value()->weight_bytes();
    const std::string folder = golden + "heads/" + name;
    const auto config = read_draft_head_config(folder, kind, target.value()->config(), {}).value();
    DraftHeadOptions head_options;
    head_options.max_rows = head_options.max_logits_rows = 8;
    const auto head =
        load_draft_head(test::model_device(), folder, config, *target.value(), head_options);
    ASSERT_TRUE(head.ok()) << head.status().message();
    const bool has_own = Checkpoint::open(folder).value().tensors().contains("embed_tokens.weight");
    EXPECT_EQ(target.value()->weight_bytes(), bytes + (has_own ? 0 : 256 * 32 * 2)) << name;
  }
}

TEST(DraftHeadWeights, EachMissingTensorIsNamed) {
  for (const auto& [name, kind] : {std::pair{"eagle", HeadKind::kEagle},
                                   {"eagle3", HeadKind::kEagle3},
                                   {"mtp-2", HeadKind::kMtp}}) {
    ChangedHead head(name, kind);
    const std::vector<TensorToWrite> all = head.tensors;
    for (const TensorToWrite& missing : all) {
      // Without a bias there is none; t2d follows from d2t.
      if (missing.name == "fc.bias" || missing.name == "t2d") continue;
      head.tensors = all;
      head.remove(missing.name);
      head.expect_error({"'" + missing.name + "'", "missing", head.folder().path()});
    }
  }
}

TEST(DraftHeadWeights, UnusedTensorsAreNamed) {
  ChangedHead eagle("eagle", HeadKind::kEagle);
  eagle.add("layers.0.input_layernorm.weight", "layers.0.post_attention_layernorm.weight");
  eagle.expect_error({"draft head has no use", "layers.0.input_layernorm.weight"});
  ChangedHead mtp("mtp", HeadKind::kMtp);
  mtp.add("model.layers.3.mlp.router.weight", "model.layers.3.hnorm.weight");
  mtp.expect_error({"draft head has no use", "model.layers.3.mlp.router.weight"});
  // A module that config.json does not count, and the target's own layers.
  ChangedHead modules("mtp-2", HeadKind::kMtp);
  modules.add("model.layers.1.input_layernorm.weight", "model.layers.3.hnorm.weight");
  modules.add("model.embed_tokens.weight", "model.layers.3.eh_proj.weight");
  const Status status = modules.load({});
  EXPECT_TRUE(status.ok()) << status.message();
  modules.config["num_nextn_predict_layers"] = 1;
  modules.expect_error({"draft head has no use", "model.layers.4."});
}

// A target whose own files hold its module, as DeepSeek publishes them.
TEST(DraftHeadWeights, ModulesInTheTargetsOwnFiles) {
  const std::string golden = test::golden_folder();
  const Checkpoint parts[] = {Checkpoint::open(golden + "architectures/llama").value(),
                              Checkpoint::open(golden + "heads/mtp").value()};
  std::vector<TensorToWrite> tensors;
  for (const Checkpoint& part : parts) {
    for (const auto& [name, view] : part.tensors()) {
      tensors.push_back({name, view->dtype, view->shape, [source = view](std::byte* out) {
                           std::memcpy(out, source->data, static_cast<size_t>(source->num_bytes));
                         }});
    }
  }
  const ScratchFolder folder;
  ASSERT_TRUE(write_safetensors(folder.file("model.safetensors"), tensors).ok());
  auto json = read_json_file(golden + "heads/mtp/config.json").value();
  json["architectures"] = {"LlamaForCausalLM"};
  folder.write("config.json", json.dump());
  const auto target = test::load_test_model(folder.path(), {}, 8);
  const auto config = read_draft_head_config(folder.path(), HeadKind::kMtp, target->config(), {});
  ASSERT_TRUE(config.ok()) << config.status().message();
  DraftHeadOptions options;
  options.max_rows = options.max_logits_rows = 8;
  const auto head =
      load_draft_head(test::model_device(), folder.path(), config.value(), *target, options);
  ASSERT_TRUE(head.ok()) << head.status().message();
  EXPECT_EQ(head.value()->head(0).weight, target->shared_head().weight);
}

TEST(DraftHeadWeights, SizesOfAnotherTarget) {
  ChangedHead taps("eagle3", HeadKind::kEagle3);
  taps.config["eagle_config"] = {{"eagle_aux_hidden_state_layer_ids", {0, 2}}};
  taps.expect_error({"fc.weight", "reads 96", "gets 64", "trained for this target"});
  ChangedHead heads("eagle3", HeadKind::kEagle3);
  heads.config["head_dim"] = 8;
  heads.expect_error({"q_proj.weight", "[32, 64]", "[16, 64]", "config.json"});
  // Attention and the embedding may be of another width than the target when the head has its own.
  ChangedHead other("eagle3", HeadKind::kEagle3);
  other.config["hidden_size"] = 16;
  const auto halve = [&](const std::string& name, std::vector<int64_t> shape) {
    other.tensor(name).shape = std::move(shape);
    int64_t count = 1;
    for (const int64_t extent : other.tensor(name).shape) count *= extent;
    other.tensor(name).fill = [count](std::byte* out) {
      std::memset(out, 0, static_cast<size_t>(count) * 2);
    };
  };
  halve("fc.weight", {16, 96});
  for (const char* norm : {"hidden_norm", "input_layernorm", "post_attention_layernorm"}) {
    halve(std::string("midlayer.") + norm + ".weight", {16});
  }
  halve("norm.weight", {16});
  halve("lm_head.weight", {96, 16});
  halve("midlayer.self_attn.q_proj.weight", {32, 32});
  halve("midlayer.self_attn.k_proj.weight", {16, 32});
  halve("midlayer.self_attn.v_proj.weight", {16, 32});
  halve("midlayer.self_attn.o_proj.weight", {16, 32});
  halve("midlayer.mlp.gate_proj.weight", {24, 16});
  halve("midlayer.mlp.up_proj.weight", {24, 16});
  halve("midlayer.mlp.down_proj.weight", {16, 24});
  other.expect_error({"embed_tokens.weight", "missing", "hidden_size 16", "32"});
  other.add("embed_tokens.weight", "norm.weight");
  halve("embed_tokens.weight", {256, 16});
  const Status status = other.load({});
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(DraftHeadWeights, DraftIdsOutsideTheVocabularyOrTwice) {
  ChangedHead head("eagle3", HeadKind::kEagle3);
  std::vector<int64_t> offsets(96, 100);
  head.set_offsets(offsets);
  ASSERT_TRUE(head.load({}).ok());
  offsets[95] = 256 - 95;
  head.set_offsets(offsets);
  head.expect_error({"d2t", "draft id 95", "outside", "256"});
  offsets[95] = -96;
  head.set_offsets(offsets);
  head.expect_error({"d2t", "draft id 95", "outside"});
  offsets[95] = 99;
  head.set_offsets(offsets);
  head.expect_error({"d2t", "draft id 95", "another draft id"});
  head.set_offsets(std::vector<int64_t>(90, 0));
  head.expect_error({"d2t", "[90]", "[96]"});
}

TEST(DraftHeadWeights, ReducedVocabulariesThatDoNotFit) {
  ChangedHead head("eagle3", HeadKind::kEagle3);
  head.set_offsets(std::vector<int64_t>(96, 100));
  DraftHeadOptions options;
  options.vocab_ids = {3, 99, 196};
  const Status none = head.load(options);
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.message().find("none of the ids of the reduced draft vocabulary"),
            std::string::npos)
      << none.message();
  options.vocab_ids = {3, 150};
  ASSERT_TRUE(head.load(options).ok());
  EXPECT_EQ(head.head->head(0).rows, 1);
  ChangedHead eagle("eagle", HeadKind::kEagle);
  options.target_folder = test::golden_folder() + "architectures/llama";
  options.vocab_ids = {3, 256};
  const Status outside = eagle.load(options);
  ASSERT_FALSE(outside.ok());
  EXPECT_NE(outside.message().find("id 256"), std::string::npos) << outside.message();
}

TEST(DraftHeadWeights, NoWeightsInTheFolder) {
  ChangedHead head("eagle", HeadKind::kEagle);
  head.folder().write("config.json", head.config.dump());
  const Status status = head.load_files({});
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("no model.safetensors"), std::string::npos);
}

// Heads for Qwen targets have biases of q, k and v, or norms of q and k, and no field that says so.
TEST(DraftHeadWeights, BiasesAndNormsOfAttentionByTheirTensors) {
  ChangedHead head("eagle", HeadKind::kEagle);
  head.add("layers.0.self_attn.q_proj.bias", "fc.bias");
  head.add("layers.0.self_attn.k_proj.bias", "fc.bias");
  head.add("layers.0.self_attn.v_proj.bias", "fc.bias");
  head.expect_error({"k_proj.bias", "[32]", "[16]"});
  for (const char* name : {"k_proj", "v_proj"}) {
    auto& tensor = head.tensor(std::string("layers.0.self_attn.") + name + ".bias");
    tensor.shape = {16};
    tensor.fill = [](std::byte* out) { std::memset(out, 0, 32); };
  }
  head.add("layers.0.self_attn.q_norm.weight", "layers.0.self_attn.k_proj.bias");
  head.add("layers.0.self_attn.k_norm.weight", "layers.0.self_attn.k_proj.bias");
  const Status status = head.load({});
  EXPECT_TRUE(status.ok()) << status.message();
}

// Rows of the output matrix, which is the embedding where they are tied.
TEST(DraftHeadWeights, RowsOfAnOutputMatrix) {
  const std::string folder = test::golden_folder() + "architectures/llama";
  ModelConfig config = read_model_config(folder, {}).value();
  ASSERT_FALSE(config.tie_word_embeddings);
  EXPECT_TRUE(load_head_rows(test::model_device(), folder, config, {255, 0, 7}).ok());
  for (const int32_t id : {256, -1}) {
    const auto rows = load_head_rows(test::model_device(), folder, config, {id});
    ASSERT_FALSE(rows.ok());
    EXPECT_NE(rows.status().message().find(std::to_string(id)), std::string::npos);
  }
  const std::string tied = test::golden_folder() + "architectures/gemma2";
  config = read_model_config(tied, {}).value();
  ASSERT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(load_head_rows(test::model_device(), tied, config, {1, 2}).ok());
}

}  // namespace
}  // namespace foretoken
