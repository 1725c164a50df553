#include "model/weights/saved_bases.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "model/config/peft_config.h"
#include "model/files/checkpoint.h"
#include "model/files/forms/convert.h"

namespace foretoken {
namespace {

constexpr std::string_view kHead = "lm_head.weight", kTable = "embed_tokens.weight";

// The two last parts of a name: "embed_tokens.weight".
std::string_view ending_of(std::string_view name) {
  const size_t last = name.rfind('.');
  const size_t before = last == 0 || last == name.npos ? name.npos : name.rfind('.', last - 1);
  return before == name.npos ? name : name.substr(before + 1);
}

// The model's tensor of that name, or the one that has its ending; the embedding for an output
// matrix that is tied to it. Null: there is none.
const TensorView* find_own(const Checkpoint& model, const std::string& name) {
  const auto& tensors = model.tensors();
  const auto same = tensors.find(name);
  if (same != tensors.end()) return same->second;
  for (const std::string_view wanted : {ending_of(name), name == kHead ? kTable : kHead}) {
    if (name != kHead && wanted == kHead) break;
    const auto found = std::ranges::find_if(
        tensors, [&](const auto& entry) { return ending_of(entry.first) == wanted; });
    if (found != tensors.end()) return found->second;
  }
  return nullptr;
}

// A half of the last place of bfloat16, and the smallest number of float16.
bool are_equal(float saved, float own) {
  constexpr float kRelative = 1.0f / 256, kSmallest = 0x1p-24f;
  return std::abs(saved - own) <= kRelative * std::abs(own) + kSmallest;
}

Result<bool> have_same_values(const TensorView& saved, const TensorView& own) {
  constexpr int64_t kPiece = 1 << 20;
  const int64_t all = saved.num_elements();
  std::vector<float> left(static_cast<size_t>(std::min(kPiece, all))), right(left.size());
  std::vector<std::byte> raw;
  for (int64_t first = 0; first < all; first += kPiece) {
    const int64_t count = std::min(kPiece, all - first);
    FT_RETURN_IF_ERROR(read_elements(saved, first, count, DType::kF32, left.data(), raw));
    FT_RETURN_IF_ERROR(read_elements(own, first, count, DType::kF32, right.data(), raw));
    if (!std::equal(left.begin(), left.begin() + count, right.begin(), are_equal)) return false;
  }
  return true;
}

// Whether it may be left aside.
Result<bool> is_own(const TensorView& saved, const TensorView& own) {
  if (own.shape != saved.shape || own.dtype == FileDType::kOther) return false;
  FT_RETURN_IF_ERROR(check_convertible(saved));
  return have_same_values(saved, own);
}

// Whether the model has no output matrix but its embedding.
bool is_tied(const Checkpoint& model) {
  return std::ranges::none_of(model.tensors(), [](const auto& entry) {
    return ending_of(entry.first) == kHead || entry.first == "embed_out.weight" ||
           entry.first == "output.weight";
  });
}

bool is_table(const std::string& name) {
  return ending_of(name) != kHead && ending_of(name) != "embed_out.weight";
}

Status check_tokens(const TensorView& rows, const LoraTokens& tokens, const WholeMatrix& whole) {
  const auto count = static_cast<int64_t>(tokens.ids.size());
  if (rows.shape != std::vector<int64_t>{count, whole.columns}) {
    return invalid_argument(
        rows.file + ": tensor '" + tokens.tensor + "' has shape " + rows.shape_text() + ", but " +
        std::to_string(count) + " rows of " + std::to_string(whole.columns) +
        " are wanted by trainable_token_indices and the model; " + kSaveAdapter);
  }
  for (const int32_t id : tokens.ids) {
    if (id < whole.rows) continue;
    return invalid_argument(rows.file + ": the adapter changes token " + std::to_string(id) +
                            " of '" + tokens.module + "', which has " + std::to_string(whole.rows) +
                            " rows, and lacks rows before it: its vocabulary was enlarged; save "
                            "the adapter again with save_embedding_layers=True");
  }
  return check_convertible(rows);
}

// To the last of these ids, where the adapter has the rows of all that come behind the matrix's.
void lengthen(const LoraTokens& tokens, DType dtype, WholeMatrix* whole) {
  std::vector<int32_t> behind = tokens.ids;
  std::erase_if(behind, [&](int32_t id) { return id < whole->rows; });
  std::ranges::sort(behind);
  const auto repeated = std::ranges::unique(behind);
  behind.erase(repeated.begin(), repeated.end());
  const auto count = static_cast<int64_t>(behind.size());
  if (count == 0 || behind.back() != whole->rows + count - 1) return;
  whole->rows += count;
  whole->values.resize(static_cast<size_t>(whole->rows * whole->columns) * dtype_size(dtype));
}

// The adapter's own matrix of that name; the model's, where it has none. Null: neither has.
Result<WholeMatrix*> whole_of(const std::string& module, const Checkpoint& model,
                              LoraAdapter* adapter) {
  const auto known = std::ranges::find_if(adapter->wholes, [&](const WholeMatrix& whole) {
    return ending_of(whole.module + ".weight") == ending_of(module + ".weight");
  });
  if (known != adapter->wholes.end()) return &*known;
  const TensorView* own = find_own(model, module + ".weight");
  if (own == nullptr || own->shape.size() != 2) return nullptr;
  FT_RETURN_IF_ERROR(check_convertible(*own));
  WholeMatrix whole{module, own->shape[0], own->shape[1], {}};
  whole.values.resize(static_cast<size_t>(whole.rows * whole.columns) * dtype_size(adapter->dtype));
  FT_RETURN_IF_ERROR(convert_tensor(*own, adapter->dtype, whole.values.data()));
  return &adapter->wholes.emplace_back(std::move(whole));
}

// Puts the rows of these ids in the place of the matrix's own.
Status put_rows(const TensorView& rows, const LoraTokens& tokens, DType dtype, WholeMatrix* whole) {
  lengthen(tokens, dtype, whole);
  FT_RETURN_IF_ERROR(check_tokens(rows, tokens, *whole));
  const size_t row_bytes = static_cast<size_t>(whole->columns) * dtype_size(dtype);
  std::vector<std::byte> raw;
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    std::byte* to = whole->values.data() + static_cast<size_t>(tokens.ids[i]) * row_bytes;
    FT_RETURN_IF_ERROR(read_elements(rows, static_cast<int64_t>(i) * whole->columns, whole->columns,
                                     dtype, to, raw));
  }
  return {};
}

Status lacks_rows(const AdapterFile& file, const std::string& module) {
  return invalid_argument(file.path + ": it lacks the rows of '" + module +
                          "' that trainable_token_indices of adapter_config.json names; " +
                          kSaveAdapter);
}

}  // namespace

