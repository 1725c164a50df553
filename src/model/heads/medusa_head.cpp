#include "model/heads/medusa_head.h"

#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/gemm/activate.h"
#include "kernels/rows/move_rows.h"
#include "model/heads/chain_loader.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"

namespace foretoken {
namespace {

struct MedusaWeights {
  std::vector<std::vector<Linear>> blocks;  // by head
  std::vector<OutputRows> outputs;          // by head, or one
};

class MedusaHead final : public ChainHead {
 public:
  MedusaHead(Device& device, Model& target, const DraftHeadOptions& options)
      : target_(target),
        hidden_(target.config().hidden_size),
        dtype_(target.config().dtype),
        max_rows_(options.max_rows),
        weight_arena_(device, MemoryKind::kDevice),
        scratch_arena_(device, MemoryRole::kScratch),
        taps_(target, options.states) {}

  Status load(const ChainSource& source, const MedusaConfig& config, int32_t num_heads);
  Status take_scratch();

  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t scratch_bytes() const override {
    return static_cast<int64_t>(scratch_arena_.bytes_taken());
  }
  const void* forward(Queue& queue, const ChainPass& pass) override;
  Output output(int32_t step) const override {
    const size_t index = weights_.outputs.size() == 1 ? 0 : static_cast<size_t>(step);
    return {weights_.outputs.at(index).head, hidden_};
  }

 private:
  void enter(Queue& queue, const ChainPass& pass);

  Model& target_;
  const int32_t hidden_;
  const DType dtype_;
  const int32_t max_rows_;
  Arena weight_arena_;
  Arena scratch_arena_;
  int64_t weight_bytes_ = 0;
  MedusaWeights weights_;
  TapReader taps_;
  // [max_rows, hidden] each. Of the target, of a step and of the step before in turns.
  std::array<float*, 2> states_{};
  float* residual_ = nullptr;
  float* product_ = nullptr;
  float* delta_ = nullptr;
  void* x_ = nullptr;  // of dtype_
};

// The names of one head's tensors, without ".weight".
class MedusaNames {
 public:
  MedusaNames(const WeightLoader& loader, const MedusaConfig& config) : config_(config) {
    const auto has = [&](const std::string& name) { return loader.has_optional(name + ".weight"); };
    for (const char* prefix : {"", "medusa_heads.", "medusa_head."}) {
      for (const bool in_blocks : {false, true}) {
        prefix_ = prefix;
        in_blocks_ = in_blocks;
        // Either may be what is missing.
        if (has(block(0, 0)) || has(output(0))) return;
      }
    }
    prefix_.clear();
    in_blocks_ = false;
  }

  std::string block(int32_t head, int32_t layer) const {
    const std::string numbers[] = {std::to_string(head), std::to_string(layer)};
    if (in_blocks_) return prefix_ + "blocks." + numbers[0] + ".layers." + numbers[1];
    return prefix_ + numbers[0] + "." + numbers[1] + ".linear";
  }
  std::string output(int32_t head) const {
    const std::string number = std::to_string(head);
    if (in_blocks_) return prefix_ + "lm_heads." + number;
    return prefix_ + number + "." + std::to_string(config_.num_layers);
  }
  std::string shared_output() const { return prefix_ + "lm_head"; }
  // What all names of a head begin with that is not loaded.
  void ignore(int32_t head, WeightLoader& loader) const {
    if (in_blocks_) {
      loader.ignore_all(prefix_ + "blocks." + std::to_string(head) + ".");
      loader.ignore(output(head) + ".weight");
    } else {
      loader.ignore_all(prefix_ + std::to_string(head) + ".");
    }
  }

 private:
  const MedusaConfig& config_;
  std::string prefix_;
  bool in_blocks_ = false;
};

class MedusaLoader {
 public:
  MedusaLoader(ChainLoader& chain, const MedusaConfig& config, const Model& target)
      : chain_(chain), config_(config), names_(chain.weights(), config), target_(target) {}

