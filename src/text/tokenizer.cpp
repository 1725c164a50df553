#include "text/tokenizer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "gguf/model_texts.h"
#include "gguf/vocabulary/folder_tokenizer.h"
#include "text/crate_buffers.h"
#include "text/grammar.h"
#include "text/longest_tokens.h"
#include "text/token_table.h"
#include "text/tokenizer_config.h"

namespace foretoken {
namespace {

struct CrateTokenizerDeleter {
  void operator()(FtTokenizer* tokenizer) const { ft_tokenizer_free(tokenizer); }
};
using CrateTokenizer = std::unique_ptr<FtTokenizer, CrateTokenizerDeleter>;

// Whether words are bytes that nothing cuts before they are looked up, which no vocabulary of words
// has but one whose longest token is taken each time.
bool takes_longest(const std::string& source) {
  if (source.find("\"WordLevel\"") == std::string::npos) return false;
  const auto parsed = nlohmann::json::parse(source, nullptr, /*allow_exceptions=*/false);
  const auto type_of = [&](const char* part) {
    const bool has_type = parsed.is_object() && parsed.contains(part) && parsed[part].is_object();
    return has_type ? parsed[part].value("type", nlohmann::json()) : nlohmann::json();
  };
  return type_of("model") == "WordLevel" && type_of("pre_tokenizer") == "ByteLevel" &&
         type_of("decoder") == "ByteLevel";
}

// The vocabulary of takes_longest, and the tokens that were added to it.
struct LongestVocabulary {
  LongestTokens words;
  LongestTokens added;  // none where these are no tokens in a text
};

class HfTokenizer final : public Tokenizer {
 public:
  HfTokenizer(CrateTokenizer crate, const TokenizerConfig& config)
      : crate_(std::move(crate)),
        joined_bytes_(read_joined_bytes()),
        bos_id_(find_role(config, "bos_token")),
        eos_id_(find_role(config, "eos_token")) {}

  Result<std::vector<int32_t>> encode(std::string_view text,
                                      bool add_special_tokens) const override {
    if (longest_ != nullptr) return encode_longest(text);
    CrateIds ids;
    CrateText error;
    if (ft_tokenizer_encode(crate_.get(), text.data(), text.size(), add_special_tokens, ids.out(),
                            error.out()) != FT_TEXT_OK) {
      return invalid_argument("the text cannot be tokenized: " + error.str());
    }
    return ids.vector();
  }

  Result<std::string> decode(std::span<const int32_t> ids,
                             bool skip_special_tokens) const override {
    for (const int32_t id : ids) {
      if (id < 0) return invalid_argument("token id " + std::to_string(id) + " is negative");
    }
    CrateText text;
    CrateText error;
    // Signed and unsigned integers of one width may alias.
    const auto* data = reinterpret_cast<const uint32_t*>(ids.data());
    if (ft_tokenizer_decode(crate_.get(), data, ids.size(), skip_special_tokens, text.out(),
                            error.out()) != FT_TEXT_OK) {
      return internal_error("the token ids cannot be decoded: " + error.str());
    }
    return text.str();
  }

  // From here on texts are cut by the longest tokens. `splits_added`: added ones are none.
  // InvalidArgument where a byte has no token.
  Status take_longest(bool splits_added) {
    longest_ = std::make_unique<LongestVocabulary>();
    for (int32_t id = 0; id < vocab_size(); ++id) {
      const std::optional<std::string> bytes = token_bytes(id);
      if (!bytes || bytes->empty() || (is_added(id) && splits_added)) continue;
      (is_added(id) ? longest_->added : longest_->words).add(*bytes, id);
    }
    longest_->words.sort();
    longest_->added.sort();
    return longest_->words.has_all_bytes() ? Status()
                                           : invalid_argument("a byte has no token of its own");
  }

  int32_t vocab_size() const override {
    return static_cast<int32_t>(ft_tokenizer_vocab_size(crate_.get()));
  }

  std::optional<int32_t> token_to_id(std::string_view token) const override {
    const int64_t id = ft_tokenizer_token_to_id(crate_.get(), token.data(), token.size());
    if (id < 0) return std::nullopt;
    return static_cast<int32_t>(id);
  }

  std::optional<std::string> id_to_token(int32_t id) const override {
    CrateText token;
    if (id < 0 || !ft_tokenizer_id_to_token(crate_.get(), static_cast<uint32_t>(id), token.out())) {
      return std::nullopt;
    }
    return token.str();
  }

  std::optional<std::string> token_bytes(int32_t id) const override {
    CrateText bytes;
    if (id < 0 || !ft_tokenizer_token_bytes(crate_.get(), static_cast<uint32_t>(id), bytes.out())) {
      return std::nullopt;
    }
    return bytes.str();
  }

  const TokenTable* joined_bytes() const override { return joined_bytes_.get(); }

  std::optional<uint8_t> fallback_byte(int32_t id) const override {
    const int32_t byte =
        id < 0 ? -1 : ft_tokenizer_fallback_byte(crate_.get(), static_cast<uint32_t>(id));
    if (byte < 0) return std::nullopt;
    return static_cast<uint8_t>(byte);
  }

