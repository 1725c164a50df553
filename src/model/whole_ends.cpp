#include "model/whole_ends.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "model/config/peft_config.h"

namespace foretoken {
namespace {

constexpr const char* kWholeRoom =
    "the adapters' own matrices (lower --max-loras, or leave --lora-modules-to-save off)";

std::string last_part(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::string shape_of(int64_t rows, int64_t width) {
  return "[" + std::to_string(rows) + ", " + std::to_string(width) + "]";
}

}  // namespace

size_t WholeEnds::end_bytes(const WholeEnd& end) const {
  const int64_t rows = (end.count + kLoraRankStep - 1) / kLoraRankStep * kLoraRankStep;
  return static_cast<size_t>(rows * end.width) * dtype_size(dtype_);
}

Status WholeEnds::take(std::vector<WholeEnd> ends) {
  ends_ = std::move(ends);
  for (const WholeEnd& end : ends_) {
    offsets_.push_back(slot_bytes_);
    slot_bytes_ += (end_bytes(end) + 255) / 256 * 256;
  }
  const auto slots = static_cast<size_t>(limits_.num_slots);
  if (slots == 0 || ends_.empty()) return {};
  FT_ASSIGN_OR_RETURN(slots_, arena_.take_array<std::byte>(slots * slot_bytes_, kWholeRoom));
  FT_ASSIGN_OR_RETURN(table_, arena_.take_array<LoraWhole>(slots * ends_.size(), kWholeRoom));
  FT_ASSIGN_OR_RETURN(table_pinned_,
                      pinned_.take_array<LoraWhole>(slots * ends_.size(), kWholeRoom));
  return {};
}

const WholeMatrix* WholeEnds::of_end(const LoraAdapter& adapter, const WholeEnd& end) const {
  const auto at = std::ranges::find_if(adapter.wholes, [&](const WholeMatrix& whole) {
    return last_part(whole.module) == last_part(end.module);
  });
  return at == adapter.wholes.end() ? nullptr : &*at;
}

int64_t WholeEnds::num_ids(const LoraAdapter& adapter, bool is_table) const {
  for (const WholeEnd& end : ends_) {
    const WholeMatrix* whole = end.is_table == is_table ? of_end(adapter, end) : nullptr;
    if (whole != nullptr) return whole->rows;
  }
  return 0;
}

Status WholeEnds::check(const WholeMatrix& whole, const WholeEnd& end) const {
  const int64_t own = end.of_file - limits_.added_ids;
  const std::string what = "the adapter has a matrix of its own for '" + whole.module + "', " +
                           shape_of(whole.rows, whole.columns);
  const std::string but = ", but the model's is " + shape_of(own, end.width);
  if (whole.columns != end.width) {
    return invalid_argument(what + but + "; " + kOtherModel);
  }
  if (whole.rows > end.of_file && !end.is_table && limits_.head_has_bias) {
    return unsupported(what + but + " and has a bias; " + kMergeAdapter);
  }
  if (whole.rows > end.of_file) {
    return unsupported(what + but +
                       ": its vocabulary was enlarged; start with --lora-modules-to-save, "
                       "--lora-extra-vocab-size " +
                       std::to_string(whole.rows - own) +
                       " and the adapter's tokenizer.json in the model's folder");
  }
  if (!end.is_table && whole.rows < end.of_file && !limits_.takes_fewer_ids) {
    return unsupported(what + but +
                       ", and its logits are capped: fewer ids cannot be told apart "
                       "there; " +
                       kMergeAdapter);
  }
  if (!end.is_table && limits_.head_has_bias) {
    return unsupported(what + ", and the model's output matrix has a bias; " + kMergeAdapter);
  }
  if (limits_.num_slots > 0) return {};
  return unsupported(
      what +
      " (modules_to_save, trainable_token_indices): start with --lora-modules-to-save, which "
      "keeps room for such matrices "
      "in each of --max-loras places, or, where it was not trained, save the adapter with "
      "save_embedding_layers=False");
}

Result<std::vector<WholeCopy>> WholeEnds::place(const LoraAdapter& adapter, size_t offset,
                                                bool is_checked) const {
  std::vector<WholeCopy> copies;
  for (size_t i = 0; i < ends_.size(); ++i) {
    const WholeMatrix* whole = of_end(adapter, ends_[i]);
    if (whole == nullptr) continue;
    FT_RETURN_IF_ERROR(check(*whole, ends_[i]));
    if (ends_[i].count == 0) continue;
    const int64_t rows = std::clamp<int64_t>(whole->rows - ends_[i].first, 0, ends_[i].count);
    copies.push_back({i, offset, end_bytes(ends_[i]), static_cast<int32_t>(rows)});
    offset += copies.back().bytes;
  }
  for (const WholeMatrix& whole : adapter.wholes) {
    const bool known = std::ranges::any_of(ends_, [&](const WholeEnd& end) {
      return last_part(whole.module) == last_part(end.module);
    });
    if (known || is_checked) continue;
    return unsupported("the adapter has a matrix of its own for '" + whole.module +
                       "', which cannot be another than the model's here; " + kMergeAdapter);
  }
  return copies;
}

void WholeEnds::fill(const std::vector<WholeCopy>& copies, const LoraAdapter& adapter,
                     std::byte* image) const {
  for (const WholeCopy& copy : copies) {
    const WholeEnd& end = ends_[copy.end];
    const WholeMatrix& whole = *of_end(adapter, end);
    const size_t row_bytes = static_cast<size_t>(end.width) * dtype_size(dtype_);
    const size_t used = static_cast<size_t>(copy.count) * row_bytes;
    std::memcpy(image + copy.offset,
                whole.values.data() + static_cast<size_t>(end.first) * row_bytes, used);
    std::memset(image + copy.offset + used, 0, copy.bytes - used);
  }
}

void WholeEnds::load(Queue& queue, int32_t slot, const std::vector<WholeCopy>& copies,
                     const std::byte* image) {
  if (table_ == nullptr) return;
  std::byte* base = slots_ + static_cast<size_t>(slot) * slot_bytes_;
  const size_t first = static_cast<size_t>(slot) * ends_.size();
  LoraWhole* table = table_pinned_ + first;
  std::fill_n(table, ends_.size(), LoraWhole{});
  for (const WholeCopy& copy : copies) {
    std::byte* to = base + offsets_[copy.end];
    table[copy.end] = {to, copy.count};
    queue.copy(to, image + copy.offset, copy.bytes);
  }
  queue.copy(table_ + first, table, ends_.size() * sizeof(LoraWhole));
}

void WholeEnds::replace(Queue& queue, bool is_table, LoraReplaceArgs args) const {
  if (table_ == nullptr) return;
  for (size_t i = 0; i < ends_.size(); ++i) {
    const WholeEnd& end = ends_[i];
    if (end.is_table != is_table || end.count == 0) continue;
    args.matrices = table_ + i;
    args.adapter_stride = static_cast<int32_t>(ends_.size());
    args.k = static_cast<int32_t>(is_table ? end.count : end.width);
    args.n = static_cast<int32_t>(is_table ? end.width : end.count);
    args.dtype = dtype_;
    args.scale = end.scale;
    lora_replace(queue, args);
  }
}

}  // namespace foretoken