  // Fills `out`, which outlives what the loader has in flight where it fails.
  Status load(int32_t num_heads, MedusaWeights* out);

 private:
  Status load_blocks(int32_t head, std::vector<Linear>* out);
  Status load_outputs(int32_t num_heads, std::vector<OutputRows>* out);
  Status load_shared_output(const std::vector<int32_t>& map, std::vector<OutputRows>* out);
  Result<OutputRows> load_output(const std::string& name, const std::vector<int32_t>& map);
  Result<std::vector<int32_t>> token_map();

  ChainLoader& chain_;
  const MedusaConfig& config_;
  const MedusaNames names_;
  const Model& target_;
};

Status MedusaLoader::load(int32_t num_heads, MedusaWeights* out) {
  out->blocks.resize(static_cast<size_t>(num_heads));
  for (int32_t head = 0; head < num_heads; ++head) {
    FT_RETURN_IF_ERROR(load_blocks(head, &out->blocks[static_cast<size_t>(head)]));
  }
  FT_RETURN_IF_ERROR(load_outputs(num_heads, &out->outputs));
  for (int32_t head = num_heads; head < config_.num_heads; ++head) {
    names_.ignore(head, chain_.weights());
  }
  return {};
}

Status MedusaLoader::load_blocks(int32_t head, std::vector<Linear>* out) {
  const int32_t hidden = target_.config().hidden_size;
  for (int32_t layer = 0; layer < config_.num_layers; ++layer) {
    const std::string name = names_.block(head, layer);
    const bool has_bias = chain_.weights().has_optional(name + ".bias");
    FT_RETURN_IF_ERROR(chain_.load_layer({name, hidden}, hidden, has_bias, &out->emplace_back()));
  }
  return {};
}

// One for each head where the files have those.
Status MedusaLoader::load_outputs(int32_t num_heads, std::vector<OutputRows>* out) {
  FT_ASSIGN_OR_RETURN(const std::vector<int32_t> map, token_map());
  bool has_own = false;
  for (int32_t head = 0; head < config_.num_heads; ++head) {
    has_own |= chain_.weights().has(names_.output(head) + ".weight");
  }
  if (config_.shares_rows || !has_own) return load_shared_output(map, out);
  for (int32_t head = 0; head < num_heads; ++head) {
    FT_ASSIGN_OR_RETURN(OutputRows rows, load_output(names_.output(head) + ".weight", map));
    out->push_back(std::move(rows));
  }
  return {};
}

// One for all heads, or the target's.
Status MedusaLoader::load_shared_output(const std::vector<int32_t>& map,
                                        std::vector<OutputRows>* out) {
  WeightLoader& weights = chain_.weights();
  const std::string first = names_.output(0) + ".weight";
  const std::string shared = names_.shared_output() + ".weight";
  const std::string& name = weights.has_optional(shared) ? shared : first;
  const bool is_own = weights.has(name);
  if (!is_own && config_.rows != config_.vocab_size) return weights.expect(name, {});
  auto rows = is_own ? load_output(name, map) : chain_.outputs().shared();
  if (!rows.ok()) return rows.status();
  out->push_back(std::move(rows).value());
  for (int32_t head = 0; head < config_.num_heads; ++head) {
    weights.ignore(names_.output(head) + ".weight");
  }
  return {};
}

// vLLM cuts whole matrices down to the mapped ids, too.
Result<OutputRows> MedusaLoader::load_output(const std::string& name,
                                             const std::vector<int32_t>& map) {
  const int32_t hidden = target_.config().hidden_size;
  const int64_t whole[] = {config_.vocab_size, hidden};
  if (map.empty() || !chain_.weights().has_shape(name, whole)) {
    return chain_.outputs().own(name, config_.rows, hidden, map);
  }
  return chain_.outputs().own_rows(name, config_.vocab_size, hidden, map);
}

Result<std::vector<int32_t>> MedusaLoader::token_map() {
  std::vector<int32_t> ids;
  WeightLoader& weights = chain_.weights();
  if (config_.rows == config_.vocab_size) {
    weights.ignore("token_map");
    return ids;
  }
  if (!weights.has_optional("token_map") && chain_.is_random()) {
    for (int64_t row = 0; row < config_.rows; ++row) {
      ids.push_back(static_cast<int32_t>(row * config_.vocab_size / config_.rows));
    }
    return ids;
  }
  FT_ASSIGN_OR_RETURN(const std::vector<int64_t> map, weights.integers("token_map", config_.rows));
  std::vector<bool> taken(static_cast<size_t>(config_.vocab_size), false);
  for (const int64_t id : map) {
    const bool valid = id >= 0 && id < config_.vocab_size;
    if (!valid || taken[static_cast<size_t>(id)]) {
      return invalid_argument("tensor 'token_map' of the draft head has the id " +
                              std::to_string(id) +
                              (valid ? " twice"
                                     : ", which is outside of the target's vocabulary of " +
                                           std::to_string(config_.vocab_size)) +
                              "; use heads that were trained for this target");
    }
    taken[static_cast<size_t>(id)] = true;
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

Status MedusaHead::load(const ChainSource& source, const MedusaConfig& config, int32_t num_heads) {
  const int64_t hidden = hidden_;
  const int64_t matrices = config.shares_rows ? 1 : num_heads;
  const int64_t elements =
      num_heads * config.num_layers * hidden * hidden + matrices * config.rows * hidden;
  FT_ASSIGN_OR_RETURN(const auto chain, ChainLoader::open(source, weight_arena_, elements));
  WeightLoader::Guard guard(chain->weights());
  FT_RETURN_IF_ERROR(MedusaLoader(*chain, config, target_).load(num_heads, &weights_));
  FT_RETURN_IF_ERROR(guard.finish());
  weight_bytes_ = chain->weights().bytes_loaded();
  return chain->weights().check_all_used("the Medusa head");
}

Status MedusaHead::take_scratch() {
  const char* what = "the draft head's scratch (lower --max-num-seqs)";
  const auto count = static_cast<size_t>(max_rows_) * static_cast<size_t>(hidden_);
  for (float** rows : {&states_[0], &states_[1], &residual_, &product_, &delta_}) {
    FT_ASSIGN_OR_RETURN(*rows, scratch_arena_.take_array<float>(count, what));
  }
  FT_ASSIGN_OR_RETURN(x_, scratch_arena_.take(count * dtype_size(dtype_), what));
  return taps_.take_scratch(scratch_arena_, max_rows_);
}

// The target's state of each row, also behind the rows that have ended since the step before, and
// copies of it that the blocks work on.
void MedusaHead::enter(Queue& queue, const ChainPass& pass) {
  float* state = states_[static_cast<size_t>(pass.step % 2)];
  MoveRowsArgs copy{.counts = pass.tensors.rows.counts,
                    .in = states_[static_cast<size_t>((pass.step + 1) % 2)],
                    .out = state,
                    .from = pass.tensors.source,
                    .to = nullptr,
                    .row_kind = RowKind::kToken,
                    .max_rows = pass.max_rows,
                    .width = hidden_,
                    .out_stride = hidden_,
                    .out_offset = 0,
                    .in_dtype = DType::kF32,
                    .out_dtype = DType::kF32};
  if (pass.step == 0) {
    taps_.read(queue, pass.tensors, pass.taps, pass.max_rows, state, DType::kF32);
  } else {
    move_rows(queue, copy);
  }
  copy.in = state;
  copy.from = nullptr;
  copy.out = residual_;
  move_rows(queue, copy);
  copy.out = x_;
  copy.out_dtype = dtype_;
  move_rows(queue, copy);
}

const void* MedusaHead::forward(Queue& queue, const ChainPass& pass) {
  FT_CHECK(pass.max_rows > 0 && pass.max_rows <= max_rows_);
  enter(queue, pass);
  const StepTensors& live = pass.tensors.rows;
  const LayerRows rows{queue, live.counts, live.positions, live.row_slot, pass.max_rows};
  for (const Linear& block : weights_.blocks.at(static_cast<size_t>(pass.step))) {
    multiply(rows, x_, block, {product_}, dtype_);
    activate(queue, {.counts = live.counts,
                     .x = product_,
                     .out = delta_,
                     .max_rows = pass.max_rows,
                     .size = hidden_,
                     .activation = Activation::kSilu,
                     .out_dtype = DType::kF32});
    norm_rows(rows, residual_, delta_, Norm{}, {hidden_, 0}, {x_, dtype_});
  }
  return x_;
}

Status check_own(const ConfigFields& fields, const char* name, int32_t of_target) {
  int32_t own = of_target;
  FT_RETURN_IF_ERROR(fields.read_count(name, &own));
  return check_chain_size(fields, name, own, of_target);
}

// FasterDecoding's name of a field, or vLLM's.
const char* either(const ConfigFields& fields, const char* name, const char* other) {
  return fields.find(name) != nullptr ? name : other;
}

}  // namespace

Result<MedusaConfig> read_medusa_config(const std::string& folder, const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const ChainConfig file, ChainConfig::read(folder));
  const ConfigFields fields(file.json, file.where, false);
  MedusaConfig config;
  FT_RETURN_IF_ERROR(
      read_chain_len(fields, either(fields, "medusa_num_heads", "num_heads"), &config.num_heads));
  if (config.num_heads == 0) return fields.missing("medusa_num_heads");
  FT_RETURN_IF_ERROR(fields.read_count(either(fields, "medusa_num_layers", "num_hidden_layers"),
                                       &config.num_layers));
  FT_RETURN_IF_ERROR(check_own(fields, "hidden_size", target.hidden_size));
  FT_RETURN_IF_ERROR(check_own(fields, "vocab_size", target.own_ids()));
  config.vocab_size = target.own_ids();
  config.rows = target.own_ids();
  FT_RETURN_IF_ERROR(fields.read_count("truncated_vocab_size", &config.rows));
  if (config.rows > config.vocab_size) {
    return fields.wrong("truncated_vocab_size",
                        "at most vocab_size " + std::to_string(config.vocab_size));
  }
  FT_RETURN_IF_ERROR(fields.read_flag("original_lm_head", &config.shares_rows));
  double scale = 1;
  FT_RETURN_IF_ERROR(fields.read_positive("logit_scale", &scale));
  if (scale == 1) return config;
  return unsupported(file.where +
                     ": heads with 'logit_scale' are not supported; use heads without it");
}

Result<std::unique_ptr<ChainHead>> load_medusa_head(Device& device, const std::string& folder,
                                                    const MedusaConfig& config, int32_t num_heads,
                                                    Model& target,
                                                    const DraftHeadOptions& options) {
  FT_CHECK(num_heads > 0 && num_heads <= config.num_heads && options.max_rows > 0);
  auto head = std::make_unique<MedusaHead>(device, target, options);
  FT_RETURN_IF_ERROR(head->load({device, folder, target, options}, config, num_heads));
  FT_RETURN_IF_ERROR(head->take_scratch());
  return std::unique_ptr<ChainHead>(std::move(head));
}

Result<ChainFiles> read_medusa_files(const std::string& folder, const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const MedusaConfig config, read_medusa_config(folder, target));
  return ChainFiles{config.num_heads, [folder, config](Device& device, Model& of, int32_t count,
                                                       const DraftHeadOptions& options) {
                      return load_medusa_head(device, folder, config, count, of, options);
                    }};
}

}  // namespace foretoken
