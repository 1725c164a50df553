#include "model/draft_head_config.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/files/python_json.h"
#include "compat/compat.h"
#include "gguf/model_texts.h"
#include "model/block_head_config.h"
#include "model/config/architecture.h"
#include "model/config/config_fields.h"
#include "model/files/checkpoint.h"
#include "model/files/containers/json_file.h"
#include "model/model.h"
#include "model/model_parts.h"
#include "model/peagle_config.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// The fields of the head's layer, as those of a whole model: heads name architectures of their own,
// and speculators keeps the sizes in an object.
Result<Json> layer_fields(const Json& file, const HeadTraits& kind, const ModelConfig& target,
                          const ConfigFields& fields) {
  Json json = file;
  const Json* nested = fields.find("transformer_layer_config");
  if (nested != nullptr) {
    if (!nested->is_object()) return fields.wrong("transformer_layer_config", "an object");
    json = *nested;
  }
  const Json* names = fields.find("architectures");
  const bool known = names != nullptr && names->is_array() && names->size() == 1 &&
                     (*names)[0].is_string() &&
                     find_architecture((*names)[0].get<std::string>()) != nullptr;
  if (kind.drafts_blocks()) {
    json["architectures"] = {json.value("model_type", Json()) == "llama" ? "LlamaForCausalLM"
                                                                         : "Qwen3ForCausalLM"};
  } else if (!kind.of_target) {
    json["architectures"] = {"LlamaForCausalLM"};
    if (!json.contains("num_hidden_layers")) json["num_hidden_layers"] = 1;
  } else if (!known) {
    json["architectures"] = {target.architecture};
  }
  // A head has the target's type and ends no text.
  json["dtype"] = "float32";
  json.erase("eos_token_id");
  return json;
}

// What speculators calls its heads, of those that are read.
bool is_known_speculator(const Json& type) {
  return std::any_of(std::begin(kHeadKinds), std::end(kHeadKinds),
                     [&](const HeadTraits& kind) { return type == kind.speculator; });
}

// "eagle, eagle3 or peagle".
std::string known_speculators() {
  std::string names;
  for (const HeadTraits& kind : kHeadKinds) {
    const bool last = &kind + 1 == std::end(kHeadKinds);
    names += (names.empty() ? "" : last ? " or " : ", ") + std::string(kind.speculator);
  }
  return names;
}

// ", or method p_eagle": of a head laid out alike that drafts behind masks; "" where there is none.
std::string or_one_with_masks(const HeadTraits& of) {
  for (const HeadTraits& kind : kHeadKinds) {
    if (!kind.learns_masks || kind.entry != of.entry) continue;
    return std::string(", or method ") + kind.method + ", whose heads draft behind masks";
  }
  return "";
}

// Heads that are of none of the kinds.
Status check_known(const ConfigFields& fields) {
  const Json* type = fields.find("speculators_model_type");
  if (type != nullptr && !is_known_speculator(*type)) {
    return unsupported(fields.where() + ": heads of speculators' type " + type->dump() +
                       " are not supported; use a head of type " + known_speculators());
  }
  const Json* model = fields.find("model_type");
  if (model != nullptr && model->is_string() && model->get<std::string>().ends_with("_assistant")) {
    return invalid_argument(fields.where() + ": model_type " + model->dump() +
                            " is an assistant that attends to the target's keys and values; set "
                            "'method' to gemma4_assistant");
  }
  return {};
}

// Variants that would load and draft badly.
Status check_variant(const ConfigFields& fields, const HeadTraits& kind) {
  FT_RETURN_IF_ERROR(check_known(fields));
  const Json* type = fields.find("speculators_model_type");
  if (type != nullptr && *type != kind.speculator) {
    return invalid_argument(fields.where() + ": the head is made for method " + type->dump() +
                            ", not for \"" + kind.method + "\"; change 'method'");
  }
  std::vector<const char*> refused = {"layernorms"};
  for (const char* name : {"parallel_drafting", "pard_token", "ptd_token_id"}) {
    const Json* value = fields.find(name);
    if (kind.learns_masks || value == nullptr || *value == false) continue;
    return unsupported(fields.where() + ": heads with '" + name + "' are not supported by method " +
                       kind.method + "; use a head without it" + or_one_with_masks(kind));
  }
  if (!kind.of_target) refused.insert(refused.end(), {"kv_lora_rank", "n_routed_experts"});
  if (!kind.pairs_taps()) {
    refused.insert(refused.end(), {"fc_norm", "norm_output", "norm_before_fc"});
  }
  for (const char* name : refused) {
    const Json* value = fields.find(name);
    if (value == nullptr || *value == false) continue;
    return unsupported(fields.where() + ": heads with '" + name +
                       "' are not supported; use a head without it");
  }
  return {};
}

