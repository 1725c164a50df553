#include "gguf/hf_tokenizer.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/nearest_name.h"
#include "gguf/vocabulary/encoder_tokenizer.h"
#include "gguf/vocabulary/file_vocabulary.h"
#include "gguf/vocabulary/piece_merges.h"
#include "gguf/vocabulary/pre_tokenizer.h"
#include "gguf/vocabulary/tokenizer_build.h"
#include "gguf/vocabulary/world_tokenizer.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kSpace = "\u2581";
// A pre-tokenizer (Sarvam's) by which a vocabulary is not of bytes but of pieces, whose merges are
// listed.
constexpr const char* kOfPieces = "sarvam-moe";

Result<const PreTokenizer*> pre_tokenizer(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto name, file.text("tokenizer.ggml.pre"));
  const PreTokenizer* pre = find_pre_tokenizer(name.value_or("default"));
  if (pre != nullptr) return pre;
  // Names differ by little (qwen2, qwen35), and the ids of another one would be wrong in silence.
  return unsupported(file.path() + ": the pre-tokenizer '" + *name +
                     "' (tokenizer.ggml.pre) is not known" +
                     nearest_name_hint(*name, pre_tokenizer_names(), ";", 2) +
                     " load the model from its folder (config.json, *.safetensors and "
                     "tokenizer.json) instead of this file");
}

// Puts the tokens around a text that the model expects there.
Result<Json> post_processor(const GgufFile& file, const GgufVocabulary& vocabulary, bool adds_bos) {
  FT_ASSIGN_OR_RETURN(const auto bos_flag, file.flag("tokenizer.ggml.add_bos_token"));
  FT_ASSIGN_OR_RETURN(const auto eos_flag, file.flag("tokenizer.ggml.add_eos_token"));
  TokenNames before, after;
  const auto add = [&](const char* key, TokenNames* to) -> Status {
    FT_ASSIGN_OR_RETURN(std::string token, gguf_token(file, vocabulary, key));
    FT_ASSIGN_OR_RETURN(const auto id, file.integer(key));
    if (!token.empty()) to->emplace_back(std::move(token), *id);
    return {};
  };
  if (bos_flag.value_or(adds_bos)) {
    FT_RETURN_IF_ERROR(add("tokenizer.ggml.bos_token_id", &before));
  }
  if (eos_flag.value_or(false)) FT_RETURN_IF_ERROR(add("tokenizer.ggml.eos_token_id", &after));
  return around_text_json(before, after);
}

Result<Json> byte_level_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary) {
  FT_ASSIGN_OR_RETURN(const PreTokenizer* pre, pre_tokenizer(file));
  FT_ASSIGN_OR_RETURN(const auto* merges, file.texts("tokenizer.ggml.merges"));
  if (merges == nullptr) {
    return file.error("it holds no merges (tokenizer.ggml.merges); convert the model again");
  }
  Json model = bpe_model_json(gguf_token_ids(vocabulary), *merges);
  model["ignore_merges"] = pre->ignores_merges;
  FT_ASSIGN_OR_RETURN(Json post, post_processor(file, vocabulary, pre->adds_bos));
  return Json{{"version", "1.0"},
              {"added_tokens", gguf_added_tokens(vocabulary)},
              {"normalizer", normalizer_json(*pre)},
              {"pre_tokenizer", pre_tokenizer_json(*pre)},
              {"post_processor", post.is_null() ? byte_level_step(true) : std::move(post)},
              {"decoder", byte_level_step(true)},
              {"model", std::move(model)}};
}

