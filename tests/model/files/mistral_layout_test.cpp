#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "base/files/text_file.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

std::string own_name(std::string name) {
  const std::pair<const char*, const char*> parts[] = {{"model.embed_tokens", "tok_embeddings"},
                                                       {"model.norm", "norm"},
                                                       {"lm_head", "output"},
                                                       {"model.layers", "layers"},
                                                       {"self_attn.q_proj", "attention.wq"},
                                                       {"self_attn.k_proj", "attention.wk"},
                                                       {"self_attn.v_proj", "attention.wv"},
                                                       {"self_attn.o_proj", "attention.wo"},
                                                       {"input_layernorm", "attention_norm"},
                                                       {"mlp.gate_proj", "feed_forward.w1"},
                                                       {"mlp.down_proj", "feed_forward.w2"},
                                                       {"mlp.up_proj", "feed_forward.w3"},
                                                       {"post_attention_layernorm", "ffn_norm"}};
  for (const auto& [usual, own] : parts) {
    if (const size_t at = name.find(usual); at != std::string::npos) {
      name.replace(at, std::strlen(usual), own);
    }
  }
  return name;
}

// The rows of the two halves of each head take turns.
std::string with_pairs(const TensorView& tensor, int64_t head) {
  const int64_t width = tensor.num_bytes / tensor.shape[0];
  std::string turned(static_cast<size_t>(tensor.num_bytes), ' ');
  for (int64_t row = 0; row < tensor.shape[0]; ++row) {
    const int64_t at = row % head, half = head / 2;
    const int64_t there = row - at + at % half * 2 + at / half;
    std::memcpy(turned.data() + there * width, tensor.data + row * width,
                static_cast<size_t>(width));
  }
  return turned;
}

std::vector<float> all_of(const TensorView& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.num_elements()));
  EXPECT_TRUE(convert_tensor(tensor, DType::kF32, values.data()).ok());
  return values;
}

// A folder of Mistral's own layout has the tensors of the folder of transformers that it stands
// for.
TEST(MistralLayout, IsThatOfTransformers) {
  const std::string golden = std::string(kSourceFolder) + "/tests/golden/architectures/mistral";
  const auto file = SafetensorsFile::open(golden + "/model.safetensors").value();
  Json header = Json::object();
  std::string data;
  for (const auto& [name, tensor] : file->tensors()) {
    const bool turns =
        name.find("q_proj") != std::string::npos || name.find("k_proj") != std::string::npos;
    const std::string bytes = turns ? with_pairs(tensor, 16)
                                    : std::string(reinterpret_cast<const char*>(tensor.data),
                                                  static_cast<size_t>(tensor.num_bytes));
    header[own_name(name)] = {{"dtype", tensor.dtype_name},
                              {"shape", tensor.shape},
                              {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  std::string text = header.dump();
  while (text.size() % 8 != 0) text += ' ';
  const uint64_t size = text.size();
  std::string front(8, ' ');
  std::memcpy(front.data(), &size, 8);
  const test::ScratchFolder folder;
  folder.write("consolidated.safetensors", front + text + data);
  folder.write("params.json", R"({"dim": 32, "n_layers": 3, "head_dim": 16, "hidden_dim": 48,
      "n_heads": 4, "n_kv_heads": 2, "norm_eps": 1e-5, "vocab_size": 256})");
  const auto own = Checkpoint::open(folder.path());
  ASSERT_TRUE(own.ok()) << own.status().message();
  const auto usual = Checkpoint::open(golden).value();
  ASSERT_EQ(own.value().tensors().size(), usual.tensors().size());
  for (const auto& [name, tensor] : usual.tensors()) {
    const auto found = own.value().find(name);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(all_of(*found.value()), all_of(*tensor)) << name;
  }
}

}  // namespace
}  // namespace foretoken
