#include "gguf/container/gguf_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <type_traits>

#include "gguf/container/front_reader.h"

namespace foretoken {
namespace {

template <class T>
std::vector<T> widened(const GgufValue& value) {
  std::vector<T> all;
  if (const auto* s = std::get_if<std::vector<int64_t>>(&value)) all.assign(s->begin(), s->end());
  if (const auto* u = std::get_if<std::vector<uint64_t>>(&value)) all.assign(u->begin(), u->end());
  if constexpr (std::is_floating_point_v<T>) {
    if (const auto* d = std::get_if<std::vector<double>>(&value)) all.assign(d->begin(), d->end());
  }
  return all;
}

bool is_integers(const GgufValue& value) {
  return std::holds_alternative<std::vector<int64_t>>(value) ||
         std::holds_alternative<std::vector<uint64_t>>(value);
}

std::optional<int64_t> as_integer(const GgufValue& value) {
  if (const auto* s = std::get_if<int64_t>(&value)) return *s;
  const auto* u = std::get_if<uint64_t>(&value);
  if (u == nullptr || *u > uint64_t{INT64_MAX}) return std::nullopt;
  return static_cast<int64_t>(*u);
}

// As llama.cpp writes numbers of parts.
std::string five_digits(int64_t number) {
  const std::string digits = std::to_string(number);
  return "-" + std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

}  // namespace

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path) {
  std::unique_ptr<GgufFile> file(new GgufFile(path));
  FT_RETURN_IF_ERROR(file->add_part(path));
  FT_ASSIGN_OR_RETURN(const auto count, file->integer("split.count"));
  if (count && *count > 1) FT_RETURN_IF_ERROR(file->add_other_parts(*count));
  return file;
}

Status GgufFile::error(const std::string& what) const {
  return invalid_argument(path_ + ": " + what);
}

Status GgufFile::read(const GgufTensor& tensor, void* to) const {
  const int descriptor = tensor.part->file->descriptor();
  if (read_at(descriptor, tensor.offset, tensor.num_bytes, to) == tensor.num_bytes) return {};
  return invalid_argument(tensor.part->path +
                          ": it cannot be read or became shorter; fetch the file again");
}

// Its metadata replace those that are there; its tensors come to them.
Status GgufFile::add_part(const std::string& path) {
  auto part = std::make_unique<GgufPart>();
  part->path = path;
  FT_ASSIGN_OR_RETURN(
      part->file,
      MappedFile::open(path, 1, "it is empty or no file; name a GGUF file or a model folder"));
  Result<GgufFront> front = read_gguf_front({part->file->memory(), part->file->size()});
  if (!front.ok()) return {front.status().code(), path + ": " + front.status().message()};
  metadata_ = std::move(front.value().metadata);
  raw_metadata_ = std::move(front.value().raw_metadata);
  for (auto& [name, tensor] : front.value().tensors) {
    tensor.part = part.get();
    const auto [there, added] = tensors_.emplace(name, std::move(tensor));
    if (!added) {
      return invalid_argument(path + ": the tensor '" + name + "' is in " +
                              there->second.part->path + " too; remove the file that is no part");
    }
  }
  parts_.push_back(std::move(part));
  return {};
}

namespace {

// The file of a part, which may spell what ends its name otherwise than the others do.
Result<std::string> find_part(const GgufSplitName& split, int64_t number) {
  const std::string path = split.part(number);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  const size_t file = path.rfind('/') + 1;
  const std::string folder = path.substr(0, file);
  std::string found;
  std::filesystem::directory_iterator at(folder.empty() ? "." : folder, ignored), end;
  for (; at != end; at.increment(ignored)) {
    const std::string candidate = folder + at->path().filename().string();
    const auto other = gguf_split_name(candidate);
    const bool fits = other && other->name == split.name && other->number == number &&
                      other->count == split.count && at->exists(ignored);
    if (fits && (found.empty() || candidate < found)) found = candidate;
  }
  if (!found.empty()) return found;
  return not_found("part " + std::to_string(number) + " of " + std::to_string(split.count) +
                   " is missing: " + path + "; put it beside the others");
}

}  // namespace

// All but the one that is there, the first last, since its metadata are those of the model.
Status GgufFile::add_other_parts(int64_t count) {
  const auto split = gguf_split_name(path_);
  FT_ASSIGN_OR_RETURN(const auto wanted, integer("split.tensors.count"));
  FT_ASSIGN_OR_RETURN(const auto index, integer("split.no"));
  const int64_t number = index.value_or(0) + 1;
  if (!split || split->count != count || split->number != number) {
    const std::string ending = path_.ends_with(".GGUF") ? ".GGUF" : ".gguf";
    return error("it is part " + std::to_string(number) + " of " + std::to_string(count) +
                 ", whose name must end so: " + five_digits(number) + "-of" + five_digits(count) +
                 ending + "; give all parts the names that they had");
  }
  const auto own = metadata_;
  const auto own_raw = raw_metadata_;
  for (int64_t other = count; other >= 1; --other) {
    if (other == number) continue;
    FT_ASSIGN_OR_RETURN(const std::string part, find_part(*split, other));
    FT_RETURN_IF_ERROR(add_part(part));
    FT_RETURN_IF_ERROR(check_part(other, count));
  }
  if (number == 1) {
    metadata_ = own;
    raw_metadata_ = own_raw;
  }
  if (!wanted || *wanted == std::ssize(tensors_)) return {};
  return error("its parts have " + std::to_string(tensors_.size()) + " tensors together, not " +
               std::to_string(*wanted) + "; fetch them again");
}

// The one that was added last.
Status GgufFile::check_part(int64_t number, int64_t count) const {
  FT_ASSIGN_OR_RETURN(const auto its_count, integer("split.count"));
  FT_ASSIGN_OR_RETURN(const auto its_index, integer("split.no"));
  if (its_count == count && its_index.value_or(0) + 1 == number) return {};
  return invalid_argument(parts_.back()->path + ": it is not part " + std::to_string(number) +
                          " of the " + std::to_string(count) + " that " + path_ +
                          " belongs to; fetch it again");
}

const GgufValue* GgufFile::find(const std::string& key) const {
  const auto found = metadata_.find(key);
  return found == metadata_.end() ? nullptr : &found->second;
}

Status GgufFile::wrong_kind(const std::string& key, const char* wanted) const {
  return error("'" + key + "' must be " + wanted + "; convert the model again");
}

Result<std::optional<int64_t>> GgufFile::integer(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<int64_t>();
  const auto number = as_integer(*value);
  if (!number) return wrong_kind(key, "an integer");
  return number;
}

Result<std::optional<double>> GgufFile::number(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* real = std::get_if<double>(value)) {
    if (std::isfinite(*real)) return std::optional<double>(*real);
    return error("'" + key + "' is not finite; fetch the file again");
  }
  const auto whole = as_integer(*value);
  if (!whole) return wrong_kind(key, "a number");
  return std::optional<double>(static_cast<double>(*whole));
}

