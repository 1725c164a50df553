#include "model/config/rope_config.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

namespace foretoken {
namespace {

using Json = nlohmann::json;

struct RopeName {
  const char* name;
  RopeType type;
};

// "su" is the name that early Phi-3 models have for longrope; "mrope", and what "xdrope" has beside
// "dynamic", is about images alone.
constexpr RopeName kRopeNames[] = {
    {"default", RopeType::kDefault}, {"linear", RopeType::kLinear},
    {"dynamic", RopeType::kDynamic}, {"llama3", RopeType::kLlama3},
    {"yarn", RopeType::kYarn},       {"longrope", RopeType::kLongrope},
    {"su", RopeType::kLongrope},     {"proportional", RopeType::kProportional},
    {"mrope", RopeType::kDefault},   {"deepseek_yarn", RopeType::kYarn},
    {"xdrope", RopeType::kDynamic},
};

constexpr double kMaxContext = 1 << 24;

// What a rotary embedding takes from the rest of the config.
struct Surroundings {
  const ConfigFields& fields;
  int32_t head_dim;
  int32_t max_position_embeddings;
};

Status read_type(const ConfigFields& rope, RopeType* out) {
  const Json* name = rope.find("rope_type");
  if (name == nullptr) name = rope.find("type");
  if (name == nullptr) return {};
  const auto* known = std::find_if(std::begin(kRopeNames), std::end(kRopeNames),
                                   [&](const RopeName& entry) { return *name == entry.name; });
  if (known == std::end(kRopeNames)) {
    return unsupported(rope.where() + ": rope type " + name->dump() +
                       " is not supported; supported: default, linear, dynamic, llama3, yarn, "
                       "longrope, proportional, mrope");
  }
  *out = known->type;
  return {};
}

Status read_rotary_dim(const ConfigFields& rope, const Surroundings& around, int32_t* out) {
  double partial = 1;
  FT_RETURN_IF_ERROR(around.fields.read_positive("partial_rotary_factor", &partial));
  FT_RETURN_IF_ERROR(rope.read_positive("partial_rotary_factor", &partial));
  *out = static_cast<int32_t>(around.head_dim * std::min(partial, 2.0));
  if (partial > 1 || *out < 2 || *out % 2 != 0) {
    return invalid_argument(rope.where() + ": partial_rotary_factor " + std::to_string(partial) +
                            " of head_dim " + std::to_string(around.head_dim) +
                            " must give an even number from 2 to head_dim; correct the file");
  }
  return {};
}

Status read_llama3(const ConfigFields& rope, RopeConfig* out) {
  FT_RETURN_IF_ERROR(rope.need_positive("factor", &out->factor));
  FT_RETURN_IF_ERROR(rope.need_positive("low_freq_factor", &out->low_freq_factor));
  FT_RETURN_IF_ERROR(rope.need_positive("high_freq_factor", &out->high_freq_factor));
  if (out->high_freq_factor < out->low_freq_factor) {
    return rope.wrong("high_freq_factor", "not smaller than low_freq_factor");
  }
  return {};
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

// Peng et al. 2023, with the two scales that DeepSeek added.
Status read_yarn(const ConfigFields& rope, const Surroundings& around, RopeConfig* out) {
  if (out->original_context == around.max_position_embeddings && rope.find("factor") == nullptr) {
    return rope.missing("factor");
  }
  out->factor = double(around.max_position_embeddings) / out->original_context;
  FT_RETURN_IF_ERROR(rope.read_positive("factor", &out->factor));
  FT_RETURN_IF_ERROR(rope.read_positive("beta_fast", &out->beta_fast));
  FT_RETURN_IF_ERROR(rope.read_positive("beta_slow", &out->beta_slow));
  FT_RETURN_IF_ERROR(rope.read_flag("truncate", &out->truncate));
  if (out->beta_fast < out->beta_slow) {
    return invalid_argument(rope.where() + ": beta_fast must not be smaller than beta_slow; " +
                            "correct the file");
  }
  double mscale = 1, mscale_all = 0;
  if (rope.find("mscale") != nullptr && rope.find("mscale_all_dim") != nullptr &&
      *rope.find("mscale") != 0 && *rope.find("mscale_all_dim") != 0) {
    FT_RETURN_IF_ERROR(rope.read_positive("mscale", &mscale));
    FT_RETURN_IF_ERROR(rope.read_positive("mscale_all_dim", &mscale_all));
  }
  out->attention_factor = yarn_scale(out->factor, mscale);
  if (mscale_all > 0) out->attention_factor /= yarn_scale(out->factor, mscale_all);
  return rope.read_positive("attention_factor", &out->attention_factor);
}

// Ding et al. 2024.
Status read_longrope(const ConfigFields& rope, const Surroundings& around, RopeConfig* out) {
  for (const auto& [name, list] : {std::pair("short_factor", &out->short_factor),
                                   std::pair("long_factor", &out->long_factor)}) {
    if (rope.find(name) == nullptr) return rope.missing(name);
    FT_RETURN_IF_ERROR(rope.read_positive_list(name, list));
    if (list->size() != static_cast<size_t>(out->rotary_dim / 2)) {
      return invalid_argument(rope.where() + ": '" + name + "' has " +
                              std::to_string(list->size()) + " entries, but the rotary part of a " +
                              "head needs " + std::to_string(out->rotary_dim / 2) +
                              "; correct the file");
    }
  }
  out->factor = double(around.max_position_embeddings) / out->original_context;
  FT_RETURN_IF_ERROR(rope.read_positive("factor", &out->factor));
  if (out->factor > 1 && out->original_context > 1) {
    out->attention_factor = std::sqrt(1 + std::log(out->factor) / std::log(out->original_context));
  }
  FT_RETURN_IF_ERROR(rope.read_positive("short_mscale", &out->short_scale));
  FT_RETURN_IF_ERROR(rope.read_positive("long_mscale", &out->long_scale));
  return rope.read_positive("attention_factor", &out->attention_factor);
}

// Hunyuan's models name this dynamic, but its theta does not depend on the length.
Status read_alpha(const ConfigFields& rope, RopeConfig* out) {
  if (out->type != RopeType::kDynamic || rope.find("alpha") == nullptr) return {};
  double alpha = 1;
  FT_RETURN_IF_ERROR(rope.read_positive("alpha", &alpha));
  const double dim = out->rotary_dim;
  if (dim < 4) return rope.wrong("alpha", "left out where heads turn by one pair only");
  out->theta *= std::pow(alpha, dim / (dim - 2));
  out->type = RopeType::kDefault;
  return {};
}

// The factor says which part of the pairs turns; frequencies are those of the whole head.
Status read_proportional(const ConfigFields& rope, const Surroundings& around, RopeConfig* out) {
  out->turning_pairs = out->rotary_dim / 2;
  out->rotary_dim = around.head_dim;
  return rope.read_positive("factor", &out->factor);
}

// `out` holds the theta of the surroundings.
Status read_rope(const ConfigFields& rope, const Surroundings& around, RopeConfig* out) {
  FT_RETURN_IF_ERROR(read_type(rope, &out->type));
  FT_RETURN_IF_ERROR(rope.read_positive("rope_theta", &out->theta));
  FT_RETURN_IF_ERROR(read_rotary_dim(rope, around, &out->rotary_dim));
  FT_RETURN_IF_ERROR(read_alpha(rope, out));
  // Phi-3 has the original context beside its rope_scaling.
  out->original_context = around.max_position_embeddings;
  if (out->type != RopeType::kDynamic) {
    FT_RETURN_IF_ERROR(rope.read_count("original_max_position_embeddings", &out->original_context));
    FT_RETURN_IF_ERROR(
        around.fields.read_count("original_max_position_embeddings", &out->original_context));
  }
  switch (out->type) {
    case RopeType::kDefault:
      return {};
    case RopeType::kLinear:
      return rope.need_positive("factor", &out->factor);
    case RopeType::kDynamic:
      FT_RETURN_IF_ERROR(rope.need_positive("factor", &out->factor));
      if (out->rotary_dim < 4 || out->factor < 1) {
        return rope.wrong("factor", "at least 1, with a rotary part of at least 4 elements");
      }
      return {};
    case RopeType::kLlama3:
      return read_llama3(rope, out);
    case RopeType::kYarn:
      return read_yarn(rope, around, out);
    case RopeType::kLongrope:
      return read_longrope(rope, around, out);
    case RopeType::kProportional:
      return read_proportional(rope, around, out);
  }
  return {};
}

int32_t scaled_context(const RopeConfig& rope, int32_t max_position_embeddings) {
  double context = max_position_embeddings;
  if (rope.type == RopeType::kLinear || rope.type == RopeType::kDynamic) context *= rope.factor;
  if (rope.type == RopeType::kYarn) context = rope.original_context * rope.factor;
  return static_cast<int32_t>(std::clamp(context, 1.0, kMaxContext));
}

// The object of rope_scaling or else of rope_parameters; an empty one when there is neither.
Status find_scaling(const ConfigFields& fields, const Json** out) {
  static const Json kNone = Json::object();
  *out = &kNone;
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const Json* value = fields.find(name);
    if (value == nullptr) continue;
    if (!value->is_object()) return fields.wrong(name, "an object or null");
    if (value->empty()) continue;
    *out = value;
    return {};
  }
  return {};
}

// rope_parameters by layer type.
Status read_by_layer_type(const ConfigFields& types, const Surroundings& full,
                          const Surroundings& windowed, RopeConfigs* out) {
  for (const auto& [name, rope, around] :
       {std::tuple("full_attention", &out->full, &full),
        std::tuple("sliding_attention", &*out->windowed, &windowed)}) {
    static const Json kNone = Json::object();
    const Json* value = types.find(name);
    if (value != nullptr && !value->is_object()) return types.wrong(name, "an object or null");
    const ConfigFields fields = types.of(value != nullptr ? *value : kNone, name);
    FT_RETURN_IF_ERROR(read_rope(fields, *around, rope));
  }
  return {};
}

}  // namespace

Result<RopeConfigs> read_rope_configs(const ConfigFields& fields, RopeHeads heads,
                                      int32_t max_position_embeddings) {
  const Surroundings around{fields, heads.full, max_position_embeddings};
  const Surroundings windowed{fields, heads.windowed, max_position_embeddings};
  const Json* scaling = nullptr;
  FT_RETURN_IF_ERROR(find_scaling(fields, &scaling));
  RopeConfigs out;
  FT_RETURN_IF_ERROR(fields.read_positive("rope_theta", &out.full.theta));
  if (const Json* parameters = fields.find("rope_parameters"); parameters != nullptr) {
    if (!parameters->is_object()) return fields.wrong("rope_parameters", "an object or null");
    FT_RETURN_IF_ERROR(fields.of(*parameters).read_positive("rope_theta", &out.full.theta));
  }
  if (fields.find("rope_local_base_freq") != nullptr) {
    out.windowed.emplace();
    FT_RETURN_IF_ERROR(fields.read_positive("rope_local_base_freq", &out.windowed->theta));
  }
  const ConfigFields rope = fields.of(*scaling);
  out.max_context = max_position_embeddings;
  if (rope.find("full_attention") != nullptr || rope.find("sliding_attention") != nullptr) {
    if (!out.windowed) out.windowed.emplace(out.full);
    FT_RETURN_IF_ERROR(read_by_layer_type(rope, around, windowed, &out));
    return out;
  }
  FT_RETURN_IF_ERROR(read_rope(rope, around, &out.full));
  if (out.windowed) {
    static const Json kPlain = Json::object();
    FT_RETURN_IF_ERROR(read_rope(fields.of(kPlain), windowed, &*out.windowed));
  } else {
    out.max_context = scaled_context(out.full, max_position_embeddings);
  }
  return out;
}

}  // namespace foretoken
