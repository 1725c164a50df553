#include "model/lora_pool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/check.h"
#include "base/log.h"
#include "compat/compat.h"
#include "model/config/peft_config.h"
#include "model/weights/adapter_gaps.h"
#include "model/weights/module_key.h"

namespace foretoken {
namespace {

constexpr size_t kFactorsStep = 128;  // bytes, so that what follows lies as it would without them
constexpr const char* kWhat = "the adapters (lower --max-loras or --max-lora-rank)";

int32_t padded_rank(int32_t rank) {
  return (rank + kLoraRankStep - 1) / kLoraRankStep * kLoraRankStep;
}

Status check_adapter_sizes(const LoraLinear& linear, int64_t outputs, int64_t inputs) {
  if (linear.inputs == inputs && linear.outputs == outputs) return {};
  return invalid_argument("the adapter of '" + linear.module + "' is for a matrix [" +
                          std::to_string(linear.outputs) + ", " + std::to_string(linear.inputs) +
                          "], but the model's is [" + std::to_string(outputs) + ", " +
                          std::to_string(inputs) + "]; " + kOtherModel);
}

// Linear layers of parts beside that for texts.
void report_left_out(const LoraAdapter& adapter, int64_t count) {
  if (count == 0) return;
  if (count == std::ssize(adapter.linears) && adapter.wholes.empty()) {
    FT_LOG(warn,
           "the adapter changes no text: all of its {} linear layers, as '{}', are of parts that "
           "texts do not pass",
           count, adapter.linears.front().module);
    return;
  }
  FT_LOG(info,
         "{} of {} linear layers of the adapter are of parts that texts do not pass: left out",
         count, adapter.linears.size());
}

}  // namespace

LoraImage::LoraImage(Device& device, size_t bytes)
    : device_(device),
      data_(static_cast<std::byte*>(
          device.allocate(std::max<size_t>(bytes, 1), MemoryKind::kPinned))),
      bytes_(bytes) {}

LoraImage::~LoraImage() {
  if (data_ != nullptr) device_.deallocate(data_, MemoryKind::kPinned);
}

Result<std::unique_ptr<LoraPool>> LoraPool::create(Device& device,
                                                   const std::vector<AdaptedLinear>& linears,
                                                   DType dtype, const Limits& limits) {
  Limits padded = limits;
  padded.max_rank = padded_rank(limits.max_rank);
  for (AdaptedElsewhere& end : padded.elsewhere) end.module = module_key(end.module);
  std::unique_ptr<LoraPool> pool(new LoraPool(device, dtype, padded));
  for (const AdaptedLinear& linear : linears) {
    const std::string& name = linear.linear->source.parts.at(0).name;
    if (module_key(name).empty()) {
      FT_RETURN_IF_ERROR(compat({.lora = true, .matrix_outside_layers = name}));
    }
    pool->add_linear(linear);
  }
  FT_RETURN_IF_ERROR(pool->take());
  FT_RETURN_IF_ERROR(pool->wholes_.take(pool->whole_ends()));
  for (size_t i = 0; i < linears.size(); ++i) {
    linears[i].linear->lora.matrices = pool->table_ + pool->first_parts_[i];
    const AdaptedPlace place = linears[i].place;
    if (place == AdaptedPlace::kHead) pool->head_ = linears[i].linear;
    if (place != AdaptedPlace::kEmbedding) continue;
    pool->embedding_ = linears[i].linear;
    pool->num_ids_ = static_cast<int32_t>(linears[i].linear->source.columns.count);
  }
  return pool;
}

// The fused matrix of gates and ups is two products to those who change it; other rows of one
// tensor are one product, however they were put in order.
void LoraPool::add_linear(const AdaptedLinear& adapted) {
  Linear& linear = *adapted.linear;
  const LinearSource& source = linear.source;
  first_parts_.push_back(parts_.size());
  std::vector<TensorPart> parts = source.parts;
  if (source.order == WeightOrder::kGateUp) {
    widest_gates_ = std::max(widest_gates_, raw_gates_stride(linear.outputs));
    if (parts.size() == 1) {
      parts[0].num_rows = parts[0].rows / 2;
      parts.push_back(parts[0]);
      parts[1].first_row = parts[0].rows / 2;
    }
  }
  for (const TensorPart& part : parts) {
    const bool follows = parts_.size() > first_parts_.back() &&
                         source.order == WeightOrder::kPlain &&
                         parts_.back().module == module_key(part.name);
    const PaddedHeads none, &padded = part.padded;
    const PaddedHeads& rows = padded.of_columns ? none : padded;
    if (!follows) {
      parts_.push_back({.module = module_key(part.name),
                        .rows = {},
                        .outputs = rows.of_file(part.rows),
                        .inputs = source.columns,
                        .columns = padded.of_columns ? padded : none,
                        .turning = part.turning.of_columns ? part.turning : TurningHeads{},
                        .place = adapted.place,
                        .joins = adapted.joins || part.turning.keys > 0,
                        .scale = padded.scale});
    }
    for (int64_t row = part.first_row; row < part.first_row + part.wanted(); ++row) {
      const int64_t of_file = rows.source_of(part.paired.source_of(row));
      parts_.back().rows.push_back(part.turning.of_columns ? of_file
                                                           : part.turning.of_folder(of_file));
      parts_.back().row_factors.push_back(padded.scale / parts_.back().scale);
    }
  }
  const size_t count = parts_.size() - first_parts_.back();
  FT_CHECK(count <= kMaxLoraParts);
  linear.lora.num_parts = static_cast<int32_t>(count);
  for (size_t i = 0; i < count; ++i) {
    linear.lora.part_cols[i] = static_cast<int32_t>(parts_[first_parts_.back() + i].num_rows());
  }
  max_sums_ = std::max(max_sums_, count * static_cast<size_t>(lora_splits(linear.inputs)));
}

// Of this stage and, without rows here, of others.
std::vector<WholeEnd> LoraPool::whole_ends() const {
  std::vector<WholeEnd> ends;
  for (const Part& part : parts_) {
    if (!part.is_end()) continue;
    const bool is_table = part.place == AdaptedPlace::kEmbedding;
    ends.push_back({.module = part.module,
                    .is_table = is_table,
                    .of_file = is_table ? part.inputs.total : part.outputs,
                    .first = is_table ? 0 : part.rows.at(0),
                    .count = is_table ? part.inputs.count : part.num_rows(),
                    .width = is_table ? part.outputs : part.inputs.total,
                    .scale = part.scale});
  }
  for (const AdaptedElsewhere& end : limits_.elsewhere) {
    ends.push_back({end.module, end.is_table, end.is_table ? end.inputs : end.outputs, 0, 0,
                    end.is_table ? end.outputs : end.inputs, 1});
  }
  return ends;
}

// Behind a and b stand what DoRA multiplies rows by.
size_t LoraPool::part_bytes(const Part& part, int32_t rank) const {
  const size_t factors = part.is_end() ? 0 : static_cast<size_t>(part.num_rows()) * sizeof(float);
  return static_cast<size_t>(rank) *
             static_cast<size_t>(lora_stride(part.inputs.count) + lora_stride(part.num_rows())) *
             dtype_size(dtype_) +
         (factors + kFactorsStep - 1) / kFactorsStep * kFactorsStep;
}

Status LoraPool::take() {
  for (const Part& part : parts_) slot_bytes_ += part_bytes(part, limits_.max_rank);
  const auto slots = static_cast<size_t>(limits_.num_slots);
  const auto rows = static_cast<size_t>(limits_.max_rows);
  FT_ASSIGN_OR_RETURN(slots_, arena_.take_array<std::byte>(slots * slot_bytes_, kWhat));
  FT_ASSIGN_OR_RETURN(table_, arena_.take_array<LoraMatrix>(slots * parts_.size(), kWhat));
  FT_ASSIGN_OR_RETURN(table_pinned_, pinned_.take_array<LoraMatrix>(slots * parts_.size(), kWhat));
  FT_ASSIGN_OR_RETURN(rows_.num_tiles, arena_.take_array<int32_t>(2, kWhat));
  const int32_t tiles = max_lora_tiles(limits_.max_rows, limits_.num_slots);
  FT_ASSIGN_OR_RETURN(rows_.tiles, arena_.take_array<LoraTile>(static_cast<size_t>(tiles), kWhat));
  FT_ASSIGN_OR_RETURN(rows_.rows, arena_.take_array<int32_t>(rows, kWhat));
  FT_ASSIGN_OR_RETURN(rows_.row_adapter, arena_.take_array<int32_t>(rows, kWhat));
  const auto ranks = static_cast<size_t>(limits_.max_rank);
  FT_ASSIGN_OR_RETURN(t_, arena_.take_array<float>(rows * max_sums_ * ranks, kWhat));
  FT_ASSIGN_OR_RETURN(
      raw_gates_,
      arena_.take_array<float>(rows * static_cast<size_t>(std::max(widest_gates_, 1)), kWhat));
  return {};
}

std::string LoraPool::module_names() const {
  std::set<std::string> names, ends;
  for (const AdaptedElsewhere& end : limits_.elsewhere) ends.insert(end.module);
  for (const Part& part : parts_) {
    part.is_end() ? ends.insert(part.module) : names.insert(behind_number(part.module));
  }
  const auto list = [](const std::set<std::string>& all) {
    std::string text;
    for (const std::string& name : all) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  return list(names) + " in its layers" + (ends.empty() ? "" : ", and of " + list(ends));
}

// Whether layers here have a module of that name behind their number; `feed_forward`: in those
// parts.
bool LoraPool::has_kind(const std::string& kind, bool feed_forward) const {
  return !kind.empty() && std::ranges::any_of(parts_, [&](const Part& part) {
    return behind_number(part.module) == kind &&
           (!feed_forward || part.place == AdaptedPlace::kFeedForward);
  });
}

// Null: no other stage has such an embedding or output matrix.
const AdaptedElsewhere* LoraPool::end_elsewhere(const std::string& name) const {
  const auto at = std::ranges::find(limits_.elsewhere, name, &AdaptedElsewhere::module);
  return at == limits_.elsewhere.end() ? nullptr : &*at;
}

// Whether another stage has such a module.
bool LoraPool::is_elsewhere(const std::string& name) const {
  if (limits_.has_all_layers) return false;
  return end_elsewhere(name) != nullptr || has_kind(behind_number(name), false);
}

// A pair of the embedding or the output matrix has as many ids as the matrix that it is added to:
// the adapter's own, or the model's.
Status LoraPool::check_end(const LoraAdapter& adapter, const LoraLinear& linear,
                           const AdaptedElsewhere& end) const {
  const int64_t whole = wholes_.num_ids(adapter, end.is_table);
  const auto ids_of = [&](int64_t all) { return whole > 0 ? whole : all - limits_.added_ids; };
  return end.is_table ? check_adapter_sizes(linear, end.outputs, ids_of(end.inputs))
                      : check_adapter_sizes(linear, ids_of(end.outputs), end.inputs);
}

// Whether it is a module of a part beside that for texts, as those that read images and sound.
bool LoraPool::is_of_other_part(const std::string& module) const {
  return (limits_.is_text_part && module_key(module).empty()) ||
         std::ranges::any_of(limits_.other_parts, [&](const std::string& beginning) {
           return module.starts_with(beginning);
         });
}

// By part; null: the adapter leaves it alone. A module of another stage's layer must be one that
// this stage's layers have, too.
Result<std::vector<const LoraLinear*>> LoraPool::match(const LoraAdapter& adapter,
                                                       bool is_checked) const {
  std::map<std::string, const LoraLinear*> by_name;
  for (const LoraLinear& linear : adapter.linears) by_name[module_key(linear.module)] = &linear;
  std::vector<const LoraLinear*> found(parts_.size());
  std::set<const LoraLinear*> used;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto at = by_name.find(parts_[i].module);
    if (at == by_name.end()) continue;
    const Part& part = parts_[i];
    found[i] = at->second;
    FT_RETURN_IF_ERROR(part.is_end()
                           ? check_end(adapter, *found[i],
                                       {part.module, part.outputs, part.inputs_of_file(),
                                        part.place == AdaptedPlace::kEmbedding})
                           : check_adapter_sizes(*found[i], part.outputs, part.inputs_of_file()));
    used.insert(found[i]);
  }
  int64_t num_others = 0;
  for (const LoraLinear& linear : adapter.linears) {
    const std::string name = module_key(linear.module);
    if (const AdaptedElsewhere* end = end_elsewhere(name); end != nullptr) {
      FT_RETURN_IF_ERROR(check_end(adapter, linear, *end));
    }
    if (is_checked || used.contains(&linear) || is_elsewhere(name)) continue;
    if (is_of_other_part(linear.module)) {
      ++num_others;
      continue;
    }
    return unsupported("the adapter changes '" + linear.module +
                       "'; this model takes adapters of " + module_names() +
                       "; load it beside the model that it was trained on, or train these alone");
  }
  report_left_out(adapter, num_others);
  if (!is_checked) FT_RETURN_IF_ERROR(report_gap(adapter));
  return found;
}

Status LoraPool::report_gap(const LoraAdapter& adapter) const {
  std::vector<std::string> modules;
  for (const Part& part : parts_) {
    if (!part.is_end()) modules.push_back(part.module);
  }
  FT_ASSIGN_OR_RETURN(const std::string gap, adapter_gap(adapter, modules));
  if (!gap.empty()) FT_LOG(warn, "{}", gap);
  return {};
}

// Where an image has what is for each part; `bytes`: of all.
Result<std::vector<LoraImage::Entry>> LoraPool::entries_of(
    const std::vector<const LoraLinear*>& found, size_t* bytes) const {
  std::vector<LoraImage::Entry> entries;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (found[i] == nullptr) continue;
    const Part& part = parts_[i];
    const int32_t rank = padded_rank(found[i]->rank);
    FT_CHECK(rank <= limits_.max_rank);
    const auto bytes_of = [&](int64_t elements) {
      return static_cast<size_t>(rank) * static_cast<size_t>(lora_stride(elements)) *
             dtype_size(dtype_);
    };
    const size_t b_offset = *bytes + bytes_of(part.inputs.count);
    entries.push_back({i, *bytes, b_offset, found[i]->scale * part.scale, rank});
    if (!found[i]->factors.empty()) {
      FT_RETURN_IF_ERROR(check_factors(part, *found[i]));
      entries.back().factors_offset = b_offset + bytes_of(part.num_rows());
    }
    *bytes += part_bytes(part, rank);
  }
  return entries;
}

