#include "model/heads/chain_loader.h"

#include <filesystem>
#include <utility>

#include "model/files/containers/json_file.h"

namespace foretoken {

Result<ChainConfig> ChainConfig::read(const std::string& folder) {
  const std::string where = (std::filesystem::path(folder) / "config.json").string();
  std::error_code ignored;
  if (!std::filesystem::exists(where, ignored)) {
    return not_found("no config.json in the folder of the draft head, " + folder +
                     "; set 'model' to a folder with config.json and its weights");
  }
  FT_ASSIGN_OR_RETURN(nlohmann::json json, read_json_file(where));
  return ChainConfig{std::move(json), where};
}

Status read_chain_len(const ConfigFields& fields, const char* name, int32_t* out) {
  FT_RETURN_IF_ERROR(fields.read_count(name, out));
  return *out <= kMaxChain ? Status() : fields.wrong(name, "at most " + std::to_string(kMaxChain));
}

Status check_chain_size(const ConfigFields& fields, const char* name, int32_t own,
                        int32_t of_target) {
  if (own == of_target) return {};
  return invalid_argument(fields.where() + ": " + name + " " + std::to_string(own) +
                          " of the head is not the target's " + std::to_string(of_target) +
                          "; use a head that was trained for this target");
}

Result<std::unique_ptr<ChainLoader>> ChainLoader::open(const ChainSource& source, Arena& arena,
                                                       int64_t num_elements) {
  std::unique_ptr<ChainLoader> chain(new ChainLoader());
  if (!source.options.dummy) {
    FT_ASSIGN_OR_RETURN(chain->checkpoint_, Checkpoint::open(source.folder));
  }
  const ModelConfig& target = source.target.config();
  const Checkpoint* checkpoint = chain->checkpoint_ ? &*chain->checkpoint_ : nullptr;
  const int64_t bytes = num_elements * static_cast<int64_t>(dtype_size(target.dtype));
  FT_ASSIGN_OR_RETURN(chain->weights_, WeightLoader::create(source.device, checkpoint, target.dtype,
                                                            bytes, {}, nullptr));
  chain->weights_->round_layers(source.options.rounding);
  chain->parts_.emplace(arena, target, NormForm{}, *chain->weights_);
  chain->outputs_.emplace(source.device, arena, *chain->weights_, source.options, source.target);
  return chain;
}

Status ChainLoader::load_layer(const TensorPart& matrix, int64_t cols, bool has_bias, Linear* out) {
  weights_->enter_layers(false);
  const Status loaded = parts_->load_linear({matrix}, cols, has_bias, out);
  weights_->leave_layers();
  return loaded;
}

}  // namespace foretoken
