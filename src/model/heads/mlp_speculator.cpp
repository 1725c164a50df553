#include "model/heads/mlp_speculator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/gemm/activate.h"
#include "kernels/rows/embed.h"
#include "kernels/rows/move_rows.h"
#include "model/heads/chain_loader.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"

namespace foretoken {
namespace {

constexpr float kMlpEps = 1e-6f;

struct MlpStep {
  RowTable embedding;  // [vocab, inner]
  Linear projection;
  Norm norm;      // [inner], root mean squares
  RowTable bias;  // [1, inner]: what the norm adds
  OutputRows output;
};

class MlpSpeculator final : public ChainHead {
 public:
  MlpSpeculator(Device& device, const MlpSpeculatorConfig& config, Model& target,
                const DraftHeadOptions& options)
      : config_(config),
        target_(target),
        dtype_(target.config().dtype),
        max_rows_(options.max_rows),
        embedding_scale_(embedding_scale(config)),
        weight_arena_(device, MemoryKind::kDevice),
        scratch_arena_(device, MemoryRole::kScratch),
        taps_(target, options.states) {}

  Status load(const ChainSource& source, int32_t num_steps);
  Status take_scratch();

  int64_t weight_bytes() const override { return weight_bytes_; }
  int64_t scratch_bytes() const override {
    return static_cast<int64_t>(scratch_arena_.bytes_taken());
  }
  const void* forward(Queue& queue, const ChainPass& pass) override;
  Output output(int32_t step) const override { return {of(step).output.head, config_.inner}; }

 private:
  static float embedding_scale(const MlpSpeculatorConfig& config);
  const MlpStep& of(int32_t step) const {
    return steps_.at(config_.ties_weights ? 0 : static_cast<size_t>(step));
  }
  // What a step's projection reads.
  const Linear& projection(int32_t step) const {
    if (!config_.ties_weights || step == 0) return of(step).projection;
    return tied_projection_;
  }
  void enter(const LayerRows& rows, const ChainPass& pass);
  void add_embedding(const LayerRows& rows, const MlpStep& weights, const int32_t* ids);
  Status load_step(ChainLoader& chain, int32_t step, const std::string& prefix);
  int32_t width(int32_t step) const {
    return step == 0 ? target_.config().hidden_size : config_.inner;
  }

