#pragma once
#include <string>

#include "base/result.h"

namespace foretoken {

// A model repository of the Hub at a revision.
struct RepoId {
  std::string name;            // "org/name", or a single name of old such as "gpt2"
  std::string revision;        // branch, tag or commit; safe as a relative path
  std::string gguf_type = {};  // of the GGUF file that is wanted, such as "Q4_K_M"; empty: none
};

// Reads `model` as "org/name[:TYPE][@revision]", where TYPE names one of its GGUF files, or as the
// address of its page (https://huggingface.co/org/name/tree/revision, hf.co/org/name). `revision`
// may give the revision instead; with neither it is "main". The rules are those of the Hub: parts
// of letters, digits, '-', '_' and '.', at most 96 characters, no "--" and no "..". InvalidArgument
// names both readings of `model`: a folder that does not exist, and an id that is none.
Result<RepoId> parse_repo_id(const std::string& model, const std::string& revision);

// True for a whole commit id: 40 lower-case hexadecimal digits.
bool is_commit(const std::string& text);

// True when `text` has `num_digits` lower-case hexadecimal digits and nothing else.
bool is_hex(const std::string& text, size_t num_digits);

// True for a relative path whose parts are neither empty nor "." nor ".." and hold no control
// characters or backslashes.
bool is_safe_path(const std::string& path);

}  // namespace foretoken