  bool is_added(int32_t id) const override {
    return id >= 0 && ft_tokenizer_is_added(crate_.get(), static_cast<uint32_t>(id));
  }

  bool is_special(int32_t id) const override {
    return id >= 0 && ft_tokenizer_is_special(crate_.get(), static_cast<uint32_t>(id));
  }

  std::optional<int32_t> bos_id() const override { return bos_id_; }
  std::optional<int32_t> eos_id() const override { return eos_id_; }

  Result<std::unique_ptr<GrammarCompiler>> grammar_compiler(
      int32_t vocab_size, std::span<const int32_t> eos_ids) const override {
    FtGrammarEnv* env = nullptr;
    CrateText error;
    // Signed and unsigned integers of one width may alias.
    const auto* ids = reinterpret_cast<const uint32_t*>(eos_ids.data());
    if (ft_grammar_env_new(crate_.get(), static_cast<size_t>(vocab_size), ids, eos_ids.size(), &env,
                           error.out()) != FT_TEXT_OK) {
      return internal_error("the vocabulary cannot be used for grammars: " + error.str());
    }
    return std::make_unique<GrammarCompiler>(env);
  }

 private:
  std::vector<int32_t> encode_longest(std::string_view text) const {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      size_t size = 0;
      int32_t id = 0;
      const size_t at = longest_->added.find(text, &size, &id);
      longest_->words.append(text.substr(0, at), &ids);
      if (at == std::string_view::npos) break;
      ids.push_back(id);
      text.remove_prefix(at + size);
    }
    return ids;
  }

  std::optional<int32_t> find_role(const TokenizerConfig& config, const char* role) const {
    const auto found = config.special_tokens.find(role);
    if (found == config.special_tokens.end()) return std::nullopt;
    const std::optional<int32_t> id = token_to_id(found->second);
    if (!id) FT_LOG(warn, "the {} \"{}\" is not in tokenizer.json", role, found->second);
    return id;
  }

  std::unique_ptr<const TokenTable> read_joined_bytes() const {
    if (!ft_tokenizer_only_joins(crate_.get())) return nullptr;
    auto table = std::make_unique<TokenTable>();
    for (int32_t id = 0; id < vocab_size(); ++id) {
      CrateText bytes;
      const bool found =
          ft_tokenizer_joined_bytes(crate_.get(), static_cast<uint32_t>(id), bytes.out());
      table->add(found ? bytes.str() : std::string(), found && is_special(id));
    }
    return table;
  }

  CrateTokenizer crate_;
  std::unique_ptr<const TokenTable> joined_bytes_;
  std::optional<int32_t> bos_id_;
  std::optional<int32_t> eos_id_;
  std::unique_ptr<LongestVocabulary> longest_;  // null: the crate encodes
};

}  // namespace

namespace {

// The file that the tokenizer came of.
std::string vocabulary_file(const ModelFiles& model) {
  const std::filesystem::path file = model.path() / "tokenizer.json";
  if (model.is_gguf()) return model.text();
  if (std::filesystem::exists(file)) return file.string();
  return (model.path() / folder_vocabulary(model.path())).string();
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_hf_tokenizer(const ModelFiles& model) {
  const std::filesystem::path& folder = model.path();
  const std::filesystem::path file = model.is_gguf() ? folder : folder / "tokenizer.json";
  FT_ASSIGN_OR_RETURN(const auto json, read_model_text(model, "tokenizer.json"));
  if (!json) {
    const bool half = std::filesystem::exists(folder / "vocab.json") ||
                      std::filesystem::exists(folder / "merges.txt");
    return not_found(
        file.string() + " does not exist; " +
        (half ? "vocab.json and merges.txt belong together, and one is missing: download it too"
              : "download it, or tokenizer.model, tekken.json, *.tiktoken or vocab.json and "
                "merges.txt, with the model, or name the folder that holds it"));
  }
  FT_ASSIGN_OR_RETURN(const TokenizerConfig config, load_tokenizer_config(model));
  FtTokenizer* raw = nullptr;
  CrateText error;
  if (ft_tokenizer_new(json->data(), json->size(), &raw, error.out()) != FT_TEXT_OK) {
    return invalid_argument(vocabulary_file(model) + " is not a usable tokenizer (" + error.str() +
                            "); download the file again");
  }
  if (config.split_special_tokens) ft_tokenizer_split_special_tokens(raw);
  auto tokenizer = std::make_unique<HfTokenizer>(CrateTokenizer(raw), config);
  if (!takes_longest(*json)) return std::unique_ptr<Tokenizer>(std::move(tokenizer));
  const Status longest = tokenizer->take_longest(config.split_special_tokens);
  if (longest.ok()) return std::unique_ptr<Tokenizer>(std::move(tokenizer));
  return invalid_argument(vocabulary_file(model) + " is not a usable tokenizer (" +
                          longest.message() + "); download the file again");
}

}  // namespace foretoken