Result<std::optional<std::string>> GgufFile::text(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) return wrong_kind(key, "a text");
  return std::optional<std::string>(*text);
}

Result<std::optional<bool>> GgufFile::flag(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) return wrong_kind(key, "true or false");
  return std::optional<bool>(*flag);
}

Result<const std::vector<std::string>*> GgufFile::texts(const std::string& key) const {
  const GgufValue* value = find(key);
  const auto* texts = value != nullptr ? std::get_if<std::vector<std::string>>(value) : nullptr;
  if (value != nullptr && texts == nullptr) return wrong_kind(key, "a list of texts");
  return texts;
}

Result<std::vector<int64_t>> GgufFile::integers(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::vector<int64_t>();
  if (!is_integers(*value)) return wrong_kind(key, "a list of integers");
  return widened<int64_t>(*value);
}

Result<std::vector<double>> GgufFile::numbers(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::vector<double>();
  if (!is_integers(*value) && !std::holds_alternative<std::vector<double>>(*value)) {
    return wrong_kind(key, "a list of numbers");
  }
  return widened<double>(*value);
}

namespace {

bool ends_in_gguf(std::string_view path) {
  constexpr std::string_view kEnding = ".gguf";
  if (path.size() < kEnding.size()) return false;
  const std::string_view ending = path.substr(path.size() - kEnding.size());
  return std::equal(ending.begin(), ending.end(), kEnding.begin(), [](char given, char wanted) {
    return given == wanted || (given >= 'A' && given <= 'Z' && given + 32 == wanted);
  });
}

bool begins_as_gguf(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::array<char, 4> front{};
  std::ifstream file(path, std::ios::binary);
  return file.read(front.data(), front.size()) &&
         std::string_view(front.data(), front.size()) == "GGUF";
}

}  // namespace

bool is_gguf(std::string_view path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return false;
  return ends_in_gguf(path) || begins_as_gguf(path);
}

std::string GgufSplitName::part(int64_t of_number) const {
  std::string digits = std::to_string(of_number);
  const std::string zeros(digits.size() < width ? width - digits.size() : 0, '0');
  return name + "-" + zeros + digits + ending;
}

std::optional<GgufSplitName> gguf_split_name(std::string_view path) {
  static const std::regex kForm(R"((.+)-(\d{1,6})(-of-(\d{1,6})\.gguf))", std::regex::icase);
  std::match_results<std::string_view::const_iterator> match;
  const size_t folder = path.rfind('/') + 1;
  const std::string_view file = path.substr(folder);
  // No file's name is longer, and matching takes stack for each byte.
  if (file.size() > 255) return std::nullopt;
  if (!std::regex_match(file.begin(), file.end(), match, kForm)) return std::nullopt;
  GgufSplitName split;
  split.name = std::string(path.substr(0, folder)) + match[1].str();
  split.number = std::stoll(match[2].str());
  split.count = std::stoll(match[4].str());
  split.width = static_cast<size_t>(match.length(2));
  split.ending = match[3].str();
  const bool is_part = split.number >= 1 && split.number <= split.count;
  if (!is_part || match.length(2) != match.length(4)) return std::nullopt;
  return split;
}

}  // namespace foretoken
