#include "hub/repo_id.h"

#include <algorithm>
#include <cctype>

namespace foretoken {
namespace {

constexpr size_t kMaxLength = 96;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_name(const std::string& part) {
  return !part.empty() && is_word(part.front()) && is_word(part.back()) &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return is_word(c) || c == '-' || c == '.'; });
}

bool is_repo_name(const std::string& name) {
  const auto has = [&](const char* text) { return name.find(text) != std::string::npos; };
  if (name.size() > kMaxLength || has("--") || has("..")) return false;
  if (name.size() >= 4 && name.compare(name.size() - 4, 4, ".git") == 0) return false;
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return is_name(name);
  return is_name(name.substr(0, slash)) && is_name(name.substr(slash + 1));
}

bool is_revision(const std::string& revision) {
  return revision.size() <= 200 && is_safe_path(revision) &&
         revision.find_first_of(" ~^:?*[@") == std::string::npos;
}

// "https://huggingface.co/org/name/tree/rev" and Ollama's "hf.co/org/name:Q4_K_M" as an id, so far
// as they are of that form.
std::string id_of_address(const std::string& model) {
  std::string_view rest = model;
  const auto drop = [&rest](std::string_view front) {
    const bool has = rest.starts_with(front);
    if (has) rest.remove_prefix(front.size());
    return has;
  };
  if (!drop("https://")) drop("http://");
  drop("www.");
  if (!drop("huggingface.co/") && !drop("hf.co/") && !drop("hf://")) return model;
  drop("models/");
  rest = rest.substr(0, rest.find_first_of("?#"));
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t tree = rest.find("/tree/");
  if (tree == std::string_view::npos) return std::string(rest);
  return std::string(rest.substr(0, tree)) + "@" + std::string(rest.substr(tree + 6));
}

}  // namespace

bool is_hex(const std::string& text, size_t num_digits) {
  return text.size() == num_digits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_commit(const std::string& text) { return is_hex(text, 40); }

bool is_safe_path(const std::string& path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return std::none_of(path.begin(), path.end(),
                      [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; });
}

Result<RepoId> parse_repo_id(const std::string& model, const std::string& revision) {
  const std::string given = id_of_address(model);
  const size_t at = given.find('@');
  RepoId id{given.substr(0, at), at == std::string::npos ? "" : given.substr(at + 1)};
  const size_t colon = id.name.find(':');
  if (colon != std::string::npos) {
    id.gguf_type = id.name.substr(colon + 1);
    id.name.resize(colon);
  }
  const bool has_type = colon == std::string::npos || is_name(id.gguf_type);
  if (!is_repo_name(id.name) || !has_type || (at != std::string::npos && id.revision.empty())) {
    return invalid_argument(
        "model '" + model +
        "' is neither a folder that exists nor a Hub id "
        "(org/name, org/name@revision or, for one of its GGUF files, "
        "org/name:Q4_K_M); " +
        (given == model ? "check the path or the name" : "of an address, give org/name alone"));
  }
  if (!revision.empty() && !id.revision.empty() && revision != id.revision) {
    return invalid_argument("model '" + model + "' and --revision '" + revision +
                            "' name two revisions; give one of them");
  }
  if (id.revision.empty()) id.revision = revision.empty() ? "main" : revision;
  if (!is_revision(id.revision)) {
    return invalid_argument("revision '" + id.revision + "' of " + id.name +
                            " is no name of a branch, tag or commit; check --revision");
  }
  return id;
}

}  // namespace foretoken
