#include "model/config/expert_config.h"

#include <algorithm>
#include <string>

#include "kernels/experts/expert_lists.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The first of these fields that is there; null: none is.
const char* first_of(const ConfigFields& fields, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fields.find(name) != nullptr) return name;
  }
  return nullptr;
}

std::string quoted(const char* name) { return "'" + std::string(name) + "'"; }

// An integer from `least` to 2^24; a missing one leaves *out as it is.
Status read_from(const ConfigFields& fields, const char* name, int64_t least, int32_t* out) {
  const Json* value = name != nullptr ? fields.find(name) : nullptr;
  if (value == nullptr) return {};
  if (!value->is_number_integer() || value->get<int64_t>() < least ||
      value->get<int64_t>() > 1 << 24) {
    return fields.wrong(name, "an integer from " + std::to_string(least) + " to 2^24");
  }
  *out = value->get<int32_t>();
  return {};
}

Status read_widths(const ConfigFields& fields, ExpertConfig* out) {
  const char* inner = first_of(fields, {"moe_intermediate_size", "intermediate_size"});
  if (inner == nullptr) return fields.missing("moe_intermediate_size");
  out->names.inner = quoted(inner);
  FT_RETURN_IF_ERROR(fields.need_count(inner, &out->inner));
  const char* shared =
      first_of(fields, {"shared_expert_intermediate_size", "shared_intermediate_size"});
  if (shared != nullptr) return read_from(fields, shared, 0, &out->shared_inner);
  int32_t count = 0;
  const char* counted =
      first_of(fields, {"n_shared_experts", "moe_num_shared_experts", "num_shared_experts"});
  FT_RETURN_IF_ERROR(read_from(fields, counted, 0, &count));
  const int64_t width = int64_t{count} * out->inner;
  if (width > 1 << 24) return fields.wrong(counted, "a number of experts that fits into memory");
  if (counted != nullptr) out->shared_inner = static_cast<int32_t>(width);
  return {};
}

Status read_method(const ConfigFields& fields, ExpertConfig* out) {
  if (const Json* score = fields.find("scoring_func")) {
    if (*score != "softmax" && *score != "sigmoid" && *score != "sqrtsoftplus") {
      return unsupported(fields.where() + ": scoring_func " + score->dump().substr(0, 80) +
                         " is not supported; supported: softmax, sigmoid, sqrtsoftplus");
    }
    out->score = *score == "softmax"   ? ExpertScore::kSoftmax
                 : *score == "sigmoid" ? ExpertScore::kSigmoid
                                       : ExpertScore::kSqrtSoftplus;
  }
  const Json* method = fields.find("topk_method");
  if (method == nullptr) return {};
  if (*method != "greedy" && *method != "group_limited_greedy" && *method != "noaux_tc") {
    return unsupported(fields.where() + ": topk_method " + method->dump().substr(0, 80) +
                       " is not supported; supported: greedy, group_limited_greedy, noaux_tc");
  }
  out->correction = *method == "noaux_tc";
  out->groups = out->correction ? ExpertGroups::kBestTwo : ExpertGroups::kBest;
  if (*method == "greedy") out->num_groups = out->top_groups = 1;
  return {};
}

Status contradicts(const ConfigFields& fields, const std::string& what) {
  return invalid_argument(fields.where() + ": " + what + "; correct the file");
}

Status check_counts(const ConfigFields& fields, const char* count, const char* top_k,
                    const ExpertConfig& experts) {
  const auto named = [](const char* name, int32_t value) {
    return "'" + std::string(name) + "' " + std::to_string(value);
  };
  if (experts.count > kMaxExperts || experts.top_k > kMaxTopExperts) {
    return unsupported(fields.where() + ": " + named(count, experts.count) + " with " +
                       named(top_k, experts.top_k) + " is not supported; the most are " +
                       std::to_string(kMaxExperts) + " experts and " +
                       std::to_string(kMaxTopExperts) + " for each token");
  }
  if (experts.top_k > experts.count) {
    return contradicts(
        fields, named(top_k, experts.top_k) + " is more than " + named(count, experts.count));
  }
  if (experts.count % experts.num_groups != 0) {
    return contradicts(fields, named("n_group", experts.num_groups) + " does not divide " +
                                   named(count, experts.count));
  }
  if (experts.top_groups > experts.num_groups) {
    return contradicts(fields, named("topk_group", experts.top_groups) + " is more than " +
                                   named("n_group", experts.num_groups));
  }
  if (experts.count / experts.num_groups * experts.top_groups < experts.top_k) {
    return contradicts(fields, named("topk_group", experts.top_groups) +
                                   " leaves fewer experts than " + named(top_k, experts.top_k));
  }
  return {};
}

