#include "serve/fields/pooler_config.h"

#include "base/log.h"
#include "base/text/ascii_text.h"
#include "config/engine_names.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

Result<Pooling> pooling_of(const std::string& type, const std::string& flag) {
  const std::string lower = lower_case(type);
  if (lower == "last") return Pooling::kLast;
  if (lower == "mean") return Pooling::kMean;
  if (lower == "cls") return Pooling::kCls;
  return unsupported(flag + ": pooling_type " + type + " is not built; use LAST, MEAN or CLS");
}

}  // namespace

Result<PoolerConfig> read_pooler_config(const std::string& text, const std::string& flag) {
  PoolerConfig config;
  if (asks_for_nothing(text)) return config;
  FT_ASSIGN_OR_RETURN(const nlohmann::ordered_json object, parse_ordered_json_object(text, flag));
  JsonFields fields(object, flag);
  std::string type;
  for (const char* name : {"seq_pooling_type", "pooling_type"}) fields.read(name, &type);
  for (const char* name : {"activation", "use_activation", "normalize"}) {
    fields.read(name, &config.normalize);
  }
  FT_RETURN_IF_ERROR(fields.status());
  if (!type.empty()) {
    FT_ASSIGN_OR_RETURN(config.pooling, pooling_of(type, flag));
  }
  while (const std::optional<std::string> other = fields.first_unread()) {
    FT_LOG(warn, "'{}' of {} has no effect", *other, flag);
    fields.raw(other->c_str());
  }
  return config;
}

}  // namespace foretoken
