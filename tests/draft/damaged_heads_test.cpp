#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>

#include "dialled/safetensors_writer.h"
#include "draft/draft_context.h"
#include "model/files/checkpoint.h"
#include "support/folders.h"
#include "support/scratch_folder.h"

// Files of heads with a tensor too few, of another shape or of another type: one sentence that
// names the tensor, for every one of every layout.

namespace foretoken::test {
namespace {

namespace fs = std::filesystem;

constexpr int kDamagedDrafts = 4;

// A folder of tests/golden, and the target in architectures/ that it is for.
struct PublishedHead {
  const char* folder;
  const char* method;
  const char* target = "llama";
  std::set<std::string> optional = {};  // files may lack these

  std::string name() const {
    std::string text = folder;
    for (char& c : text) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return text;
  }
};
void PrintTo(const PublishedHead& head, std::ostream* out) { *out << head.folder; }

const PublishedHead kPublishedHeads[] = {
    {"heads/eagle", "eagle", "llama", {"fc.bias"}},
    {"heads/eagle3", "eagle3"},
    {"heads/eagle3-speculators", "eagle3", "llama", {"embed_tokens.weight"}},
    {"heads/eagle3-1-speculators", "eagle3", "llama", {"embed_tokens.weight"}},
    {"heads/mtp", "mtp"},
    {"heads/mtp-2", "mtp"},
    {"block_heads/dflash", "dflash"},
    {"block_heads/dflash-windows", "dflash"},
    {"block_heads/dflash-last", "dflash"},
    {"block_heads/dspark", "dspark"},
    {"block_heads/dspark-speculators", "dspark"},
    {"block_heads/domino", "domino"},
    {"block_heads/domino-behind", "domino"},
    {"layered_heads/eagle-3-layers", "eagle", "llama", {"fc.bias"}},
    {"layered_heads/eagle3-2-layers", "eagle3"},
    {"layered_heads/p_eagle", "p_eagle"},
    {"layered_heads/p_eagle-vllm", "p_eagle"},
    {"layered_heads/p_eagle-speculators", "p_eagle"},
    {"chain_heads/medusa-mapped", "medusa"},
    {"chain_heads/mlp_speculator", "mlp_speculator"},
    {"chain_heads/mlp_speculator-tied", "mlp_speculator"},
    {"pard_head/pard", "pard"},
    {"assistants/dense", "gemma4_assistant", "gemma4-deep"},
    {"assistants/ordered", "gemma4_assistant", "gemma4-large"},
    {"assistants/unified", "gemma4_assistant", "gemma4-unified"},
};

std::string published_folder(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/" + name;
}

class DamagedHeads : public testing::TestWithParam<PublishedHead> {
 protected:
  void SetUp() override {
    if (test_device() == nullptr) GTEST_SKIP() << "no device";
    LoadOptions options;
    options.max_rows = options.max_logits_rows = 16;
    target_ = load_model(*test_device(), target_folder(), options).value();
    config_.method = GetParam().method;
    config_.model = folder_.path();
    config_.num_speculative_tokens = kDamagedDrafts;
    for (const auto& entry : fs::directory_iterator(published_folder(GetParam().folder))) {
      if (entry.path().extension() == ".safetensors") {
        file_ = folder_.file(entry.path().filename().string());
      } else if (entry.is_regular_file()) {
        fs::copy(entry.path(), folder_.file(entry.path().filename().string()));
      }
    }
    for (const auto& [name, view] : whole_.tensors()) {
      const TensorView* source = view;
      tensors_.push_back({name, view->dtype, view->shape, [source](std::byte* out) {
                            std::memcpy(out, source->data, static_cast<size_t>(source->num_bytes));
                          }});
    }
  }

  static std::string target_folder() {
    return published_folder(std::string("architectures/") + GetParam().target);
  }

  std::string refusal_of(const std::vector<TensorToWrite>& tensors) {
    EXPECT_TRUE(write_safetensors(file_, tensors).ok());
    return refusal(
        make_drafter({.config = config_,
                      .device = *test_device(),
                      .target = *target_,
                      .target_folder = target_folder(),
                      .folder = config_.model,
                      .attention = find_attention_backend("auto", *test_device()).value(),
                      .max_model_len = 64,
                      .max_rows = 16,
                      .max_spans = 4,
                      .token_map = {},
                      .token_map_back = {},
                      .draft_vocab_ids = {}}));
  }

  // With one tensor changed.
  void expect_named(size_t place, const char* what,
                    const std::function<void(TensorToWrite&)>& change) {
    std::vector<TensorToWrite> tensors = tensors_;
    change(tensors[place]);
    const std::string message = refusal_of(tensors);
    EXPECT_NE(message.find(tensors[place].name), std::string::npos) << what << ": " << message;
  }

  const Checkpoint whole_ = Checkpoint::open(published_folder(GetParam().folder)).value();
  const ScratchFolder folder_;
  std::string file_;
  SpeculativeConfig config_;
  std::unique_ptr<Model> target_;
  std::vector<TensorToWrite> tensors_;
};

int64_t count_of(const TensorToWrite& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.shape) count *= extent;
  return count;
}

// Zeros of some shape and type in the place of a tensor.
void make_zeros(TensorToWrite& tensor, std::vector<int64_t> shape, FileDType dtype) {
  tensor.shape = std::move(shape);
  tensor.dtype = dtype;
  const auto bytes = static_cast<size_t>(count_of(tensor)) * (dtype == FileDType::kI64    ? 8
                                                              : dtype == FileDType::kF32  ? 4
                                                              : dtype == FileDType::kBool ? 1
                                                                                          : 2);
  tensor.fill = [bytes](std::byte* out) { std::memset(out, 0, bytes); };
}

TEST_P(DamagedHeads, EveryTensorIsNamed) {
  ASSERT_EQ(refusal_of(tensors_), "(made)");
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorToWrite whole = tensors_[i];
    if (whole.name == "t2d") continue;  // d2t says the same
    if (!GetParam().optional.contains(whole.name)) {
      std::vector<TensorToWrite> fewer = tensors_;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      const std::string message = refusal_of(fewer);
      EXPECT_NE(message.find(whole.name), std::string::npos) << message;
    }
    expect_named(i, "one less", [](TensorToWrite& tensor) {
      std::vector<int64_t> shape = tensor.shape;
      const auto most = std::max_element(shape.begin(), shape.end());
      *most += *most > 1 ? -1 : 1;
      make_zeros(tensor, std::move(shape), tensor.dtype);
    });
    if (whole.shape.size() == 2 && whole.shape[0] != whole.shape[1] && whole.shape[0] > 1) {
      expect_named(i, "turned", [](TensorToWrite& tensor) {
        make_zeros(tensor, {tensor.shape[1], tensor.shape[0]}, tensor.dtype);
      });
    }
    expect_named(i, "another type", [](TensorToWrite& tensor) {
      const bool of_ids = tensor.dtype == FileDType::kI64;
      make_zeros(tensor, tensor.shape, of_ids ? FileDType::kF32 : FileDType::kI64);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, DamagedHeads, testing::ValuesIn(kPublishedHeads),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace foretoken::test
