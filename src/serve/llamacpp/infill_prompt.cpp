#include "serve/llamacpp/infill_prompt.h"

#include "compat/compat.h"

namespace foretoken {
namespace {

struct Names {
  const char* prefix;
  const char* suffix;
  const char* middle;
  const char* repository;  // or ""
  const char* file;
};

constexpr Names kNames[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>", "<file_sep>"},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<reponame>", ""},
    {"<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>", "", ""},
    {"<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "hole\xEF\xBD\x9C>",
     "<\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C>",
     "", ""},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", ""},
    {"\xE2\x96\x81<PRE>", "\xE2\x96\x81<SUF>", "\xE2\x96\x81<MID>", "", ""},
    {"<PRE>", "<SUF>", "<MID>", "", ""},
    {"[PREFIX]", "[SUFFIX]", "[MIDDLE]", "", ""},
};

// The id of a text that is one token.
std::optional<int32_t> only_token(const Engine& engine, const std::string& text) {
  std::vector<int32_t> ids;
  if (text.empty() || !engine.encode(text, false, &ids).ok() || ids.size() != 1) {
    return std::nullopt;
  }
  return ids.front();
}

Status append_text(const Engine& engine, const std::string& text, std::vector<int32_t>* ids) {
  if (text.empty()) return {};
  std::vector<int32_t> more;
  FT_RETURN_IF_ERROR(engine.encode(text, false, &more));
  ids->insert(ids->end(), more.begin(), more.end());
  return {};
}

Status append_extra(const Engine& engine, const InfillTokens& tokens, const InfillParts& parts,
                    std::vector<int32_t>* ids) {
  if (tokens.repository && tokens.file) {
    ids->push_back(*tokens.repository);
    FT_RETURN_IF_ERROR(append_text(engine, "myproject\n", ids));
  }
  for (const auto& [name, text] : parts.extra) {
    if (tokens.file) {
      ids->push_back(*tokens.file);
      FT_RETURN_IF_ERROR(append_text(engine, name + "\n", ids));
    }
    FT_RETURN_IF_ERROR(append_text(engine, text, ids));
  }
  if (!tokens.file) return {};
  ids->push_back(*tokens.file);
  return append_text(engine, "filename\n", ids);
}

}  // namespace

Result<InfillTokens> find_infill_tokens(const Engine& engine) {
  for (const Names& names : kNames) {
    const auto prefix = only_token(engine, names.prefix);
    const auto suffix = prefix ? only_token(engine, names.suffix) : std::nullopt;
    const auto middle = suffix ? only_token(engine, names.middle) : std::nullopt;
    if (!middle) continue;
    return InfillTokens{*prefix, *suffix, *middle, only_token(engine, names.repository),
                        only_token(engine, names.file)};
  }
  return compat({.fills_gaps = true, .has_gap_tokens = false});
}

Result<std::vector<int32_t>> infill_prompt(const Engine& engine, const InfillTokens& tokens,
                                           const InfillParts& parts) {
  std::vector<int32_t> ids;
  // What stands before every prompt.
  FT_RETURN_IF_ERROR(engine.encode("", true, &ids));
  if (!parts.extra.empty()) FT_RETURN_IF_ERROR(append_extra(engine, tokens, parts, &ids));
  ids.push_back(tokens.prefix);
  FT_RETURN_IF_ERROR(append_text(engine, parts.prefix, &ids));
  FT_RETURN_IF_ERROR(append_text(engine, parts.prompt, &ids));
  ids.push_back(tokens.suffix);
  FT_RETURN_IF_ERROR(append_text(engine, parts.suffix, &ids));
  ids.push_back(tokens.middle);
  return ids;
}

}  // namespace foretoken