Status check_size(const ConfigFields& fields, const char* name, int32_t own, int32_t of_target) {
  if (own == of_target) return {};
  return invalid_argument(fields.where() + ": " + name + " " + std::to_string(own) +
                          " of the head is not the target's " + std::to_string(of_target) +
                          "; use a head that was trained for this target");
}

Status check_sizes(const ConfigFields& fields, const ModelConfig& target,
                   const DraftHeadConfig& head) {
  FT_RETURN_IF_ERROR(check_size(fields, "vocab_size", head.layer.vocab_size, target.own_ids()));
  if (!head.traits().pairs_taps()) {
    return check_size(fields, "hidden_size", head.layer.hidden_size, target.hidden_size);
  }
  int32_t target_hidden = target.hidden_size;
  FT_RETURN_IF_ERROR(fields.read_count("target_hidden_size", &target_hidden));
  return check_size(fields, "target_hidden_size", target_hidden, target.hidden_size);
}

Status read_taps(const ConfigFields& fields, const ModelConfig& target, std::vector<int32_t>* out) {
  constexpr const char* kName = "eagle_aux_hidden_state_layer_ids";
  const Json* ids = fields.find(kName);
  const Json* nested = fields.find("eagle_config");
  if (nested != nullptr) {
    if (!nested->is_object()) return fields.wrong("eagle_config", "an object");
    const ConfigFields eagle = fields.of(*nested, "eagle_config");
    bool use_taps = true;
    FT_RETURN_IF_ERROR(eagle.read_flag("use_aux_hidden_state", &use_taps));
    if (!use_taps) {
      *out = {TapSink::kFinalNorm};
      return {};
    }
    if (eagle.find(kName) != nullptr) ids = eagle.find(kName);
  }
  const int32_t n = target.num_layers;
  const Json wanted = ids != nullptr ? *ids : Json{2, n / 2, n - 3};
  if (!wanted.is_array() || wanted.empty() || wanted.size() > 16) {
    return invalid_argument(fields.where() + ": '" + kName + "' is " + wanted.dump().substr(0, 80) +
                            ", but must be a list of layer numbers; correct the file");
  }
  for (const Json& id : wanted) {
    if (ids != nullptr && id == n && !target.hyper.exist()) {
      out->push_back(TapSink::kLastLayer);
      continue;
    }
    if (!id.is_number_integer() || id < 0 || id >= n) {
      return invalid_argument(
          fields.where() + ": " + (ids != nullptr ? "by '" : "without '") + kName +
          "' the head reads "
          "layer " +
          id.dump().substr(0, 80) + ", but the target has " + std::to_string(n) +
          " layers; use a head that was trained for this target or set the numbers");
    }
    out->push_back(id.get<int32_t>());
  }
  return {};
}

// How many drafts speculators' files propose: what is none of theirs proposes nothing.
int32_t proposed_drafts(const ConfigFields& fields) {
  const Json* own = fields.find("speculators_config");
  if (own == nullptr || !own->is_object()) return 0;
  const Json methods = own->value("proposal_methods", Json());
  if (!methods.is_array() || methods.empty() || !methods[0].is_object()) return 0;
  const Json count = methods[0].value("speculative_tokens", Json());
  return count.is_number_unsigned() && count <= 1000 ? count.get<int32_t>() : 0;
}

Status read_eagle3(const ConfigFields& fields, const ModelConfig& target, DraftHeadConfig* head) {
  head->proposed_drafts = proposed_drafts(fields);
  FT_RETURN_IF_ERROR(read_taps(fields, target, &head->tap_layers));
  if (head->reads_final_state()) {
    FT_RETURN_IF_ERROR(
        check_size(fields, "hidden_size", head->layer.hidden_size, target.hidden_size));
  }
  head->draft_vocab_size = head->layer.vocab_size;
  FT_RETURN_IF_ERROR(fields.read_count("draft_vocab_size", &head->draft_vocab_size));
  if (head->draft_vocab_size > head->layer.vocab_size) {
    return fields.wrong("draft_vocab_size",
                        "at most vocab_size " + std::to_string(head->layer.vocab_size));
  }
  FT_RETURN_IF_ERROR(fields.read_flag("norm_before_residual", &head->norm_before_residual));
  FT_RETURN_IF_ERROR(fields.read_flag("fc_norm", &head->fc_norm));
  FT_RETURN_IF_ERROR(fields.read_flag("norm_before_fc", &head->norm_before_fc));
  FT_RETURN_IF_ERROR(fields.read_flag("norm_output", &head->norm_output));
  if (!head->fc_norm || !head->norm_before_fc) return {};
  return invalid_argument(fields.where() +
                          ": 'fc_norm' and 'norm_before_fc' are both set, and the taps are normed "
                          "in one way only; remove the one that the head was trained without");
}

