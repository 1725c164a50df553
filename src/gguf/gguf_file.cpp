#include "gguf/gguf_file.h"

#include <cmath>
#include <type_traits>

#include "gguf/front_reader.h"

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

}  // namespace

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path) {
  std::unique_ptr<GgufFile> file(new GgufFile(path));
  FT_ASSIGN_OR_RETURN(
      file->file_,
      MappedFile::open(path, 1, "it is empty or no file; name a GGUF file or a model folder"));
  FT_RETURN_IF_ERROR(file->read_front());
  return file;
}

Status GgufFile::error(const std::string& what) const {
  return invalid_argument(path_ + ": " + what);
}

Status GgufFile::read(int64_t first, int64_t count, void* to) const {
  if (read_at(descriptor(), first, count, to) == count) return {};
  return error("it cannot be read or became shorter; fetch the file again");
}

Status GgufFile::read_front() {
  Result<GgufFront> front = read_gguf_front({file_->memory(), file_->size()});
  if (!front.ok()) return {front.status().code(), path_ + ": " + front.status().message()};
  metadata_ = std::move(front.value().metadata);
  tensors_ = std::move(front.value().tensors);
  return {};
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

bool is_gguf(std::string_view path) { return path.ends_with(".gguf"); }

}  // namespace foretoken