Result<std::unique_ptr<LoraImage>> LoraPool::make_image(const LoraAdapter& adapter,
                                                        bool is_checked) const {
  FT_CHECK(adapter.dtype == dtype_);
  FT_ASSIGN_OR_RETURN(const std::vector<const LoraLinear*> found, match(adapter, is_checked));
  size_t bytes = 0;
  FT_ASSIGN_OR_RETURN(std::vector<LoraImage::Entry> entries, entries_of(found, &bytes));
  bool feed_forward = false, ends = false;
  for (const LoraImage::Entry& entry : entries) {
    const Part& part = parts_[entry.part];
    feed_forward = feed_forward || part.place == AdaptedPlace::kFeedForward;
    ends = ends || part.is_end();
  }
  // All stages go by what rank 0 says of the adapter.
  for (const LoraLinear& linear : adapter.linears) {
    const std::string name = module_key(linear.module);
    feed_forward = feed_forward || has_kind(behind_number(name), true);
    ends = ends || end_elsewhere(name) != nullptr;
  }
  const size_t low_rank_bytes = bytes;
  FT_ASSIGN_OR_RETURN(std::vector<WholeCopy> wholes, wholes_.place(adapter, bytes, is_checked));
  for (const WholeCopy& copy : wholes) bytes += copy.bytes;
  auto image = std::make_unique<LoraImage>(device_, bytes);
  if (image->data_ == nullptr) {
    return resource_exhausted("no memory of the host is left for an adapter of " +
                              std::to_string(bytes) + " bytes; lower --max-cpu-loras");
  }
  std::memset(image->data_, 0, low_rank_bytes);
  for (const LoraImage::Entry& entry : entries) {
    const Part& part = parts_[entry.part];
    fill_a(part, *found[entry.part], entry.rank, image->data_ + entry.a_offset);
    fill_b(part, *found[entry.part], image->data_ + entry.b_offset);
    if (!entry.factors_offset) continue;
    fill_factors(part, *found[entry.part], image->data_ + *entry.factors_offset);
  }
  wholes_.fill(wholes, adapter, image->data_);
  image->low_rank_bytes_ = low_rank_bytes;
  image->entries_ = std::move(entries);
  image->wholes_ = std::move(wholes);
  image->changes_feed_forward_ = feed_forward;
  image->changes_ends_ = ends || !adapter.wholes.empty();
  image->num_ids_ = static_cast<int32_t>(wholes_.num_ids(adapter, true));
  return image;
}

