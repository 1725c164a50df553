#include "model/files/weight_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::ScratchFolder;

constexpr const char* kShardIndex = "model.safetensors.index.json";

// The files that are found beside `names`, without their folder.
std::vector<std::string> found_in(const ScratchFolder& folder) {
  const auto found = find_weight_files(folder.path());
  EXPECT_TRUE(found.ok()) << found.status().message();
  std::vector<std::string> names;
  if (!found.ok()) return names;
  for (const auto& file : found.value().files) names.push_back(file.filename().string());
  return names;
}

void expect_refusal(const ScratchFolder& folder, StatusCode code, const std::string& part) {
  const auto found = find_weight_files(folder.path());
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), code);
  EXPECT_NE(found.status().message().find(part), std::string::npos) << found.status().message();
}

using Names = std::vector<std::string>;

TEST(WeightFiles, OneFileGoesBeforeAllElse) {
  const ScratchFolder folder;
  for (const char* name : {"model.safetensors", "other.safetensors", "pytorch_model.bin"}) {
    folder.write(name, "x");
  }
  folder.write(kShardIndex, R"({"weight_map":{"a":"other.safetensors"}})");
  EXPECT_EQ(found_in(folder), Names{"model.safetensors"});
}

TEST(WeightFiles, MedusaHeadsGoBehindAllElse) {
  const ScratchFolder folder;
  folder.write("optimizer.pt", "x");
  expect_refusal(folder, StatusCode::kUnsupported, "optimizer.pt");
  folder.write("medusa_lm_head.pt", "x");
  EXPECT_EQ(found_in(folder), Names{"medusa_lm_head.pt"});
  folder.write("medusa_lm_head.safetensors", "x");
  EXPECT_EQ(found_in(folder), Names{"medusa_lm_head.safetensors"});
}

