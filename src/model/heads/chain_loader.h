#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "device/arena.h"
#include "device/device.h"
#include "model/config/config_fields.h"
#include "model/draft_head.h"
#include "model/files/checkpoint.h"
#include "model/layer/part_loader.h"
#include "model/model.h"
#include "model/output_rows.h"
#include "model/weights/weight_loader.h"

namespace foretoken {

// config.json of a head that is no model of its own.
struct ChainConfig {
  nlohmann::json json;
  std::string where;

  // NotFound names the folder without one.
  static Result<ChainConfig> read(const std::string& folder);
};

// Tokens that a head may draft.
inline constexpr int32_t kMaxChain = 64;

// Reads a number of tokens that a head drafts; a missing one leaves *out as it is.
Status read_chain_len(const ConfigFields& fields, const char* name, int32_t* out);

// InvalidArgument where a size of the head is not the target's.
Status check_chain_size(const ConfigFields& fields, const char* name, int32_t own,
                        int32_t of_target);

// What heads that draft chains are loaded from and for.
struct ChainSource {
  Device& device;
  const std::string& folder;
  Model& target;
  const DraftHeadOptions& options;
};

// The checkpoint of such a head and what loads its parts, in the target's type. Start-up only.
class ChainLoader {
 public:
  // arena: holds what is not packed. num_elements: of all weights, about. Errors as of
  // Checkpoint::open and WeightLoader::create.
  static Result<std::unique_ptr<ChainLoader>> open(const ChainSource& source, Arena& arena,
                                                   int64_t num_elements);

  WeightLoader& weights() { return *weights_; }
  PartLoader& parts() { return *parts_; }
  // A matrix of the head's own layers, which options.rounding is for.
  Status load_layer(const TensorPart& matrix, int64_t cols, bool has_bias, Linear* out);
  OutputRowsLoader& outputs() { return *outputs_; }
  bool is_random() const { return !checkpoint_.has_value(); }

 private:
  ChainLoader() = default;

  std::optional<Checkpoint> checkpoint_;
  std::unique_ptr<WeightLoader> weights_;
  std::optional<PartLoader> parts_;
  std::optional<OutputRowsLoader> outputs_;
};

}  // namespace foretoken
