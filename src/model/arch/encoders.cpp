#include "model/arch/encoders.h"

#include <nlohmann/json.hpp>
#include <string>

#include "model/files/encoder_names.h"

namespace foretoken {

LayerSpec summed_layer(const MixerSpec& attention, const FeedForwardSpec& feed_forward) {
  LayerSpec spec = post_norm_layer(attention, feed_forward);
  spec.mixer_post_norm = "self_attn_layer_norm";
  spec.feed_forward_post_norm = "final_layer_norm";
  spec.norms_sums = true;
  return spec;
}

Status not_built(const ConfigFields& fields, const char* name, const std::string& instead) {
  return unsupported(fields.where() + ": " + name + " " + fields.find(name)->dump().substr(0, 80) +
                     " is not supported; use a model with " + instead);
}

void see_whole_texts(nlohmann::json* json) {
  (*json)["tie_word_embeddings"] = true;
  (*json)["is_causal"] = false;
}

namespace {

using Json = nlohmann::json;

LayerSpec bert_layer(const ModelConfig& config, const LayerConfig& layer) {
  return summed_layer(gqa_of(config, layer), plain_mlp_of(config, layer));
}

Status translate_bert(const ConfigFields& fields, Json* json) {
  const Json* positions = fields.find("position_embedding_type");
  if (positions != nullptr && *positions != "absolute") {
    return not_built(fields, "position_embedding_type", "absolute positions");
  }
  for (const char* name : {"attention_bias", "mlp_bias", "tie_word_embeddings"}) {
    (*json)[name] = true;
  }
  (*json)["is_causal"] = false;
  if (!tells_kinds(*json)) return {};
  int32_t words = 0;
  FT_RETURN_IF_ERROR(fields.need_count("vocab_size", &words));
  (*json)["second_text_ids"] = words;
  (*json)["vocab_size"] = 2 * words;
  return {};
}

}  // namespace

Status translate_roberta(const ConfigFields& fields, nlohmann::json* json) {
  FT_RETURN_IF_ERROR(translate_bert(fields, json));
  int32_t rows = 0;
  FT_RETURN_IF_ERROR(fields.need_count("max_position_embeddings", &rows));
  const Json* padding = fields.find("pad_token_id");
  const bool is_id = padding != nullptr && padding->is_number_integer();
  const int64_t first = is_id && *padding < rows ? padding->get<int64_t>() + 1 : 0;
  if (first < 1 || first >= rows) {
    return fields.wrong("pad_token_id", "an id below max_position_embeddings - 1");
  }
  (*json)["first_position_row"] = first;
  (*json)["max_position_embeddings"] = rows - first;
  return {};
}

Status read_placed(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_count_or_none("first_position_row", &config->first_position_row));
  FT_RETURN_IF_ERROR(fields.read_count_or_none("second_text_ids", &config->second_text_ids));
  config->learned_positions = config->max_position_embeddings + config->first_position_row;
  config->last_norm = false;
  for (LayerConfig& layer : config->layers) layer.rope = false;
  return {};
}

namespace {

Status translate_distilbert(const ConfigFields& fields, Json* json) {
  constexpr RenamedField kNames[] = {{"dim", "hidden_size"},
                                     {"n_layers", "num_hidden_layers"},
                                     {"n_heads", "num_attention_heads"},
                                     {"hidden_dim", "intermediate_size"},
                                     {"activation", "hidden_act"}};
  take_renamed(fields, kNames, json);
  return translate_bert(fields, json);
}

// Of a table whose rows are made as wide as the layers.
Status read_narrow(const ConfigFields& fields, ModelConfig* config) {
  FT_RETURN_IF_ERROR(fields.read_count("embedding_size", &config->embedding_size));
  if (config->embedding_size == config->hidden_size) config->embedding_size = 0;
  if (config->embedding_size > config->hidden_size) {
    return fields.wrong("embedding_size", "at most hidden_size");
  }
  return read_placed(fields, config);
}

// The layers stand once in the files and run one behind the other.
Status translate_albert(const ConfigFields& fields, Json* json) {
  const Json* groups = fields.find("num_hidden_groups");
  if (groups != nullptr && *groups != 1) {
    return not_built(fields, "num_hidden_groups", "one group of layers");
  }
  int32_t stored = 1, loops = 0;
  FT_RETURN_IF_ERROR(fields.read_count("inner_group_num", &stored));
  FT_RETURN_IF_ERROR(fields.need_count("num_hidden_layers", &loops));
  if (int64_t{stored} * loops > 1 << 16) return fields.wrong("num_hidden_layers", "at most 2^16");
  (*json)["num_hidden_layers"] = stored;
  (*json)["layer_loops"] = loops;
  return translate_bert(fields, json);
}

Status read_albert(const ConfigFields& fields, ModelConfig* config) {
  int32_t loops = 1;
  FT_RETURN_IF_ERROR(fields.read_count("layer_loops", &loops));
  FT_RETURN_IF_ERROR(read_narrow(fields, config));
  config->repeat_layers(loops, false);
  return {};
}

Status translate_bidirectional(const ConfigFields&, Json* json) {
  see_whole_texts(json);
  return {};
}

constexpr const char* kBertDefaults =
    R"({"vocab_size": 30522, "hidden_size": 768, "intermediate_size": 3072,
        "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 512,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12})";
constexpr const char* kRobertaDefaults =
    R"({"vocab_size": 50265, "hidden_size": 768, "intermediate_size": 3072,
        "num_hidden_layers": 12, "num_attention_heads": 12, "max_position_embeddings": 512,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 1})";