TEST(WeightFiles, WithoutAnIndexTheWholeSet) {
  const ScratchFolder folder;
  folder.write("model-00002-of-00002.safetensors", "x");
  expect_refusal(folder, StatusCode::kNotFound, "shard 1 of 2");
  folder.write("model-00001-of-00002.safetensors", "x");
  folder.write("model-00001-of-00004.safetensors", "x");
  folder.write("adapter_model.safetensors", "x");
  folder.write("consolidated.safetensors", "x");
  EXPECT_EQ(found_in(folder),
            (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
}

TEST(WeightFiles, WithoutAnIndexAndNumbersAllFiles) {
  const ScratchFolder folder;
  folder.write("b.safetensors", "x");
  folder.write("a.safetensors", "x");
  EXPECT_EQ(found_in(folder), (Names{"a.safetensors", "b.safetensors"}));
}

TEST(WeightFiles, StaleIndexes) {
  const ScratchFolder folder;
  folder.write(kShardIndex, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  expect_refusal(folder, StatusCode::kNotFound, "one.safetensors");
  folder.write("quantised.safetensors", "x");
  EXPECT_EQ(found_in(folder), Names{"quantised.safetensors"});
  // Some of its shards: an incomplete download and no stale index.
  folder.write("two.safetensors", "x");
  expect_refusal(folder, StatusCode::kNotFound, "one.safetensors is missing");
  folder.write("one.safetensors", "x");
  EXPECT_EQ(found_in(folder), (Names{"one.safetensors", "two.safetensors"}));
  EXPECT_EQ(find_weight_files(folder.path()).value().index, folder.file(kShardIndex));
}

TEST(WeightFiles, FilesBesideTheIndexed) {
  const ScratchFolder folder;
  folder.write(kShardIndex, R"({"weight_map":{"a":"one.safetensors"}})");
  for (const char* name : {"one.safetensors", "two.safetensors", "adapter_model.safetensors"}) {
    folder.write(name, "x");
  }
  EXPECT_EQ(found_in(folder), Names{"one.safetensors"});
  const auto others = find_weight_files(folder.path()).value().others;
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0], folder.file("two.safetensors"));
}

// Weights that were cut anew, with the old index and one of the old shards beside them.
TEST(WeightFiles, AWholeSetGoesBeforeAStaleIndex) {
  const ScratchFolder folder;
  folder.write(kShardIndex, R"({"weight_map":{"a":"model-00001-of-00002.safetensors",)"
                            R"("b":"model-00002-of-00002.safetensors"}})");
  folder.write("model-00001-of-00002.safetensors", "x");
  expect_refusal(folder, StatusCode::kNotFound, "model-00002-of-00002.safetensors is missing");
  const Names whole = {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                       "model-00003-of-00003.safetensors"};
  for (const std::string& name : whole) folder.write(name, "x");
  EXPECT_EQ(found_in(folder), whole);
}

TEST(WeightFiles, TorchFiles) {
  const ScratchFolder folder;
  folder.write("training_args.bin", "x");
  folder.write("optimizer.bin", "x");
  expect_refusal(folder, StatusCode::kNotFound, "no model.safetensors");
  folder.write("pytorch_model-00001-of-00002.bin", "x");
  folder.write("pytorch_model-00002-of-00002.bin", "x");
  const Names shards = {"pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"};
  EXPECT_EQ(found_in(folder), shards);
  folder.write("pytorch_model.bin.index.json",
               R"({"weight_map":{"a":"pytorch_model-00001-of-00002.bin",)"
               R"("b":"pytorch_model-00002-of-00002.bin"}})");
  EXPECT_EQ(found_in(folder), shards);
  folder.write(kShardIndex, R"({"weight_map":{"a":"gone.safetensors"}})");
  EXPECT_EQ(found_in(folder), shards);
  folder.write("pytorch_model.bin", "x");
  EXPECT_EQ(found_in(folder), Names{"pytorch_model.bin"});
}

TEST(WeightFiles, MistralsOwnLayoutMayHaveSeveralFiles) {
  const ScratchFolder folder;
  folder.write("params.json", "{}");
  const Names shards = {"consolidated-00001-of-00002.safetensors",
                        "consolidated-00002-of-00002.safetensors"};
  for (const std::string& name : shards) folder.write(name, "x");
  folder.write("consolidated.safetensors.index.json",
               R"({"weight_map":{"a":"consolidated-00001-of-00002.safetensors",)"
               R"("b":"consolidated-00002-of-00002.safetensors"}})");
  EXPECT_EQ(found_in(folder), shards);
  folder.write("consolidated.safetensors", "x");
  EXPECT_EQ(found_in(folder), Names{"consolidated.safetensors"});
}

// Its configuration says how their rows lie, which is another order in files of transformers.
TEST(WeightFiles, WithParamsAloneThoseOfTheMaker) {
  for (const char* const own : {"consolidated.safetensors", "consolidated.00.pth"}) {
    const ScratchFolder folder;
    folder.write("params.json", "{}");
    folder.write(own, "x");
    for (const char* const other :
         {"model-00001-of-00001.safetensors", "model.safetensors", "pytorch_model.bin"}) {
      folder.write(other, "x");
      EXPECT_EQ(found_in(folder), Names{own}) << other;
    }
    folder.write("config.json", "{}");
    EXPECT_EQ(found_in(folder), Names{"model.safetensors"});
  }
}

TEST(WeightFiles, OtherFormatsAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"consolidated.safetensors", "Mistral's own layout"},
      {"adapter_config.json", "is a LoRA adapter"},
      {"tf_model.h5", "TensorFlow"},
      {"flax_model.msgpack", "Flax"},
      {"model.onnx", "ONNX"},
      {"rank0.engine", "TensorRT's engines"},
      {"model.nemo", "NeMo's archives"},
      {"openvino_model.xml", "OpenVINO's models"},
      {"model.tflite", "LiteRT's models"},
      {"consolidated.00.pth", "has only consolidated.00.pth"},
      {"model.safetensors.incomplete", "a download that was not finished"},
      {"model.safetensors.crdownload", "a download that was not finished"},
      {"model.safetensors?download=true", "rename it to end in .safetensors"},
  };
  for (const auto& [name, part] : cases) {
    const ScratchFolder folder;
    folder.write(name, "x");
    expect_refusal(folder, StatusCode::kUnsupported, part);
  }
}

TEST(WeightFiles, BrokenIndexes) {
  const ScratchFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"{", "not valid JSON"},
      {"{}", "weight_map"},
      {R"({"weight_map":{"a":"../one.safetensors"}})", "same folder"},
      {R"({"weight_map":{"a":7}})", "same folder"},
  };
  for (const auto& [text, part] : cases) {
    folder.write(kShardIndex, text);
    expect_refusal(folder, StatusCode::kInvalidArgument, part);
  }
}

}  // namespace
}  // namespace foretoken
