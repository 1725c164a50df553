#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/vocabulary/tokenizer_build.h"

namespace foretoken {

// What tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json of a
// folder say about a tokenizer whose vocabulary lies in a file of its own.
struct TokenizerSettings {
  std::string class_name;  // tokenizer_class, empty where it is not named
  std::string model_type;  // of config.json
  std::map<int64_t, AddedToken> added;
  std::map<std::string, std::string> roles;  // bos_token, eos_token, unk_token, pad_token, ...
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_prefix_space;
  std::optional<bool> legacy;  // words behind special tokens begin with a space of their own

  // Runs of so many blanks, and of so many times the same character, are cut off (PLaMo 3).
  std::optional<int32_t> break_spaces;
  std::optional<int32_t> break_repeats;

  std::string role(const std::string& name, const std::string& otherwise) const;
};

// Files that are missing say nothing. InvalidArgument names a file that is no JSON object, or a
// token whose id is none.
Result<TokenizerSettings> read_tokenizer_settings(const std::filesystem::path& folder);

// Completes what a vocabulary of its own file becomes: `ids` are all of its tokens, to which those
// of `settings` are added. The added tokens: those of `settings`, the texts of its roles, and
// `own`, which the vocabulary knows itself; a token is listed once, with what `settings` say of it.
std::vector<AddedToken> all_added_tokens(const TokenizerSettings& settings,
                                         const std::vector<AddedToken>& own,
                                         std::map<std::string, int64_t>* ids);

// A tokenizer_config.json of the roles, with `fallbacks` (role, text) for those that are missing.
nlohmann::json roles_json(const TokenizerSettings& settings,
                          const std::map<std::string, std::string>& fallbacks);

// [(token, id)] of a role's token where it is wanted and there.
TokenNames token_names(bool wanted, const std::string& token,
                       const std::map<std::string, int64_t>& ids);

}  // namespace foretoken
