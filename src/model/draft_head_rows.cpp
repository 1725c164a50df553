#include <string>
#include <vector>

#include "base/check.h"
#include "model/config/architecture.h"
#include "model/decoder_weights.h"
#include "model/draft_head.h"
#include "model/files/checkpoint.h"

namespace foretoken {

Result<PackedWeight> load_head_rows(Device& device, const std::string& folder,
                                    const ModelConfig& config, const std::vector<int32_t>& ids) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < config.own_ids()) continue;
    return invalid_argument("id " + std::to_string(id) +
                            " of the reduced draft vocabulary lies outside the vocabulary of " +
                            std::to_string(config.own_ids()) + "; correct the list of ids");
  }
  const Architecture* architecture = find_architecture(config.architecture);
  FT_CHECK(architecture != nullptr && !ids.empty());
  FT_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(folder));
  const int64_t bytes = static_cast<int64_t>(ids.size()) * config.hidden_size *
                        static_cast<int64_t>(dtype_size(config.dtype));
  FT_ASSIGN_OR_RETURN(const auto loader,
                      WeightLoader::create(device, &checkpoint, config.dtype, bytes, {}, nullptr));
  const std::string name =
      output_matrix_name(config, architecture->decoder, find_place(architecture->decoder, *loader));
  FT_ASSIGN_OR_RETURN(PackedWeight rows,
                      loader->matrix_rows({name, config.own_ids()}, config.hidden_size, ids));
  FT_RETURN_IF_ERROR(loader->finish());
  return rows;
}

}  // namespace foretoken
