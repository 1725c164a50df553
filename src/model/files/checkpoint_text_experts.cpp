#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/files/checkpoint.h"

namespace foretoken {
namespace {

constexpr std::string_view kImageRouter = ".gate.weight_1";
constexpr std::string_view kExpertsOf = ".experts.";

// A copy of a matrix with rows and columns exchanged, of which `view` tells.
Status turn_plain_matrix(const TensorView& matrix, std::vector<uint16_t>* rows, TensorView* view) {
  if (matrix.shape.size() != 2 || matrix.data == nullptr || matrix.element_bytes() < 2) {
    return unsupported(matrix.file + ": the tensor '" + matrix.name + "' is " + matrix.dtype_name +
                       " " + matrix.shape_text() +
                       ", but a router [hidden, experts] of floats is read here; use the model as "
                       "it was published");
  }
  const auto height = static_cast<size_t>(matrix.shape[0]);
  const auto width = static_cast<size_t>(matrix.shape[1]);
  const auto bytes = static_cast<size_t>(matrix.element_bytes());
  std::vector<std::byte> plain(static_cast<size_t>(matrix.num_bytes));
  FT_RETURN_IF_ERROR(matrix.read(0, matrix.num_bytes, plain.data()));
  rows->resize(plain.size() / sizeof(uint16_t));
  auto* to = reinterpret_cast<std::byte*>(rows->data());
  for (size_t row = 0; row < width; ++row) {
    for (size_t col = 0; col < height; ++col) {
      std::memcpy(to + (row * height + col) * bytes, plain.data() + (col * width + row) * bytes,
                  bytes);
    }
  }
  *view = matrix;
  view->shape = {matrix.shape[1], matrix.shape[0]};
  view->data = to;
  view->descriptor = -1;
  return {};
}

// The number behind "<mixture>.experts."; -1: the name is of something else.
int64_t expert_number(const std::string& name, const std::string& mixture) {
  const size_t begin = mixture.size() + kExpertsOf.size();
  if (name.size() <= begin || !name.starts_with(mixture + std::string(kExpertsOf))) return -1;
  int64_t number = -1;
  std::from_chars(name.data() + begin, name.data() + name.size(), number);
  return number;
}

}  // namespace

Status Checkpoint::take_text_router(const std::string& mixture, int64_t* count) {
  const auto router = tensors_.find(mixture + ".gate.weight");
  if (router == tensors_.end()) return {};
  auto view = std::make_unique<TensorView>();
  auto& rows = made_rows_.emplace_back(std::make_unique<std::vector<uint16_t>>());
  FT_RETURN_IF_ERROR(turn_plain_matrix(*router->second, rows.get(), view.get()));
  *count = view->shape[0];
  router->second = view.get();
  made_tensors_.push_back(std::move(view));
  const auto correction = tensors_.find(mixture + ".moe_statics.e_score_correction_bias");
  if (correction == tensors_.end() || correction->second->shape.size() != 2 ||
      correction->second->shape[0] != 2) {
    return {};
  }
  auto first = std::make_unique<TensorView>(*correction->second);
  first->shape[0] = 1;
  first->num_bytes /= 2;
  correction->second = first.get();
  made_tensors_.push_back(std::move(first));
  return {};
}

Status Checkpoint::take_text_experts() {
  std::vector<std::string> mixtures;
  for (const auto& [name, tensor] : tensors_) {
    if (!name.ends_with(kImageRouter)) continue;
    mixtures.push_back(name.substr(0, name.size() - kImageRouter.size()));
  }
  for (const std::string& mixture : mixtures) {
    int64_t count = 0;
    FT_RETURN_IF_ERROR(take_text_router(mixture, &count));
    tensors_.erase(mixture + std::string(kImageRouter));
    const std::string begin = mixture + std::string(kExpertsOf);
    for (auto at = tensors_.lower_bound(begin);
         at != tensors_.end() && at->first.starts_with(begin);) {
      at = expert_number(at->first, mixture) >= count ? tensors_.erase(at) : std::next(at);
    }
  }
  return {};
}

}  // namespace foretoken
