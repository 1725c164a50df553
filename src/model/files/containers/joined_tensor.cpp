#include "model/files/containers/joined_tensor.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"
#include "model/files/containers/safetensors.h"

namespace foretoken {

Result<std::unique_ptr<JoinedTensor>> JoinedTensor::create(std::vector<const TensorView*> parts,
                                                           Axis axis) {
  FT_CHECK(!parts.empty());
  const TensorView& first = *parts.front();
  const size_t other = axis == Axis::kRows ? 1 : 0;
  for (const TensorView* part : parts) {
    const bool fits = part->shape.size() == 2 && part->num_elements() > 0 &&
                      part->element_bytes() > 0 && part->dtype_name == first.dtype_name &&
                      part->shape[other] == first.shape[other];
    if (fits) continue;
    return invalid_argument(part->file + ": tensor '" + part->name + "', " + part->dtype_name +
                            " " + part->shape_text() + ", cannot be joined with that of " +
                            first.file + ", " + first.dtype_name + " " + first.shape_text() +
                            "; fetch all parts of one model");
  }
  return std::unique_ptr<JoinedTensor>(new JoinedTensor(std::move(parts), axis));
}

// Bytes of a part that follow one another: all, or a row.
int64_t JoinedTensor::run_bytes(const TensorView& part) const {
  return axis_ == Axis::kRows ? part.num_bytes : part.num_bytes / part.shape[0];
}

TensorView JoinedTensor::view(const std::string& name) const {
  TensorView view;
  const TensorView& first = *parts_.front();
  view.name = name;
  view.file = first.file;
  view.dtype = first.dtype;
  view.dtype_name = first.dtype_name;
  view.shape = first.shape;
  const size_t joined = axis_ == Axis::kRows ? 0 : 1;
  view.shape[joined] = 0;
  for (const TensorView* part : parts_) {
    view.num_bytes += part->num_bytes;
    view.shape[joined] += part->shape[joined];
  }
  view.joined = this;
  return view;
}

Status JoinedTensor::read(int64_t first, int64_t count, void* to) const {
  int64_t turn = 0;  // of all parts
  for (const TensorView* part : parts_) turn += run_bytes(*part);
  auto* out = static_cast<std::byte*>(to);
  while (count > 0) {
    const int64_t row = first / turn;
    int64_t at = first % turn;
    size_t i = 0;
    while (at >= run_bytes(*parts_[i])) at -= run_bytes(*parts_[i++]);
    const int64_t run = run_bytes(*parts_[i]), here = std::min(count, run - at);
    FT_RETURN_IF_ERROR(parts_[i]->read(row * run + at, here, out));
    first += here;
    count -= here;
    out += here;
  }
  return {};
}

}  // namespace foretoken