// Heads that take turns in the file lie in another order there than in a folder, whose adapters
// these are.
Status LoraPool::check_factors(const Part& part, const LoraLinear& linear) {
  FT_CHECK(!part.is_end() && std::ssize(linear.factors) == part.outputs);
  if (!part.joins) return {};
  return unsupported("the adapter has magnitudes (DoRA) for '" + linear.module +
                     "', whose product cannot be scaled by itself here; " + kMergeAdapter);
}

void LoraPool::load(Queue& queue, int32_t slot, const LoraImage& image) {
  FT_CHECK(slot >= 0 && slot < limits_.num_slots && image.low_rank_bytes_ <= slot_bytes_);
  std::byte* base = slots_ + static_cast<size_t>(slot) * slot_bytes_;
  const size_t first = static_cast<size_t>(slot) * parts_.size();
  LoraMatrix* table = table_pinned_ + first;
  std::fill_n(table, parts_.size(), LoraMatrix{});
  for (const LoraImage::Entry& entry : image.entries_) {
    LoraMatrix& matrix = table[entry.part];
    matrix = {base + entry.a_offset, base + entry.b_offset, entry.scale, entry.rank};
    if (!entry.factors_offset) continue;
    matrix.factors = reinterpret_cast<const float*>(base + *entry.factors_offset);
  }
  if (image.low_rank_bytes_ > 0) queue.copy(base, image.data_, image.low_rank_bytes_);
  queue.copy(table_ + first, table, parts_.size() * sizeof(LoraMatrix));
  wholes_.load(queue, slot, image.wholes_, image.data_);
}

