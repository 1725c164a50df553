#include "model/config/layer_pattern.h"

#include <algorithm>
#include <string>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr int32_t kMaxWrittenTypes = 1 << 16;

Status count_layers(const ConfigFields& fields, int32_t* num_layers) {
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", num_layers));
  if (*num_layers <= kMaxWrittenTypes) return {};
  return fields.wrong("num_hidden_layers", "at most 2^16");
}

Status check_length(const ConfigFields& fields, const char* name, size_t at_least, size_t at_most) {
  const Json& list = *fields.find(name);
  if (!list.is_array()) return fields.wrong(name, "a list with one entry for each layer");
  if (list.size() >= at_least && list.size() <= at_most) return {};
  return invalid_argument(fields.where() + ": '" + name + "' has " + std::to_string(list.size()) +
                          " entries for " + std::to_string(at_least) + " layers; correct the file");
}

Status read_rope_layers(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  const char* name = "no_rope_layers";
  const Json* list = fields.find(name);
  if (list == nullptr) {
    int32_t interval = 0;
    FT_RETURN_IF_ERROR(fields.read_count("no_rope_layer_interval", &interval));
    for (size_t i = 0; interval > 0 && i < layers->size(); ++i) {
      (*layers)[i].rope = (i + 1) % static_cast<size_t>(interval) != 0;
    }
    return {};
  }
  FT_RETURN_IF_ERROR(check_length(fields, name, layers->size(), SIZE_MAX));
  for (size_t i = 0; i < layers->size(); ++i) {
    const Json& flag = (*list)[i];
    if (flag != 0 && flag != 1) return fields.wrong(name, "a list of 1 (rotary positions) and 0");
    (*layers)[i].rope = flag == 1;
  }
  return {};
}

Status mark_listed(const ConfigFields& fields, const char* recurrent_type,
                   std::vector<LayerConfig>* layers, std::vector<bool>* windowed) {
  const char* name = "layer_types";
  FT_RETURN_IF_ERROR(check_length(fields, name, layers->size(), layers->size()));
  const std::string others =
      recurrent_type != nullptr ? ", " + std::string(recurrent_type) : std::string();
  for (size_t i = 0; i < layers->size(); ++i) {
    const Json& type = (*fields.find(name))[i];
    (*layers)[i].recurrent = recurrent_type != nullptr && type == recurrent_type;
    (*windowed)[i] = type == "sliding_attention";
    if (!(*layers)[i].recurrent && !(*windowed)[i] && type != "full_attention") {
      return unsupported(fields.where() + ": layer type " + type.dump().substr(0, 80) +
                         " is not supported; supported: full_attention, sliding_attention" +
                         others);
    }
  }
  return {};
}

Status mark_by_rule(const ConfigFields& fields, WindowRule rule,
                    const std::vector<LayerConfig>& layers, std::vector<bool>* windowed) {
  int32_t period = 0;
  const Json* first = fields.find("max_window_layers");
  switch (rule) {
    case WindowRule::kNever:
      return {};
    case WindowRule::kAlways:
      windowed->assign(layers.size(), true);
      return {};
    case WindowRule::kFromLayer:
      if (first == nullptr) return fields.missing("max_window_layers");
      if (!first->is_number_integer() || *first < 0) {
        return fields.wrong("max_window_layers", "an integer from 0 on");
      }
      for (size_t i = 0; i < layers.size(); ++i) (*windowed)[i] = Json(i) >= *first;
      return {};
    case WindowRule::kPattern:
      FT_RETURN_IF_ERROR(fields.need_count("sliding_window_pattern", &period));
      for (size_t i = 0; i < layers.size(); ++i) {
        (*windowed)[i] = (i + 1) % static_cast<size_t>(period) != 0;
      }
      return {};
    case WindowRule::kWithoutRope:
      for (size_t i = 0; i < layers.size(); ++i) (*windowed)[i] = !layers[i].rope;
      return {};
  }
  return {};
}

}  // namespace

