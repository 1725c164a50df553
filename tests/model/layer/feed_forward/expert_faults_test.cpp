#include "model/layer/feed_forward/expert_faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <vector>

#include "model/forward_harness.h"
#include "model/gguf_family_files.h"
#include "model/golden.h"
#include "support/scratch_folder.h"

// Mixtures whose fields and tensors do not go together: one sentence that names what is at fault,
// as the files have it.

namespace foretoken {
namespace {

using Json = nlohmann::json;

std::string end_of_load(const std::string& path) {
  LoadOptions options;
  options.max_rows = options.max_logits_rows = 8;
  options.config.dtype = "float32";
  const auto model = load_model(test::model_device(), path, options);
  return model.ok() ? "(made)" : model.status().message();
}

struct FaultyFields {
  const char* golden;
  std::vector<std::pair<const char*, std::vector<Json>>> fields;  // with values that are wrong
};
void PrintTo(const FaultyFields& one, std::ostream* out) { *out << one.golden; }

class FieldsOfMixtures : public testing::TestWithParam<FaultyFields> {};

// A null takes the field away.
TEST_P(FieldsOfMixtures, AreNamed) {
  const test::GoldenCase golden = test::golden_cases({GetParam().golden}).front();
  const test::ScratchFolder folder;
  std::filesystem::copy(golden.folder + "/model.safetensors", folder.file("model.safetensors"));
  const Json whole = read_json_file(golden.folder + "/config.json").value();
  folder.write("config.json", whole.dump());
  ASSERT_EQ(end_of_load(folder.path()), "(made)");
  for (const auto& [field, values] : GetParam().fields) {
    for (const Json& value : values) {
      Json config = whole;
      value.is_null() ? void(config.erase(field)) : void(config[field] = value);
      folder.write("config.json", config.dump());
      const std::string message = end_of_load(folder.path());
      EXPECT_NE(message.find("'" + std::string(field) + "'"), std::string::npos)
          << field << " " << value << ": " << message;
      EXPECT_NE(message.find(';'), std::string::npos) << message;  // the remedy
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Folders, FieldsOfMixtures,
    testing::Values(FaultyFields{"deepseek_v3",
                                 {{"n_routed_experts", {nullptr, "x", -1, 0, 1.5, 12, 16, 2000}},
                                  {"num_experts_per_tok", {"x", -1, 0, 1.5, 9, 1000}},
                                  {"n_shared_experts", {"x", -1, 1.5}},
                                  {"moe_intermediate_size", {"x", -1, 0, 1.5, 33}},
                                  {"n_group", {"x", -1, 0, 1.5, 3, 16}},
                                  {"topk_group", {"x", -1, 0, 1.5, 5}},
                                  {"first_k_dense_replace", {"x", -1, 1.5, 0, 2}},
                                  {"moe_layer_freq", {"x", -1, 0, 2, Json::array({1})}},
                                  {"norm_topk_prob", {"x", 2}},
                                  {"routed_scaling_factor", {"x", -1, 0}},
                                  {"num_nextn_predict_layers", {"x", -1, 1.5}},
                                  {"kv_lora_rank", {"x", -1, 0, 1.5}},
                                  {"q_lora_rank", {"x", -1, 1.5}},
                                  {"qk_nope_head_dim", {"x", -1, 0, 1.5}},
                                  {"qk_rope_head_dim", {"x", -1, 0, 1.5}},
                                  {"v_head_dim", {"x", -1, 0, 1.5}}}},
                    FaultyFields{
                        "qwen3_moe",
                        {{"num_experts", {"x", -1, 0, 7, 16}},
                         {"num_experts_per_tok", {"x", -1, 9}},
                         {"decoder_sparse_step", {"x", -1, 0}},
                         {"mlp_only_layers", {"x", 1, Json::array({-1}), Json::array({1})}}}},
                    FaultyFields{"mixtral",
                                 {{"num_local_experts", {"x", -1, 3, 8}},
                                  {"num_experts_per_tok", {"x", -1, 5}}}},
                    FaultyFields{"ernie4_5_moe",
                                 {{"moe_num_experts", {"x", -1, 4, 16}},
                                  {"moe_k", {"x", -1, 9}},
                                  {"moe_layer_interval", {"x", 0, 1}},
                                  {"moe_layer_start_index", {"x", -1, 2}}}}),
    [](const auto& test) { return std::string(test.param.golden); });

using Change = std::function<void(test::Matrices* all, const std::string& name)>;

void make_shorter(test::Matrices* all, const std::string& name) {
  test::Matrix& own = all->at(name);
  const int64_t each = std::ssize(own.values) / own.shape[0];
  own.shape[0] += own.shape[0] > 1 ? -1 : 1;
  own.values.resize(static_cast<size_t>(own.shape[0] * each));
}

void turn_over(test::Matrices* all, const std::string& name) {
  std::vector<int64_t>& shape = all->at(name).shape;
  if (shape.size() < 2 || shape[0] == shape[1]) return make_shorter(all, name);
  std::swap(shape[0], shape[1]);
}

const Change kChanges[] = {[](test::Matrices* all, const std::string& name) { all->erase(name); },
                           make_shorter, turn_over};

// Of an expert that is neither the first nor the last.
bool is_between(const std::string& name) {
  static const std::regex kForm(R"(.*\.experts\.[12456]\..*)");
  return std::regex_match(name, kForm);
}

class TensorsOfMixtures : public testing::TestWithParam<const char*> {};

TEST_P(TensorsOfMixtures, AreNamed) {
  const test::GoldenCase golden = test::golden_cases({GetParam()}).front();
  const test::ScratchFolder folder;
  std::filesystem::copy(golden.folder + "/config.json", folder.file("config.json"));
  const test::Matrices all = test::matrices_of(golden.folder);
  const std::string module = "model.layers.2.";  // a drafter's
  for (const auto& [name, matrix] : all) {
    if (name.starts_with(module) || is_between(name)) continue;
    for (const Change& change : kChanges) {
      test::Matrices changed = all;
      change(&changed, name);
      test::write_floats(folder.file("model.safetensors"), changed);
      const std::string message = end_of_load(folder.path());
      EXPECT_NE(message.find("'" + name + "'"), std::string::npos) << name << ": " << message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, TensorsOfMixtures,
                         testing::Values("deepseek_v3", "glm4_moe", "mixtral"),
                         [](const auto& test) { return std::string(test.param); });

// Keys of a file, with values that are wrong.
TEST(FilesOfMixtures, KeysAreNamed) {
  const test::GoldenCase golden = test::golden_cases({"glm4_moe"}).front();
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  using Values = std::vector<test::Write>;
  const auto word = test::text("x"), huge = test::u32(-1), broken = test::f32(1.5);
  const std::pair<const char*, Values> keys[] = {
      {"expert_count", {word, huge, broken, test::u32(0), test::u32(3), test::u32(8)}},
      {"expert_used_count", {word, huge, broken, test::u32(5)}},
      {"expert_feed_forward_length", {word, huge, broken, test::u32(33)}},
      {"expert_shared_count", {word, huge, broken}},
      {"expert_weights_scale", {word, test::f32(-1), test::f32(NAN)}},
      {"expert_weights_norm", {word}},
      {"expert_group_count", {word, huge, broken, test::u32(3)}},
      {"expert_group_used_count", {word, huge, broken, test::u32(2)}},
      {"leading_dense_block_count", {word, huge, broken, test::u32(0), test::u32(2)}},
      {"nextn_predict_layers", {word, huge, test::u32(3)}}};
  for (const auto& [key, values] : keys) {
    for (const test::Write& value : values) {
      test::write_gguf(path, "glm4moe", golden.folder, {},
                       [&](std::map<std::string, test::Write>* all) { (*all)[key] = value; });
      const std::string message = end_of_load(path);
      EXPECT_NE(message.find("'glm4moe." + std::string(key) + "'"), std::string::npos)
          << key << ": " << message;
    }
  }
}

TEST(FilesOfMixtures, TensorsAreNamed) {
  const test::GoldenCase golden = test::golden_cases({"glm4_moe"}).front();
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  test::Matrices all;
  test::write_gguf(path, "glm4moe", golden.folder, [&](test::Matrices* own) { all = *own; });
  ASSERT_EQ(end_of_load(path), "(made)");
  const GgufArchitecture& architecture = test::architecture_of("glm4moe");
  // What is there and how large it is says what others there must be.
  const std::set<std::string> says_form = {"output.weight", "token_embd.weight",
                                           "blk.0.attn_q.bias", "blk.0.attn_q_norm.weight"};
  for (const auto& [name, matrix] : all) {
    const std::string own =
        name.starts_with("blk.") ? name : gguf_tensor_name(architecture, name).value_or("");
    if (own.starts_with("blk.2.") || says_form.contains(own)) continue;  // a drafter's
    for (const Change& change : kChanges) {
      test::write_gguf(path, "glm4moe", golden.folder,
                       [&](test::Matrices* changed) { change(changed, name); });
      const std::string message = end_of_load(path);
      EXPECT_NE(message.find(own), std::string::npos) << own << ": " << message;
    }
  }
}

}  // namespace
}  // namespace foretoken