constexpr Architecture roberta(const char* name, const char* description) {
  return {.name = name,
          .description = description,
          .defaults = kRobertaDefaults,
          .decoder = encoder(bert_layer),
          .translate = translate_roberta,
          .read = read_placed};
}

constexpr Architecture both_ways(const char* name, const char* description) {
  return {.name = name, .description = description, .translate = translate_bidirectional};
}

}  // namespace

// Devlin et al. 2018.
constinit const Architecture kBertArchitecture = {
    .name = "BertModel",
    .description = "BERT: MiniLM, BGE, E5, GTE and others that embed",
    .defaults = kBertDefaults,
    .decoder = encoder(bert_layer),
    .translate = translate_bert,
    .read = read_placed,
};

// Sanh et al. 2019.
constinit const Architecture kDistilBertArchitecture = {
    .name = "DistilBertModel",
    .description = "DistilBERT, to embed",
    .defaults = R"({"vocab_size": 30522, "dim": 768, "hidden_dim": 3072, "n_layers": 6,
                    "n_heads": 12, "max_position_embeddings": 512, "activation": "gelu",
                    "layer_norm_eps": 1e-12})",
    .decoder = encoder(bert_layer),
    .translate = translate_distilbert,
    .read = read_placed,
};

// Sun et al. 2019.
constinit const Architecture kErnieArchitecture = {
    .name = "ErnieModel",
    .description = "ERNIE 2 and 3, to embed or judge",
    .defaults = kBertDefaults,
    .decoder = encoder(bert_layer),
    .translate = translate_bert,
    .read = read_placed,
};

// Clark et al. 2020.
constinit const Architecture kElectraArchitecture = {
    .name = "ElectraModel",
    .description = "ELECTRA, to embed or judge",
    .defaults = R"({"vocab_size": 30522, "embedding_size": 128, "hidden_size": 256,
                    "intermediate_size": 1024, "num_hidden_layers": 12,
                    "num_attention_heads": 4, "max_position_embeddings": 512,
                    "hidden_act": "gelu", "layer_norm_eps": 1e-12})",
    .decoder = encoder(bert_layer),
    .translate = translate_bert,
    .read = read_narrow,
};

// Lan et al. 2019.
constinit const Architecture kAlbertArchitecture = {
    .name = "AlbertModel",
    .description = "ALBERT, to embed or judge",
    .defaults = R"({"vocab_size": 30000, "embedding_size": 128, "hidden_size": 4096,
                    "intermediate_size": 16384, "num_hidden_layers": 12,
                    "num_attention_heads": 64, "max_position_embeddings": 512,
                    "hidden_act": "gelu_new", "layer_norm_eps": 1e-12})",
    .decoder = encoder(bert_layer),
    .translate = translate_albert,
    .read = read_albert,
};

// Liu et al. 2019, Conneau et al. 2019.
constinit const Architecture kRobertaArchitecture = roberta("RobertaModel", "RoBERTa, to embed");
constinit const Architecture kXlmRobertaArchitecture =
    roberta("XLMRobertaModel", "XLM-RoBERTa: BGE M3, multilingual E5 and others that embed");
constinit const Architecture kCamembertArchitecture =
    roberta("CamembertModel", "CamemBERT, to embed");

// Llama's layers whose rows see the whole text: Boizard et al. 2025, and NVIDIA's models.
constinit const Architecture kEuroBertArchitecture =
    both_ways("EuroBertModel", "EuroBERT, to embed");
constinit const Architecture kLlamaBidirectionalArchitecture =
    both_ways("LlamaBidirectionalModel", "Llama Nemotron Embed");

}  // namespace foretoken