  const MlpSpeculatorConfig config_;
  Model& target_;
  const DType dtype_;
  const int32_t max_rows_;
  const float embedding_scale_;
  Arena weight_arena_;
  Arena scratch_arena_;
  int64_t weight_bytes_ = 0;
  std::vector<MlpStep> steps_;
  Linear tied_projection_;  // of steps behind the first
  Norm input_norm_;         // where the input is scaled
  TapReader taps_;
  // "act" stands for dtype_.
  std::array<void*, 2> states_{};  // [max_rows, inner] act: of a step and the step before, in turns
  float* tap_ = nullptr;           // [max_rows, hidden] where the input is scaled
  void* x_ = nullptr;              // [max_rows, hidden or inner] act
  float* sum_ = nullptr;           // [max_rows, inner]
  float* embedded_ = nullptr;      // [max_rows, inner]
  float* normed_ = nullptr;        // [max_rows, inner]
};

// What the names of all tensors begin with, which any of the first step tells: a message about one
// that is missing gives its whole name.
std::string prefix_of(const WeightLoader& weights) {
  const std::string prefix = "speculator.";
  for (const char* part : {"emb", "proj", "ln", "head"}) {
    if (weights.has_optional(prefix + part + ".0.weight")) return prefix;
  }
  return {};
}

float MlpSpeculator::embedding_scale(const MlpSpeculatorConfig& config) {
  const double state = std::pow(0.5, 0.5 / config.num_steps);
  return static_cast<float>(std::sqrt((1 - state * state) * config.inner / 2) / state);
}

Status MlpSpeculator::load(const ChainSource& source, int32_t num_steps) {
  const ModelConfig& target = target_.config();
  const int64_t inner = config_.inner, vocab = target.own_ids();
  const int64_t steps = config_.ties_weights ? 1 : num_steps;
  const int64_t elements =
      steps * inner * (2 * vocab + 2) + inner * (target.hidden_size + (num_steps - 1) * inner);
  FT_ASSIGN_OR_RETURN(const auto chain, ChainLoader::open(source, weight_arena_, elements));
  WeightLoader& weights = chain->weights();
  WeightLoader::Guard guard(weights);
  const std::string prefix = prefix_of(weights);
  steps_.resize(static_cast<size_t>(steps));
  for (int32_t step = 0; step < steps; ++step) {
    FT_RETURN_IF_ERROR(load_step(*chain, step, prefix));
  }
  if (config_.ties_weights && num_steps > 1) {
    FT_RETURN_IF_ERROR(
        chain->load_layer({prefix + "proj.1", inner}, inner, false, &tied_projection_));
  }
  if (config_.scales_input) {
    const std::vector<float> scale(static_cast<size_t>(target.hidden_size), std::sqrt(0.5f));
    FT_RETURN_IF_ERROR(
        chain->parts().upload(scale, "the scale of a head's input", &input_norm_.weight));
  }
  // Other names of tied tensors, and steps that are not asked for.
  for (int32_t step = static_cast<int32_t>(steps); step < config_.num_steps; ++step) {
    for (const char* part : {"emb.", "proj.", "ln.", "head."}) {
      weights.ignore_all(prefix + part + std::to_string(step) + ".");
    }
  }
  FT_RETURN_IF_ERROR(guard.finish());
  weight_bytes_ = weights.bytes_loaded();
  return weights.check_all_used("the MLP speculator");
}

Status MlpSpeculator::load_step(ChainLoader& chain, int32_t step, const std::string& prefix) {
  WeightLoader& weights = chain.weights();
  const int32_t inner = config_.inner, vocab = target_.config().own_ids();
  MlpStep& out = steps_[static_cast<size_t>(step)];
  const auto named = [&](std::string_view part) {
    return prefix + std::string(part) + "." + std::to_string(step);
  };
  FT_ASSIGN_OR_RETURN(out.embedding,
                      weights.table(weight_arena_, named("emb") + ".weight", vocab, inner));
  FT_RETURN_IF_ERROR(chain.load_layer({named("proj"), inner}, width(step), false, &out.projection));
  FT_RETURN_IF_ERROR(chain.parts().load_norm(named("ln"), inner, &out.norm));
  FT_ASSIGN_OR_RETURN(out.bias, weights.table(weight_arena_, named("ln") + ".bias", 1, inner));
  FT_ASSIGN_OR_RETURN(out.output, chain.outputs().own(named("head") + ".weight", vocab, inner, {}));
  return {};
}

Status MlpSpeculator::take_scratch() {
  const char* what = "the draft head's scratch (lower --max-num-seqs)";
  const auto rows = static_cast<size_t>(max_rows_);
  const auto inner = static_cast<size_t>(config_.inner);
  const auto hidden = static_cast<size_t>(target_.config().hidden_size);
  const size_t act = dtype_size(dtype_);
  Arena& arena = scratch_arena_;
  for (float** values : {&sum_, &embedded_, &normed_}) {
    FT_ASSIGN_OR_RETURN(*values, arena.take_array<float>(rows * inner, what));
  }
  for (void*& state : states_) {
    FT_ASSIGN_OR_RETURN(state, arena.take(rows * inner * act, what));
  }
  FT_ASSIGN_OR_RETURN(x_, arena.take(rows * std::max(hidden, inner) * act, what));
  if (config_.scales_input) {
    FT_ASSIGN_OR_RETURN(tap_, arena.take_array<float>(rows * hidden, what));
  }
  return taps_.take_scratch(arena, max_rows_);
}

// What the projection reads.
void MlpSpeculator::enter(const LayerRows& rows, const ChainPass& pass) {
  if (pass.step > 0) {
    move_rows(rows.queue, {.counts = rows.counts,
                           .in = states_[static_cast<size_t>((pass.step + 1) % 2)],
                           .out = x_,
                           .from = pass.tensors.source,
                           .to = nullptr,
                           .row_kind = RowKind::kToken,
                           .max_rows = rows.max_rows,
                           .width = config_.inner,
                           .out_stride = config_.inner,
                           .out_offset = 0,
                           .in_dtype = dtype_,
                           .out_dtype = dtype_});
    return;
  }
  if (!config_.scales_input) {
    taps_.read(rows.queue, pass.tensors, pass.taps, rows.max_rows, x_, dtype_);
    return;
  }
  taps_.read(rows.queue, pass.tensors, pass.taps, rows.max_rows, tap_, DType::kF32);
  norm_rows(rows, tap_, nullptr, input_norm_, {target_.config().hidden_size, kMlpEps},
            {x_, dtype_});
}

// Adds the token to the projected state and norms the sum; leaves it in embedded_.
void MlpSpeculator::add_embedding(const LayerRows& rows, const MlpStep& weights,
                                  const int32_t* ids) {
  EmbedArgs embedding{.counts = rows.counts,
                      .token_ids = ids,
                      .table = weights.embedding,
                      .out = embedded_,
                      .max_rows = rows.max_rows,
                      .vocab = target_.config().own_ids(),
                      .hidden = config_.inner,
                      .dtype = dtype_,
                      .scale = embedding_scale_};
  embed(rows.queue, embedding);
  norm_rows(rows, sum_, embedded_, weights.norm, {config_.inner, kMlpEps}, {normed_, DType::kF32});
  // A table of one row gives it to every id.
  embedding.table = weights.bias;
  embedding.vocab = 1;
  embedding.scale = 1;
  embedding.out = sum_;
  embed(rows.queue, embedding);
  norm_rows(rows, sum_, normed_, Norm{}, {config_.inner, 0}, {embedded_, DType::kF32});
}

const void* MlpSpeculator::forward(Queue& queue, const ChainPass& pass) {
  FT_CHECK(pass.max_rows > 0 && pass.max_rows <= max_rows_);
  const StepTensors& live = pass.tensors.rows;
  const LayerRows rows{queue, live.counts, live.positions, live.row_slot, pass.max_rows};
  enter(rows, pass);
  multiply(rows, x_, projection(pass.step), {sum_}, dtype_);
  add_embedding(rows, of(pass.step), live.token_ids);
  void* state = states_[static_cast<size_t>(pass.step % 2)];
  activate(queue, {.counts = live.counts,
                   .x = embedded_,
                   .out = state,
                   .max_rows = pass.max_rows,
                   .size = config_.inner,
                   .activation = Activation::kGelu,
                   .out_dtype = dtype_});
  return state;
}

}  // namespace

Result<MlpSpeculatorConfig> read_mlp_speculator_config(const std::string& folder,
                                                       const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const ChainConfig file, ChainConfig::read(folder));
  const ConfigFields fields(file.json, file.where, false);
  MlpSpeculatorConfig config;
  FT_RETURN_IF_ERROR(read_chain_len(fields, "n_predict", &config.num_steps));
  if (config.num_steps == 0) return fields.missing("n_predict");
  int32_t vocab = 0, width = target.hidden_size;
  FT_RETURN_IF_ERROR(fields.need_count("vocab_size", &vocab));
  FT_RETURN_IF_ERROR(check_chain_size(fields, "vocab_size", vocab, target.own_ids()));
  const char* width_name = fields.find("emb_dim") != nullptr ? "emb_dim" : "hidden_size";
  FT_RETURN_IF_ERROR(fields.need_count(width_name, &width));
  FT_RETURN_IF_ERROR(check_chain_size(fields, width_name, width, target.hidden_size));
  config.inner = width;
  FT_RETURN_IF_ERROR(fields.read_count_or_none("inner_dim", &config.inner));
  const char* ties_name = fields.find("tie_weights") != nullptr ? "tie_weights" : "tie_wts";
  FT_RETURN_IF_ERROR(fields.read_flag(ties_name, &config.ties_weights));
  FT_RETURN_IF_ERROR(fields.read_flag("scale_input", &config.scales_input));
  return config;
}

Result<std::unique_ptr<ChainHead>> load_mlp_speculator(Device& device, const std::string& folder,
                                                       const MlpSpeculatorConfig& config,
                                                       int32_t num_steps, Model& target,
                                                       const DraftHeadOptions& options) {
  FT_CHECK(num_steps > 0 && num_steps <= config.num_steps && options.max_rows > 0);
  auto head = std::make_unique<MlpSpeculator>(device, config, target, options);
  FT_RETURN_IF_ERROR(head->load({device, folder, target, options}, num_steps));
  FT_RETURN_IF_ERROR(head->take_scratch());
  return std::unique_ptr<ChainHead>(std::move(head));
}

Result<ChainFiles> read_mlp_speculator_files(const std::string& folder, const ModelConfig& target) {
  FT_ASSIGN_OR_RETURN(const MlpSpeculatorConfig config, read_mlp_speculator_config(folder, target));
  return ChainFiles{config.num_steps, [folder, config](Device& device, Model& of, int32_t count,
                                                       const DraftHeadOptions& options) {
                      return load_mlp_speculator(device, folder, config, count, of, options);
                    }};
}

}  // namespace foretoken
