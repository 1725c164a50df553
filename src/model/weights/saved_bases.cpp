#include "model/weights/saved_bases.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

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

// What stands in the way of leaving it aside; empty: nothing.
Result<std::string> difference(const TensorView& saved, const Checkpoint& model,
                               const std::string& name) {
  const TensorView* own = find_own(model, name);
  if (own == nullptr) return std::string("which the model has not");
  if (own->shape != saved.shape) {
    return "whose shape " + saved.shape_text() + " is not the model's " + own->shape_text();
  }
  if (own->dtype == FileDType::kOther) {
    return std::string("which cannot be compared with the model's, as that is quantised");
  }
  FT_RETURN_IF_ERROR(check_convertible(saved));
  FT_ASSIGN_OR_RETURN(const bool same, have_same_values(saved, *own));
  return std::string(same ? "" : "whose values are not the model's");
}

}  // namespace

Status check_saved_bases(const std::string& folder, const LoraAdapter& adapter,
                         const ModelFiles& model) {
  if (adapter.bases.empty()) return {};
  FT_ASSIGN_OR_RETURN(const AdapterFile file, open_peft_weights(folder));
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(model));
  for (const LoraBase& base : adapter.bases) {
    const TensorView& saved = file.tensors().at(base.tensor);
    FT_ASSIGN_OR_RETURN(const std::string differs, difference(saved, checkpoint, base.name));
    if (differs.empty()) continue;
    return unsupported(file.path + ": tensor '" + base.tensor +
                       "' is a whole matrix that PEFT saved beside the adapter, " + differs +
                       "; merge the adapter into its model (merge_and_unload) and serve that, or, "
                       "where the matrix was not trained, save the adapter with "
                       "save_embedding_layers=False");
  }
  return {};
}

}  // namespace foretoken
