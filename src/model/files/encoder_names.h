#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace foretoken {

// What stands before all names of an encoder (BERT, ModernBERT, GTE, ...) where this is the table
// of its words: "bert." of "bert.embeddings.word_embeddings.weight".
std::optional<std::string> encoder_base(const std::string& name);

// A name of an encoder whose tensors begin with `base`, as decoders of transformers have it:
// "model.layers.0.self_attn.q_proj.weight". Heads keep theirs; empty for buffers, which follow from
// the config, and for adapters of tasks, which are not applied.
std::string name_without_encoder(const std::string& base, const std::string& name);

// Whether texts of a pair are of two kinds, which the second half of a table of words with twice
// the rows tells: of classes that judge pairs (BertForSequenceClassification).
bool tells_kinds(const nlohmann::json& config);

// Where the rows that tell the first text of a pair from the second one stand, behind such a base.
inline constexpr const char* kTokenTypes = "embeddings.token_type_embeddings.weight";
// The same of tasks, of which all texts are of the first (ERNIE).
inline constexpr const char* kTaskTypes = "embeddings.task_type_embeddings.weight";

}  // namespace foretoken