Status read_token_rows(const std::string& folder, const ModelFiles& model, LoraAdapter* adapter) {
  if (adapter->tokens.empty()) return {};
  FT_ASSIGN_OR_RETURN(const AdapterFile file, open_peft_weights(folder));
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  const bool has_head = std::ranges::any_of(adapter->tokens, [](const LoraTokens& tokens) {
    return !tokens.tensor.empty() && !is_table(tokens.module + ".weight");
  });
  const bool head_follows = !has_head && is_tied(checkpoint);
  for (const LoraTokens& tokens : adapter->tokens) {
    if (tokens.tensor.empty()) {
      if (head_follows && !is_table(tokens.module + ".weight")) continue;
      return lacks_rows(file, tokens.module);
    }
    const TensorView& rows = file.tensors().at(tokens.tensor);
    std::vector<std::string> modules = {tokens.module};
    if (head_follows) modules.emplace_back("lm_head");
    for (const std::string& module : modules) {
      FT_ASSIGN_OR_RETURN(WholeMatrix * whole, whole_of(module, checkpoint, adapter));
      if (whole == nullptr) {
        return unsupported(file.path + ": tensor '" + tokens.tensor +
                           "' holds rows of a matrix that the model has not; " + kOtherModel);
      }
      FT_RETURN_IF_ERROR(put_rows(rows, tokens, adapter->dtype, whole));
    }
  }
  return {};
}

Result<std::vector<LoraBase>> changed_bases(const std::string& folder, const LoraAdapter& adapter,
                                            const ModelFiles& model) {
  std::vector<LoraBase> changed;
  if (adapter.bases.empty()) return changed;
  FT_ASSIGN_OR_RETURN(const AdapterFile file, open_peft_weights(folder));
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  const bool has_head =
      !std::ranges::all_of(adapter.bases, [](const LoraBase& base) { return is_table(base.name); });
  for (const LoraBase& base : adapter.bases) {
    const TensorView* own = find_own(checkpoint, base.name);
    if (own == nullptr) {
      return unsupported(file.path + ": tensor '" + base.tensor +
                         "' is a whole matrix, which the model has not; " + kOtherModel);
    }
    FT_ASSIGN_OR_RETURN(const bool same, is_own(file.tensors().at(base.tensor), *own));
    if (same) continue;
    changed.push_back(base);
    if (!is_table(base.name) || has_head || !base.ties || !is_tied(checkpoint)) continue;
    changed.push_back({base.tensor, std::string(kHead), base.was_trained, base.ties});
  }
  return changed;
}

}  // namespace foretoken
