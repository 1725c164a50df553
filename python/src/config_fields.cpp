#include "config_fields.h"

#include "apps/options/models/default_model.h"
#include "apps/options/models/speculative_list.h"
#include "serve/fields/engine_json.h"
#include "serve/fields/kv_transfer.h"

namespace foretoken::python {

Result<EngineConfig> read_config(const std::string& text) {
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json object,
                      parse_ordered_json_object(text, "the engine arguments"));
  EngineConfig config;
  JsonFields fields(object, "");
  for (const EngineField& field : engine_fields()) {
    if ((field.doors & kPython) != 0) read_engine_field(fields, field, &config);
  }
  const nlohmann::ordered_json* speculative = fields.raw("speculative_config");
  const nlohmann::ordered_json* transfer = fields.raw("kv_transfer_config");
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  config.model = config.model.empty() ? default_model() : bundled_or_given(config.model);
  if (config.model.empty()) {
    return not_found("the bundled model " + bundled_model_name() +
                     " was not found; give `model`, or set FORETOKEN_MODELS_DIR to its folder");
  }
  if (transfer != nullptr) FT_RETURN_IF_ERROR(read_kv_transfer(transfer->dump(), &config));
  if (speculative == nullptr) return config;
  FT_ASSIGN_OR_RETURN(config.speculative,
                      parse_speculative_config(speculative->dump(), config.model));
  return config;
}

}  // namespace foretoken::python