// Layers that may have experts.

struct LayerRule {
  std::vector<LayerConfig>& layers;

  size_t size() const { return layers.size(); }
  // Takes the experts from the layers of which `keeps(i)` is false.
  template <class Keeps>
  void keep(const Keeps& keeps) const {
    for (size_t i = 0; i < layers.size(); ++i) {
      layers[i].experts = layers[i].experts && keeps(static_cast<int64_t>(i));
    }
  }
};

Status keep_listed_types(const ConfigFields& fields, const LayerRule& rule) {
  const Json* types = fields.find("mlp_layer_types");
  if (types == nullptr) return {};
  const bool fits = types->is_array() && types->size() == rule.size() &&
                    std::all_of(types->begin(), types->end(), [](const Json& type) {
                      return type == "dense" || type == "sparse";
                    });
  if (!fits) {
    return fields.wrong("mlp_layer_types", "a list of \"dense\" or \"sparse\" for each layer");
  }
  rule.keep([&](int64_t i) { return (*types)[static_cast<size_t>(i)] == "sparse"; });
  return {};
}

// Layers by their numbers.
Status read_numbers(const ConfigFields& fields, const char* name, std::vector<int64_t>* out) {
  const Json& list = *fields.find(name);
  const bool fits = list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& n) {
                      return n.is_number_integer() && n >= 0 && n <= 1 << 24;
                    });
  if (!fits) return fields.wrong(name, "a list of the numbers of layers");
  *out = list.get<std::vector<int64_t>>();
  return {};
}

bool holds(const std::vector<int64_t>& numbers, int64_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

Status keep_numbered(const ConfigFields& fields, const LayerRule& rule) {
  std::vector<int64_t> numbers;
  if (fields.find("mlp_only_layers") != nullptr) {
    FT_RETURN_IF_ERROR(read_numbers(fields, "mlp_only_layers", &numbers));
    rule.keep([&](int64_t i) { return !holds(numbers, i); });
  }
  if (fields.find("moe_layers") != nullptr) {
    FT_RETURN_IF_ERROR(read_numbers(fields, "moe_layers", &numbers));
    rule.keep([&](int64_t i) { return holds(numbers, i); });
    return {};
  }
  int32_t step = 1;
  FT_RETURN_IF_ERROR(read_from(fields, "interleave_moe_layer_step", 0, &step));
  rule.keep([&](int64_t i) { return step > 0 && (i + 1) % step == 0; });
  return {};
}

// DeepSeek's: the first layers are dense, and of the others each moe_layer_freq-th is not; or a
// list of 1 and 0.
Status keep_behind_first(const ConfigFields& fields, const LayerRule& rule) {
  int32_t first = 0, period = 1;
  FT_RETURN_IF_ERROR(read_from(fields, "first_k_dense_replace", 0, &first));
  const Json* frequency = fields.find("moe_layer_freq");
  if (frequency != nullptr && frequency->is_array()) {
    const bool fits = frequency->size() == rule.size() &&
                      std::all_of(frequency->begin(), frequency->end(),
                                  [](const Json& each) { return each == 0 || each == 1; });
    if (!fits) {
      return fields.wrong("moe_layer_freq", "a number, or a list of 1 or 0 for each layer");
    }
    rule.keep([&](int64_t i) { return (*frequency)[static_cast<size_t>(i)] == 1; });
  } else {
    FT_RETURN_IF_ERROR(read_from(fields, "moe_layer_freq", 1, &period));
  }
  rule.keep([&](int64_t i) { return i >= first && i % period == 0; });
  return {};
}

Status keep_each(const ConfigFields& fields, const LayerRule& rule) {
  int32_t step = 1, interval = 1, begin = 0;
  FT_RETURN_IF_ERROR(read_from(fields, "decoder_sparse_step", 1, &step));
  FT_RETURN_IF_ERROR(read_from(fields, "moe_layer_interval", 1, &interval));
  FT_RETURN_IF_ERROR(read_from(fields, "moe_layer_start_index", 0, &begin));
  int32_t end = -1;  // the last
  FT_RETURN_IF_ERROR(read_from(fields, "moe_layer_end_index", -1, &end));
  rule.keep([&](int64_t i) {
    return (i + 1) % step == 0 && (i + 1) % interval == 0 && i >= begin && (end < 0 || i <= end);
  });
  return {};
}

// Of the fields that mark_expert_layers reads, those that are there.
std::string names_of_layer_fields(const ConfigFields& fields) {
  std::string names;
  for (const char* name :
       {"first_k_dense_replace", "moe_layer_freq", "mlp_layer_types", "mlp_only_layers",
        "moe_layers", "interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval",
        "moe_layer_start_index", "moe_layer_end_index"}) {
    if (fields.find(name) == nullptr) continue;
    names += (names.empty() ? "" : ", ") + quoted(name);
  }
  return names;
}

}  // namespace