// Lists with an entry for each layer end with the target's; for the modules behind them they go on
// as they end.
void continue_lists(int32_t num_layers, int32_t num_modules, Json* json) {
  for (const char* name :
       {"layer_types", "mlp_layer_types", "moe_layer_freq", "no_rope_layers", "indexer_types"}) {
    const auto list = json->find(name);
    if (list == json->end() || !list->is_array()) continue;
    if (list->size() != static_cast<size_t>(num_layers)) continue;
    for (int32_t i = 0; i < num_modules; ++i) list->push_back(list->back());
  }
  const auto pattern = json->find("index_topk_pattern");
  if (pattern != json->end() && pattern->is_string()) {
    *pattern = pattern->get<std::string>() + std::string(static_cast<size_t>(num_modules), 'F');
  }
  (*json)["num_hidden_layers"] = num_layers + num_modules;
}

// Those of modules with a layer of their own: as the first of the target's that sees as they do.
Result<std::vector<LayerConfig>> own_module_layers(const std::string& where,
                                                   const DraftHeadConfig& head) {
  for (LayerConfig layer : head.layer.layers) {
    if ((layer.window > 0) != head.mtp.windowed) continue;
    layer.experts = layer.recurrent = false;
    return std::vector<LayerConfig>(static_cast<size_t>(head.num_modules), layer);
  }
  return internal_error(where + ": no layer of the model sees as its MTP modules do");
}

// The modules' layers: each is a mixture of experts or dense as the pattern of the files says about
// the layer of its number, behind the target's; all see all positions.
Result<std::vector<LayerConfig>> module_layers(const Json& file, const ConfigOptions& options,
                                               const std::string& where,
                                               const DraftHeadConfig& head) {
  if (head.mtp.layer != nullptr) return own_module_layers(where, head);
  std::vector<LayerConfig> modules(static_cast<size_t>(head.num_modules));
  if (head.layer.experts.count == 0) return modules;
  Json longer = file;
  ConfigOptions without_overrides = options;
  if (!options.hf_overrides.empty()) {
    FT_ASSIGN_OR_RETURN(const Json overrides,
                        parse_python_json_object(options.hf_overrides, "--hf-overrides"));
    longer.update(overrides, true);
  }
  without_overrides.hf_overrides.clear();
  continue_lists(head.layer.num_layers, head.num_modules, &longer);
  const auto text = longer.find("text_config");
  if (text != longer.end() && text->is_object()) {
    continue_lists(head.layer.num_layers, head.num_modules, &*text);
  }
  FT_ASSIGN_OR_RETURN(const ModelConfig all,
                      parse_model_config(longer, Json::object(), without_overrides, where));
  for (size_t i = 0; i < modules.size(); ++i) {
    modules[i].experts = all.layers.at(static_cast<size_t>(head.layer.num_layers) + i).experts;
  }
  return modules;
}

// Layers of EAGLE heads differ in windows alone.
void keep_windows(size_t num_layers, std::vector<LayerConfig>* layers) {
  layers->resize(num_layers);
  for (LayerConfig& layer : *layers) layer = LayerConfig{.window = layer.window};
}

// Some EAGLE heads repeat the target's number of layers, where the tensors tell that there is one.
int32_t num_eagle_layers(const std::string& folder, const DraftHeadConfig& head,
                         const ModelConfig& target) {
  const int32_t given = head.layer.num_layers;
  if (given == 1 || given != target.num_layers || head.traits().counts_layers) return given;
  const Result<Checkpoint> files = Checkpoint::open(folder);
  if (!files.ok()) return 1;
  for (const auto& [name, tensor] : files.value().tensors()) {
    if (name.starts_with("layers.1.") || name.starts_with("model.layers.1.")) return given;
  }
  return 1;
}