Result<std::vector<LayerConfig>> read_layer_configs(const ConfigFields& fields, WindowRule rule,
                                                    int32_t num_layers, bool only_windows_turn,
                                                    const char* recurrent_type) {
  std::vector<LayerConfig> layers(static_cast<size_t>(num_layers));
  FT_RETURN_IF_ERROR(read_rope_layers(fields, &layers));
  std::vector<bool> windowed(layers.size(), false);
  const bool listed = fields.find("layer_types") != nullptr;
  if (listed) FT_RETURN_IF_ERROR(mark_listed(fields, recurrent_type, &layers, &windowed));
  bool use_window = rule != WindowRule::kFromLayer && rule != WindowRule::kWithoutRope;
  FT_RETURN_IF_ERROR(fields.read_flag("use_sliding_window", &use_window));
  // A window of null is a choice, except where a pattern asks for one.
  const bool unset = fields.find("sliding_window") == nullptr && rule != WindowRule::kPattern;
  if (!use_window || unset) return layers;
  if (!listed) FT_RETURN_IF_ERROR(mark_by_rule(fields, rule, layers, &windowed));
  if (std::find(windowed.begin(), windowed.end(), true) == windowed.end()) return layers;
  int32_t window = 0;
  FT_RETURN_IF_ERROR(fields.need_count("sliding_window", &window));
  for (size_t i = 0; i < layers.size(); ++i) {
    if (windowed[i]) {
      layers[i].window = window;
    } else if (only_windows_turn) {
      layers[i].rope = false;
    }
  }
  return layers;
}

Status write_layer_types(const ConfigFields& fields,
                         const std::function<const char*(int32_t, int32_t)>& type_of, Json* json) {
  if (fields.find("layer_types") != nullptr) return {};
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(count_layers(fields, &num_layers));
  Json types = Json::array();
  for (int32_t i = 0; i < num_layers; ++i) types.push_back(type_of(i, num_layers));
  (*json)["layer_types"] = std::move(types);
  return {};
}

Status write_attending_layers(const ConfigFields& fields, const char* name, const char* other,
                              Json* json) {
  int32_t num_layers = 0;
  FT_RETURN_IF_ERROR(count_layers(fields, &num_layers));
  std::vector<std::string> types(static_cast<size_t>(num_layers), other);
  const Json* numbers = fields.find(name);
  const Json none = Json::array();
  if (numbers == nullptr) numbers = &none;
  if (!numbers->is_array()) return fields.wrong(name, "a list of the numbers of layers");
  for (const Json& number : *numbers) {
    if (!number.is_number_integer() || number < 0 || number >= num_layers) {
      return fields.wrong(name, "a list of the numbers of layers");
    }
    types[number.get<size_t>()] = "full_attention";
  }
  (*json)["layer_types"] = std::move(types);
  return {};
}

Status share_kv(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  int32_t shared = 0;
  FT_RETURN_IF_ERROR(fields.read_count_or_none("num_kv_shared_layers", &shared));
  const auto num_layers = static_cast<int32_t>(layers->size());
  const int32_t first = num_layers - shared;
  for (int32_t i = std::max(first, 0); i < num_layers; ++i) {
    LayerConfig& layer = (*layers)[static_cast<size_t>(i)];
    for (int32_t before = 0; before < first; ++before) {
      const bool windowed = (*layers)[static_cast<size_t>(before)].window > 0;
      if (windowed == (layer.window > 0)) layer.kv_of = before;
    }
    if (layer.kv_of < 0) {
      return fields.wrong("num_kv_shared_layers", "a number that leaves a layer of each type");
    }
  }
  return {};
}

Status read_loops(const ConfigFields& fields, const char* name, int32_t* loops) {
  constexpr int32_t kMaxLoops = 16;
  FT_RETURN_IF_ERROR(fields.read_count(name, loops));
  return *loops <= kMaxLoops ? Status() : fields.wrong(name, "a number from 1 to 16");
}

}  // namespace foretoken
