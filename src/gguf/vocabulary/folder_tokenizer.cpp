#include "gguf/vocabulary/folder_tokenizer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/files/text_file.h"
#include "gguf/vocabulary/merges_tokenizer.h"
#include "gguf/vocabulary/ranked_tokenizer.h"
#include "gguf/vocabulary/scored_tokenizer.h"
#include "gguf/vocabulary/sentencepiece_file.h"
#include "gguf/vocabulary/sentencepiece_tokenizer.h"
#include "gguf/vocabulary/tekken_tokenizer.h"
#include "gguf/vocabulary/tokenizer_settings.h"
#include "gguf/vocabulary/world_tokenizer.h"

namespace foretoken {

namespace fs = std::filesystem;

namespace {

constexpr const char* kVocabulary = "vocab.json";
constexpr const char* kMerges = "merges.txt";

// Names of one kind of file each, in the order in which they are looked for.
constexpr const char* kNames[] = {
    "tekken.json",        "tokenizer.model",         "spiece.model",
    "tiktoken.model",     "sentencepiece.bpe.model", "tokenizer.model.v3",
    kWorldVocabulary,     kScoredVocabulary,         "tokenizer.model.v7",
    "tokenizer.model.v2", "tokenizer.model.v1",      "spm.model"};

bool has_file(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored);
}

Result<MadeTokenizer> tiktoken_tokenizer(const fs::path& file, const std::string& bytes,
                                         const TokenizerSettings& settings) {
  FT_ASSIGN_OR_RETURN(const std::vector<std::string> tokens,
                      parse_tiktoken_file(bytes, file.string()));
  FT_ASSIGN_OR_RETURN(
      const RankedForm form,
      find_ranked_form(tokens.size(), file.filename().string(), settings, file.string()));
  return ranked_tokenizer(tokens, form, settings);
}

Result<MadeTokenizer> made_of(const fs::path& file, const TokenizerSettings& settings) {
  const std::string where = file.string(), name = file.filename().string();
  FT_ASSIGN_OR_RETURN(const std::string bytes, read_text_file(file));
  if (name == "tekken.json") return tekken_tokenizer(bytes, settings, where);
  if (name == kWorldVocabulary) {
    FT_ASSIGN_OR_RETURN(const WorldTokens tokens, parse_world_file(bytes, where));
    return world_tokenizer(tokens, settings.role("bos_token", kWorldEnd), settings);
  }
  if (name == kScoredVocabulary) return scored_tokenizer(bytes, settings, where);
  if (name == kVocabulary) {
    FT_ASSIGN_OR_RETURN(const std::string merges, read_text_file(file.parent_path() / kMerges));
    return merges_tokenizer(bytes, merges, settings, file.parent_path().string());
  }
  if (is_tiktoken_file(bytes)) return tiktoken_tokenizer(file, bytes, settings);
  if (!is_sentencepiece_file(bytes)) {
    return invalid_argument(where +
                            " is neither a SentencePiece model nor a tiktoken vocabulary; the file "
                            "is damaged or incomplete, fetch it again");
  }
  FT_ASSIGN_OR_RETURN(const SentencePieceModel model, parse_sentencepiece_file(bytes, where));
  return sentencepiece_tokenizer(model, settings, where);
}

}  // namespace

bool is_vocabulary_file(const std::string& name) {
  return std::ranges::find(kNames, name) != std::end(kNames) || name == kVocabulary ||
         name == kMerges || fs::path(name).extension() == ".tiktoken";
}

std::string folder_vocabulary(const fs::path& folder) {
  for (const char* name : kNames) {
    if (has_file(folder / name)) return name;
  }
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".tiktoken") found.push_back(entry.path().filename().string());
  }
  if (!found.empty()) return *std::min_element(found.begin(), found.end());
  return has_file(folder / kVocabulary) && has_file(folder / kMerges) ? kVocabulary : "";
}

Result<std::optional<MadeTokenizer>> folder_tokenizer(const fs::path& folder) {
  const std::string name = folder_vocabulary(folder);
  if (name.empty()) return std::optional<MadeTokenizer>();
  FT_ASSIGN_OR_RETURN(const TokenizerSettings settings, read_tokenizer_settings(folder));
  FT_ASSIGN_OR_RETURN(MadeTokenizer made, made_of(folder / name, settings));
  return std::optional(std::move(made));
}

}  // namespace foretoken