Json replace(const char* from, const char* to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

// Merges of pieces of text: the ones that a file lists, or those that scores mean.
Result<Json> merges_of_pieces(const GgufFile& file, const GgufVocabulary& vocabulary,
                              bool are_listed) {
  if (are_listed) {
    FT_ASSIGN_OR_RETURN(const auto* merges, file.texts("tokenizer.ggml.merges"));
    if (merges != nullptr) return Json(*merges);
    return file.error("it holds no merges (tokenizer.ggml.merges); convert the model again");
  }
  FT_ASSIGN_OR_RETURN(const std::vector<double> scores, file.numbers("tokenizer.ggml.scores"));
  if (scores.size() == vocabulary.tokens.size()) return piece_merges(vocabulary.tokens, scores);
  return file.error("tokenizer.ggml.scores has " + std::to_string(scores.size()) + " entries for " +
                    std::to_string(vocabulary.tokens.size()) + " tokens; convert the model again");
}

Result<Json> piece_tokenizer(const GgufFile& file, const GgufVocabulary& vocabulary,
                             bool lists_merges) {
  FT_ASSIGN_OR_RETURN(Json merges, merges_of_pieces(file, vocabulary, lists_merges));
  FT_ASSIGN_OR_RETURN(const auto space, file.flag("tokenizer.ggml.add_space_prefix"));
  FT_ASSIGN_OR_RETURN(const std::string unknown,
                      gguf_token(file, vocabulary, "tokenizer.ggml.unknown_token_id"));
  FT_ASSIGN_OR_RETURN(Json post, post_processor(file, vocabulary, true));
  Json model = bpe_model_json(gguf_token_ids(vocabulary), std::move(merges));
  model["byte_fallback"] = true;
  model["fuse_unk"] = true;
  if (!unknown.empty()) model["unk_token"] = unknown;
  Json normalizers = Json::array();
  const bool begins_with_space = space.value_or(!lists_merges);
  if (begins_with_space) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back(replace(" ", kSpace));
  Json decoders =
      Json::array({replace(kSpace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (begins_with_space) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return Json{{"version", "1.0"},
              {"added_tokens", gguf_added_tokens(vocabulary)},
              {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
              {"pre_tokenizer", nullptr},
              {"post_processor", std::move(post)},
              {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
              {"model", std::move(model)}};
}

// One template, or a list of {"name", "template"} where there are others beside it.
Result<Json> chat_templates(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto source, file.text("tokenizer.chat_template"));
  std::set<std::string> names = {"tool_use", "rag"};
  FT_ASSIGN_OR_RETURN(const auto* listed, file.texts("tokenizer.chat_templates"));
  if (listed != nullptr) names.insert(listed->begin(), listed->end());
  Json named = Json::array();
  names.erase("rerank");  // no template of chats
  for (const std::string& name : names) {
    FT_ASSIGN_OR_RETURN(const auto other, file.text("tokenizer.chat_template." + name));
    if (other) named.push_back({{"name", name}, {"template", *other}});
  }
  if (named.empty() && source == "rwkv-world") return Json(kWorldTemplate);
  if (named.empty()) return source ? Json(*source) : Json();
  if (source) named.push_back({{"name", "default"}, {"template", *source}});
  return named;
}

}  // namespace

Result<Json> gguf_tokenizer(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const auto kind, file.text("tokenizer.ggml.model"));
  FT_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary, read_gguf_vocabulary(file));
  FT_ASSIGN_OR_RETURN(const auto pre, file.text("tokenizer.ggml.pre"));
  if (kind == "gpt2" && pre == kOfPieces) return piece_tokenizer(file, vocabulary, true);
  if (kind == "gpt2") return byte_level_tokenizer(file, vocabulary);
  if (kind == "llama") return piece_tokenizer(file, vocabulary, false);
  if (kind == "gemma4") return piece_tokenizer(file, vocabulary, true);
  if (kind == "bert") return wordpiece_tokenizer(file, vocabulary);
  if (kind == "t5") return unigram_tokenizer(file, vocabulary);
  if (kind == "rwkv") {
    FT_ASSIGN_OR_RETURN(const WorldTokens tokens, gguf_world_tokens(vocabulary, file.path()));
    return world_tokenizer(tokens, vocabulary.tokens.front(), {}).tokenizer;
  }
  return unsupported(file.path() + ": tokenizers of the kind '" + kind.value_or("") +
                     "' are not read; gpt2, llama, gemma4, bert, t5 and rwkv are");
}

Result<Json> gguf_tokenizer_config(const GgufFile& file) {
  FT_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary, read_gguf_vocabulary(file));
  Json config = Json::object();
  for (const auto& [key, name] :
       {std::pair("bos", "bos_token"), std::pair("eos", "eos_token"),
        std::pair("unknown", "unk_token"), std::pair("padding", "pad_token")}) {
    FT_ASSIGN_OR_RETURN(
        const std::string token,
        gguf_token(file, vocabulary, "tokenizer.ggml." + std::string(key) + "_token_id"));
    if (!token.empty()) config[name] = token;
  }
  FT_ASSIGN_OR_RETURN(Json templates, chat_templates(file));
  if (!templates.is_null()) config["chat_template"] = std::move(templates);
  return config;
}

}  // namespace foretoken