Status read_expert_config(const ConfigFields& fields, ExpertConfig* out) {
  const char* count =
      first_of(fields, {"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"});
  out->names.count = count != nullptr ? quoted(count) : "'n_routed_experts' or 'num_experts'";
  out->names.layers = names_of_layer_fields(fields);
  if (count == nullptr && out->count == 0) return {};
  FT_RETURN_IF_ERROR(read_from(fields, count, 0, &out->count));
  if (out->count == 0) return {};
  const char* top_k =
      first_of(fields, {"num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk"});
  if (top_k == nullptr && out->top_k == 0) return fields.missing("num_experts_per_tok");
  FT_RETURN_IF_ERROR(read_from(fields, top_k, 1, &out->top_k));
  FT_RETURN_IF_ERROR(read_widths(fields, out));
  FT_RETURN_IF_ERROR(read_from(fields, "n_group", 1, &out->num_groups));
  FT_RETURN_IF_ERROR(read_from(fields, "topk_group", 1, &out->top_groups));
  FT_RETURN_IF_ERROR(read_method(fields, out));
  FT_RETURN_IF_ERROR(fields.read_flag("norm_topk_prob", &out->normalised));
  double scale = out->scale, jitter = out->jitter;
  FT_RETURN_IF_ERROR(fields.read_positive("routed_scaling_factor", &scale));
  if (out->score == ExpertScore::kSparseMixer) {
    FT_RETURN_IF_ERROR(fields.read_positive("router_jitter_noise", &jitter));
  }
  out->scale = static_cast<float>(scale);
  out->jitter = static_cast<float>(jitter);
  return check_counts(fields, count != nullptr ? count : "num_experts",
                      top_k != nullptr ? top_k : "num_experts_per_tok", *out);
}

Status mark_expert_layers(const ConfigFields& fields, std::vector<LayerConfig>* layers) {
  for (LayerConfig& layer : *layers) layer.experts = true;
  const LayerRule rule{*layers};
  FT_RETURN_IF_ERROR(keep_listed_types(fields, rule));
  FT_RETURN_IF_ERROR(keep_numbered(fields, rule));
  if (fields.find("mlp_layer_types") == nullptr) {
    FT_RETURN_IF_ERROR(keep_behind_first(fields, rule));
  }
  return keep_each(fields, rule);
}

Status read_mixture(const ConfigFields& fields, ExpertConfig* out,
                    std::vector<LayerConfig>* layers) {
  FT_RETURN_IF_ERROR(read_expert_config(fields, out));
  return out->count > 0 ? mark_expert_layers(fields, layers) : Status();
}

Status check_cut_activation(const ConfigFields& fields) {
  const Json* value = fields.find("hidden_act");
  if (value == nullptr || *value == "silu" || *value == "swish") return {};
  return unsupported(fields.where() + ": hidden_act " + value->dump().substr(0, 80) +
                     " is not supported, as gates that are cut at swiglu_limit are built for silu "
                     "alone; use a model whose hidden_act is silu");
}

}  // namespace foretoken