// Modules with numbers of their own are counted where config.json says nothing of them.
int32_t num_counted_modules(const std::string& folder, const MtpForm& form) {
  if (form.count == 0) return 0;
  const Result<Checkpoint> files = Checkpoint::open(folder);
  if (!files.ok()) return form.count;
  int32_t found = 0;
  const auto& tensors = files.value().tensors();
  const auto has = [&](const std::string& base) {
    const auto at = tensors.lower_bound(base);
    return at != tensors.end() && at->first.starts_with(base);
  };
  for (;; ++found) {
    const std::string base = form.layers + std::to_string(found) + ".";
    if (!has(base) && !has("model." + base)) return found;
  }
}

Status read_mtp(const std::string& folder, const ConfigFields& fields, const ModelConfig& target,
                DraftHeadConfig* head) {
  head->mtp = find_architecture(head->layer.architecture)->mtp;
  Combination c;
  add_model(head->layer, 0, 0, &c);
  c.files = fields.where();
  c.drafts_by_modules = true;
  FT_RETURN_IF_ERROR(compat(c));
  if (!head->mtp.in_streams) head->layer.hyper = {};
  if (head->layer.hyper.exist()) head->tap_layers = {TapSink::kStreams};
  if (head->layer.num_mtp_modules == 0) {
    head->layer.num_mtp_modules = num_counted_modules(folder, head->mtp);
  }
  if (head->layer.num_mtp_modules == 0) {
    return invalid_argument(fields.where() +
                            ": 'num_nextn_predict_layers' is missing or 0, so that the files hold "
                            "no MTP module; set 'model' to a folder with one or change 'method'");
  }
  head->num_modules = head->layer.num_mtp_modules;
  head->first_layer = head->mtp.counts_on ? head->layer.num_layers : 0;
  return check_size(fields, "num_hidden_layers", head->layer.num_layers, target.num_layers);
}

}  // namespace

bool DraftHeadConfig::reads_final_state() const {
  return traits().pairs_taps() && tap_layers == std::vector<int32_t>{TapSink::kFinalNorm};
}

Result<DraftHeadConfig> read_draft_head_config(const std::string& folder, HeadKind kind,
                                               const ModelConfig& target,
                                               const ConfigOptions& options) {
  const ModelFiles files(folder);
  const std::string where =
      files.is_gguf() ? folder : (std::filesystem::path(folder) / "config.json").string();
  if (!has_model_text(files, "config.json")) {
    return not_found("no config.json in the folder of the draft head, " + folder +
                     "; set 'model' to a folder with config.json and model.safetensors");
  }
  FT_ASSIGN_OR_RETURN(const Json file, read_model_json(files, "config.json"));
  const HeadTraits& traits = head_traits(kind);
  // Modules may be the target's.
  const ConfigFields fields(file, where, traits.of_target);
  FT_RETURN_IF_ERROR(check_variant(fields, traits));
  FT_ASSIGN_OR_RETURN(const Json layer, layer_fields(file, traits, target, fields));
  ConfigOptions layer_options = options;
  layer_options.dtype = "auto";
  layer_options.is_drafters = !traits.of_target;
  DraftHeadConfig head;
  head.kind = kind;
  FT_ASSIGN_OR_RETURN(head.layer, parse_model_config(layer, Json::object(), layer_options, where));
  head.layer.dtype = target.dtype;
  FT_RETURN_IF_ERROR(check_sizes(fields, target, head));
  if (traits.drafts_blocks()) {
    FT_RETURN_IF_ERROR(read_block_fields(file, fields, target, &head));
    head.num_modules = head.layer.num_layers;
    return head;
  }
  if (traits.pairs_taps()) {
    FT_RETURN_IF_ERROR(read_eagle3(fields, target, &head));
  } else {
    head.tap_layers = {TapSink::kFinalNorm};
  }
  if (traits.learns_masks) FT_RETURN_IF_ERROR(read_peagle_fields(folder, fields, &head));
  if (traits.of_target) {
    FT_RETURN_IF_ERROR(read_mtp(folder, fields, target, &head));
    FT_ASSIGN_OR_RETURN(head.layer.layers, module_layers(layer, layer_options, where, head));
    head.layer.num_layers = head.num_modules;
    return head;
  }
  head.num_layers = num_eagle_layers(folder, head, target);
  keep_windows(static_cast<size_t>(head.num_layers), &head.layer.layers);
  head.layer.num_layers = head.num_layers;
  return head;
}

}  // namespace foretoken
