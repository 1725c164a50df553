#include "hub/gguf_choice.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>

#include "base/text/ascii_text.h"
#include "gguf/container/gguf_file.h"
#include "hub/file_pieces.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualType = "q4_k_m";

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_model(const std::string& path) {
  const std::string name = lower_case(file_name(path));
  return is_gguf(name) && name.find("mmproj") == std::string::npos &&
         name.find("imatrix") == std::string::npos;
}

// Models by the name of their only file or first part, and their files.
std::map<std::string, std::vector<std::string>> find_models(const std::vector<std::string>& names) {
  std::map<std::string, std::vector<std::string>> models;
  for (const std::string& name : names) {
    if (!is_model(name)) continue;
    const auto split = gguf_split_name(name);
    // Endings of parts may be spelt in several ways.
    const std::string first = split ? split->part(1) : name;
    const size_t ending = split ? split->name.size() : first.size();
    models[first.substr(0, ending) + lower_case(first.substr(ending))].push_back(name);
  }
  for (auto& [first, files] : models) std::sort(files.begin(), files.end());
  return models;
}

// Whether `type` stands in a name between characters that are no part of one.
bool has_type(const std::string& name, const std::string& type) {
  const auto bounds = [](char c) { return c == '-' || c == '.' || c == '/'; };
  const std::string text = lower_case(name);
  for (size_t at = text.find(type); at != std::string::npos; at = text.find(type, at + 1)) {
    const size_t end = at + type.size();
    if ((at == 0 || bounds(text[at - 1])) && (end == text.size() || bounds(text[end]))) return true;
  }
  return false;
}

// What comes behind the last '-' or '.' in front of the ending.
std::string type_of_name(const std::string& name) {
  const auto split = gguf_split_name(name);
  std::string stem = file_name(split ? split->name : name.substr(0, name.size() - 5));
  const size_t at = stem.find_last_of("-.");
  return at == std::string::npos ? stem : stem.substr(at + 1);
}

bool is_other_weights(const std::string& path) {
  const std::string name = file_name(path);
  return (name.ends_with(".safetensors") && !name.starts_with("adapter")) ||
         (name.ends_with(".bin") && name.starts_with("pytorch_model"));
}

// A file that was cut into pieces is nothing that could be loaded.
Status check_pieces(const std::vector<std::string>& names, const std::string& type,
                    const std::string& where) {
  for (const std::string& name : gguf_pieces(names)) {
    if (!type.empty() && !has_type(name, lower_case(type))) continue;
    const FilePiece piece = *file_piece(name);
    return unsupported(where + " has " + piece.whole + " cut into pieces (" + name +
                       " and others); fetch these, join them (" + joining_command(piece) +
                       ") and name the whole file");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> choose_gguf(const std::vector<std::string>& names,
                                             const std::string& type, const std::string& where) {
  const auto models = find_models(names);
  const std::vector<std::string>* found = nullptr;
  size_t shortest = SIZE_MAX;
  for (const auto& [first, files] : models) {
    if (!has_type(first, type.empty() ? kUsualType : lower_case(type))) continue;
    if (first.size() < shortest) found = &files, shortest = first.size();
  }
  if (found == nullptr && type.empty() && !models.empty()) found = &models.begin()->second;
  if (found != nullptr) {
    const auto split = gguf_split_name(found->front());
    if (!split || split->count == std::ssize(*found)) return *found;
    return not_found(where + " has " + std::to_string(found->size()) + " of the " +
                     std::to_string(split->count) + " parts of " + split->part(1) +
                     "; choose another file or revision");
  }
  FT_RETURN_IF_ERROR(check_pieces(names, type, where));
  std::string known;
  for (const auto& [first, files] : models) {
    known += (known.empty() ? "" : ", ") + type_of_name(first);
  }
  return not_found(where + " has no GGUF file" +
                   (type.empty() ? "" : " of the type '" + type + "'") +
                   (known.empty() ? "; choose another repository" : "; there are " + known));
}

bool holds_gguf_alone(const std::vector<std::string>& names) {
  return std::ranges::none_of(names, is_other_weights) && std::ranges::any_of(names, is_model);
}

namespace {

// Of a folder, and of those in it where it holds no GGUF file itself, as repositories with a folder
// for each type are downloaded.
std::vector<std::string> names_within(const std::string& folder) {
  std::vector<std::string> names, inner;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    // A folder is no file, though its name may end as one's.
    if (!entry.is_directory(ignored)) names.push_back(name);
    if (!entry.is_directory(ignored) || name.starts_with('.')) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(entry.path(), ignored)) {
      inner.push_back(name + "/" + file.path().filename().string());
    }
  }
  const bool has_own = std::ranges::any_of(names, is_model);
  const bool has_config = std::ranges::find(names, "config.json") != names.end();
  if (!has_own && !has_config) names.insert(names.end(), inner.begin(), inner.end());
  return names;
}

}  // namespace

Result<std::string> gguf_in_folder(const std::string& folder) {
  const std::vector<std::string> names = names_within(folder);
  if (!holds_gguf_alone(names)) {
    const bool has_others = std::ranges::any_of(names, is_other_weights);
    if (!has_others) FT_RETURN_IF_ERROR(check_pieces(names, "", "the folder '" + folder + "'"));
    return folder;
  }
  const auto models = find_models(names);
  if (models.size() == 1) return (fs::path(folder) / models.begin()->second.front()).string();
  std::string known;
  for (const auto& [first, files] : models) known += (known.empty() ? "" : ", ") + first;
  return invalid_argument("the folder '" + folder + "' holds several models (" + known +
                          "); name one of these files");
}

}  // namespace foretoken