LoraPass LoraPool::pass(bool feed_forward) const {
  return {.rows = rows_,
          .t = t_,
          .raw_gates = raw_gates_,
          .adapter_stride = static_cast<int32_t>(parts_.size()),
          .max_rank = limits_.max_rank,
          .max_adapters = limits_.num_slots,
          .feed_forward = feed_forward};
}

LoraPass LoraPool::begin(Queue& queue, const StepTensors& tensors, const SlotParams* params,
                         int32_t max_rows, bool feed_forward) {
  params_ = params;
  group_lora(queue, {.counts = tensors.counts,
                     .row_slot = tensors.row_slot,
                     .params = params,
                     .rows = rows_,
                     .max_rows = max_rows,
                     .max_adapters = limits_.num_slots,
                     .positions = tensors.positions});
  return pass(feed_forward);
}

LoraReplaceArgs LoraPool::replace_args(float* y, int32_t max_rows) const {
  return {.rows = rows_,
          .matrices = nullptr,
          .x = nullptr,
          .token_ids = nullptr,
          .y = y,
          .adapter_stride = 0,
          .k = 0,
          .n = 0,
          .max_rows = max_rows,
          .max_adapters = limits_.num_slots,
          .dtype = dtype_};
}

void LoraPool::add_to_embeddings(const LayerRows& rows, float* residual) const {
  if (embedding_ == nullptr) return;
  LoraReplaceArgs replace = replace_args(residual, rows.max_rows);
  replace.token_ids = rows.token_ids;
  wholes_.replace(rows.queue, true, replace);
  const LoraPass own = pass(false);
  const AdaptedRows adapted{own, embedding_->lora, 1, rows.max_rows, dtype_};
  look_up_lora(rows.queue, adapted, rows.token_ids, num_ids_);
  expand_lora(rows.queue, adapted, {residual, embedding_->outputs});
}

void LoraPool::begin_logits(Queue& queue, const StepTensors& tensors, int32_t row_offset,
                            int32_t max_rows) const {
  FT_CHECK(max_rows <= limits_.max_rows);
  if (head_ == nullptr) return;
  group_lora(queue, {.counts = tensors.counts,
                     .row_slot = tensors.row_slot,
                     .params = params_,
                     .rows = rows_,
                     .max_rows = max_rows,
                     .max_adapters = limits_.num_slots,
                     .row_index = tensors.logits_rows,
                     .row_offset = row_offset,
                     .positions = tensors.positions});
}

void LoraPool::add_to_logits(Queue& queue, const void* x, float* logits, int32_t max_rows) const {
  if (head_ == nullptr) return;
  LoraReplaceArgs replace = replace_args(logits, max_rows);
  replace.x = x;
  wholes_.replace(queue, false, replace);
  const LoraPass own = pass(false);
  const AdaptedRows adapted{own, head_->lora, head_->inputs, max_rows, dtype_};
  shrink_lora_apart(queue, adapted, x);
  expand_lora(queue, adapted, {logits, head_->outputs});
}

}  // namespace foretoken
