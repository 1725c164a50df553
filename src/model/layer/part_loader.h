#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/arena.h"
#include "model/config/architecture.h"
#include "model/config/config.h"
#include "model/layer/linear.h"
#include "model/layer/norm.h"
#include "model/weights/sharding.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// Loads the matrices and norms that layers are made of, or a rank's part of them, under the names
// of Hugging Face; `arena` holds what is not packed. `config` is that of the whole model.
// Everything outlives it. Errors as of WeightLoader.
class PartLoader {
 public:
  PartLoader(Arena& arena, const ModelConfig& config, const NormForm& norms, WeightLoader& loader,
             const Sharding& sharding = {})
      : arena_(arena), config_(config), norms_(norms), loader_(loader), sharding_(sharding) {}

  // One whose norms are of that form, where there is one.
  PartLoader with(const std::optional<NormForm>& norms) const {
    return {arena_, config_, norms.value_or(norms_), loader_, sharding_};
  }

  // One whose norms have so much more added to their weights.
  PartLoader with_offset(float more) const {
    NormForm norms = norms_;
    norms.offset += more;
    return with(norms);
  }

  Arena& arena() const { return arena_; }
  const ModelConfig& config() const { return config_; }
  const Sharding& sharding() const { return sharding_; }
  WeightLoader& weights() const { return loader_; }

  // The norm `name` (without ".weight" and ".bias") of `size` elements, in the decoder's form.
  Status load_norm(const std::string& name, int32_t size, Norm* out);
  // The part of such a norm, of root mean squares, that `own` says.
  Status load_norm_part(const std::string& name, int64_t size, const ShardRange& own, Norm* out);
  // The parts (whole names) one after the other as floats.
  Status load_vector(const std::vector<TensorPart>& parts, const float** out);
  // The same with the offset of the decoder's norms: weights of norms without biases.
  Status load_norm_weights(const std::vector<TensorPart>& parts, const float** out);
  // Numbers of the host, which `what` says for messages.
  Status upload(const std::vector<float>& numbers, const char* what, const float** out);
  // The parts (named without ".weight" and ".bias") stacked into one matrix.
  Status load_linear(const std::vector<TensorPart>& parts, int64_t cols, bool has_bias, Linear* out,
                     WeightOrder order = WeightOrder::kPlain) {
    return load_columns(parts, {cols, 0, cols}, has_bias, out, order);
  }
  // The columns `cols` of such a matrix, without a bias.
  Status load_columns(const std::vector<TensorPart>& parts, const ColumnRange& cols, Linear* out) {
    return load_columns(parts, cols, false, out, WeightOrder::kPlain);
  }
  // The channels [channels.first, channels.first + channels.count) of a convolution of each channel
  // by itself, `name` without ".weight", as floats [channels.count, width].
  Status load_conv(const std::string& name, const ColumnRange& channels, int64_t width,
                   const float** out);
  // A matrix [hidden, inputs] of which each rank has a part of the inputs; its bias counts once.
  // `padded`: of its columns.
  Status load_summed(const std::string& name, int64_t inputs, bool has_bias, Linear* out,
                     const PaddedHeads& padded = {});
  // The same of a part whose rows are all wanted, and of which this rank has the columns `own`.
  Status load_summed(const TensorPart& part, const ColumnRange& own, bool has_bias, Linear* out);

 private:
  void round_to_int8(Linear* out);
  Status load_columns(const std::vector<TensorPart>& parts, const ColumnRange& cols, bool has_bias,
                      Linear* out, WeightOrder order);

  Arena& arena_;
  const ModelConfig& config_;
  const NormForm norms_;
  WeightLoader& loader_;
  const Sharding sharding_;
};

}  // namespace foretoken
