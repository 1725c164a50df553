#include "model/files/containers/torch_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "gguf/container/byte_reader.h"
#include "model/files/containers/pickle.h"
#include "model/files/containers/zip_entries.h"

namespace foretoken {
// The reader keeps pointers to these, so that the type has a name for the linker.
struct StorageType {
  std::string_view name;  // in torch
  int64_t size;
  FileDType dtype;
  const char* dtype_name;  // as safetensors calls it
};

namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

constexpr const char* kSaveAgain = "; save the weights as safetensors";
constexpr const char* kDamaged = "; the file is damaged or incomplete, fetch it again";

constexpr StorageType kStorageTypes[] = {
    {"torch.FloatStorage", 4, FileDType::kF32, "F32"},
    {"torch.BFloat16Storage", 2, FileDType::kBF16, "BF16"},
    {"torch.HalfStorage", 2, FileDType::kF16, "F16"},
    {"torch.LongStorage", 8, FileDType::kI64, "I64"},
    {"torch.BoolStorage", 1, FileDType::kBool, "BOOL"},
    {"torch.DoubleStorage", 8, FileDType::kOther, "F64"},
    {"torch.IntStorage", 4, FileDType::kOther, "I32"},
    {"torch.ShortStorage", 2, FileDType::kOther, "I16"},
    {"torch.CharStorage", 1, FileDType::kOther, "I8"},
    {"torch.ByteStorage", 1, FileDType::kOther, "U8"},
    {"torch.storage.UntypedStorage", 1, FileDType::kOther, "U8"},
};
// Of elements in a storage without a type.
constexpr StorageType kUntypedElements[] = {
    {"torch.float8_e4m3fn", 1, FileDType::kOther, "F8_E4M3"},
    {"torch.float8_e5m2", 1, FileDType::kOther, "F8_E5M2"},
    {"torch.float8_e8m0fnu", 1, FileDType::kOther, "F8_E8M0"},
};

constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildUntyped = "torch._utils._rebuild_tensor_v3";
// Tensors of a class of their own, which are several plain ones.
constexpr std::string_view kRebuildFromType = "torch._tensor._rebuild_from_type_v2";
constexpr std::string_view kBesideClasses[] = {"torch._utils._rebuild_wrapper_subclass",
                                               "torch.serialization._get_layout", "torch.device",
                                               "torch.Size"};
// Names of types, which torchao keeps beside its tensors.
constexpr std::string_view kTypeFronts[] = {"torch.float", "torch.bfloat", "torch.int",
                                            "torch.uint", "torchao."};
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kOrdered = "collections.OrderedDict";

const StorageType* find_storage_type(std::string_view name) {
  for (const StorageType& type : kStorageTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

bool allows(std::string_view global) {
  const bool is_type = std::ranges::any_of(
      kTypeFronts, [&](std::string_view front) { return global.starts_with(front); });
  if (is_type || std::ranges::find(kBesideClasses, global) != std::end(kBesideClasses)) return true;
  return global == kRebuildTensor || global == kRebuildUntyped || global == kRebuildFromType ||
         global == kRebuildParameter || global == kOrdered || find_storage_type(global) != nullptr;
}

// torch.serialization's magic number and protocol, as pickles of protocol 2 write them.
constexpr std::string_view kOldMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e",
                                     15);

bool is_old_file(Bytes file) {
  return file.size() > kOldMagic.size() &&
         std::memcmp(file.data(), kOldMagic.data(), kOldMagic.size()) == 0;
}

}  // namespace

// Reads one file; the first error stays.
class TorchReader {
 public:
  TorchReader(TorchFile& out, std::string path) : out_(out), path_(std::move(path)) {}

  Status read() {
    const Bytes file(out_.file_->memory(), out_.file_->size());
    if (is_zip(file)) return read_archive(file);
    if (is_old_file(file)) return read_old(file);
    return unsupported(path_ + " is no file of torch.save" + kSaveAgain);
  }

 private:
  // A run of elements in the file.
  struct Storage {
    const StorageType* type = nullptr;
    int64_t offset = 0;  // of its first byte in the file
    int64_t num_elements = 0;
  };
  // What a pickle says of a storage.
  struct StorageId {
    const StorageType* type = nullptr;
    std::string key;
    int64_t num_elements = 0;
  };

  Status read_archive(Bytes file);
  Status read_old(Bytes file);
  Status place_old_storages(Bytes file, size_t at, const Pickle& pickle, const Pickle& keys);
  Status read_dictionary(const Pickle& pickle);
  Status add_tensor(const Pickle& pickle, const std::string& name, const PickleValue& value);
  Status add_parts(const Pickle& pickle, const std::string& name, const PickleValue& value);
  Result<Storage> find_storage(const Pickle& pickle, const PickleValue& value);
  Status fill_view(TensorView* view, const Storage& storage, int64_t first,
                   const std::vector<int64_t>& strides);
  std::optional<StorageId> storage_id(const Pickle& pickle, const PickleValue& value) const;
  Status broken(const std::string& what) const {
    return invalid_argument(path_ + ": " + what + kDamaged);
  }

  TorchFile& out_;
  const std::string path_;
  std::map<std::string, ZipEntry> entries_;  // of an archive
  std::string root_;                         // name of the folder in the archive, with its slash
  std::map<std::string, Storage> old_;       // of a plain file, by key
  int64_t copied_bytes_ = 0;                 // of views that are not contiguous
};

namespace {

// A list of sizes, none of them negative.
std::optional<std::vector<int64_t>> sizes_of(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != Kind::kList) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const uint32_t index : value.items) {
    const PickleValue& size = pickle.at(index);
    if (size.kind != Kind::kInteger || size.integer < 0) return std::nullopt;
    sizes.push_back(size.integer);
  }
  return sizes;
}

// Tensors of a parameter are what it was made of.
const PickleValue& tensor_of(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != Kind::kCall || pickle.at(value.items[0]).text != kRebuildParameter) {
    return value;
  }
  const PickleValue& arguments = pickle.at(value.items[1]);
  return arguments.items.empty() ? value : pickle.at(arguments.items[0]);
}

// Of the elements of a view within its storage; none where they overflow or are empty.
std::optional<int64_t> last_element(int64_t first, const std::vector<int64_t>& shape,
                                    const std::vector<int64_t>& strides) {
  int64_t last = first;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t way = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &way) ||
        __builtin_add_overflow(last, way, &last)) {
      return std::nullopt;
    }
  }
  return last;
}

bool is_contiguous(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t wanted = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != wanted) return false;
    wanted *= shape[i];
  }
  return true;
}

// Copies the elements of a view in the order of its shape.
void gather(const std::byte* storage, int64_t element_bytes, const TensorView& view,
            const std::vector<int64_t>& strides, std::byte* to) {
  std::vector<int64_t> index(view.shape.size(), 0);
  const int64_t count = view.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d) from += index[d] * strides[d];
    std::memcpy(to + i * element_bytes, storage + from * element_bytes,
                static_cast<size_t>(element_bytes));
    for (size_t d = index.size(); d-- > 0 && ++index[d] == view.shape[d];) index[d] = 0;
  }
}

}  // namespace

Status TorchReader::read_archive(Bytes file) {
  FT_ASSIGN_OR_RETURN(entries_, read_zip_entries(file, path_));
  constexpr std::string_view kData = "data.pkl";
  const auto data = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry.first == kData || entry.first.ends_with("/" + std::string(kData));
  });
  if (data == entries_.end()) {
    return unsupported(path_ + " is a zip archive without data.pkl, and so no file of torch.save" +
                       kSaveAgain);
  }
  root_ = data->first.substr(0, data->first.size() - kData.size());
  if (data->second.compressed) {
    return unsupported(path_ + ": '" + data->first +
                       "' is compressed, which torch.save never does" + kSaveAgain);
  }
  const auto order = entries_.find(root_ + "byteorder");
  const ZipEntry& entry = data->second;
  if (order != entries_.end() && order->second.num_bytes == 3) {  // "big"
    return unsupported(path_ + ": the tensors are big-endian" + kSaveAgain);
  }
  FT_ASSIGN_OR_RETURN(const Pickle pickle,
                      Pickle::read(file.subspan(static_cast<size_t>(entry.offset),
                                                static_cast<size_t>(entry.num_bytes)),
                                   allows, path_));
  return read_dictionary(pickle);
}

// Magic number, protocol, what kind of machine wrote it, the dictionary, the keys of its storages;
// then the storages, each behind the number of its elements.
Status TorchReader::read_old(Bytes file) {
  size_t at = kOldMagic.size();
  std::vector<Pickle> pickles;
  for (int i = 0; i < 4; ++i) {
    FT_ASSIGN_OR_RETURN(Pickle pickle, Pickle::read(file.subspan(at), allows, path_));
    at += pickle.num_bytes();
    pickles.push_back(std::move(pickle));
  }
  FT_RETURN_IF_ERROR(place_old_storages(file, at, pickles[2], pickles[3]));
  return read_dictionary(pickles[2]);
}

Status TorchReader::place_old_storages(Bytes file, size_t at, const Pickle& pickle,
                                       const Pickle& keys) {
  std::map<std::string, const StorageType*> types;
  for (uint32_t i = 0; i < pickle.num_values(); ++i) {
    const auto id = storage_id(pickle, pickle.at(i));
    if (id) types[id->key] = id->type;
  }
  for (const uint32_t index : keys.root().items) {
    const std::string& key = keys.at(index).text;
    const auto type = types.find(key);
    if (type == types.end()) return broken("storage '" + key + "' belongs to no tensor");
    ByteReader reader(file.subspan(at));
    const auto count = reader.number<int64_t>();
    int64_t bytes = 0;
    if (!reader.ok() || count < 0 || __builtin_mul_overflow(count, type->second->size, &bytes) ||
        static_cast<uint64_t>(bytes) > reader.left()) {
      return broken("storage '" + key + "' goes beyond the file's end");
    }
    old_[key] = {type->second, static_cast<int64_t>(at) + 8, count};
    at += 8 + static_cast<size_t>(bytes);
  }
  return {};
}

// ("storage", type, key, device, number of elements), with a view's place behind it in old files.
std::optional<TorchReader::StorageId> TorchReader::storage_id(const Pickle& pickle,
                                                              const PickleValue& value) const {
  if (value.kind != Kind::kPersistent) return std::nullopt;
  const PickleValue& id = pickle.at(value.items[0]);
  if (id.kind != Kind::kList || id.items.size() < 5) return std::nullopt;
  const auto at = [&](size_t i) -> const PickleValue& { return pickle.at(id.items[i]); };
  const StorageType* type = find_storage_type(at(1).text);
  const bool is_view = id.items.size() > 5 && at(5).kind != Kind::kNone;
  const bool valid = at(0).text == "storage" && type != nullptr && at(2).kind == Kind::kText &&
                     at(4).kind == Kind::kInteger && at(4).integer >= 0 && !is_view;
  if (!valid) return std::nullopt;
  return StorageId{type, at(2).text, at(4).integer};
}

Result<TorchReader::Storage> TorchReader::find_storage(const Pickle& pickle,
                                                       const PickleValue& value) {
  const auto id = storage_id(pickle, value);
  if (!id) return unsupported("is stored in a way that is not read");
  if (!old_.empty() || entries_.empty()) {
    const auto found = old_.find(id->key);
    if (found == old_.end()) return not_found("lacks its storage '" + id->key + "'");
    return found->second;
  }
  const auto found = entries_.find(root_ + "data/" + id->key);
  if (found == entries_.end()) return not_found("lacks its storage '" + id->key + "'");
  if (found->second.compressed) return unsupported("is compressed");
  int64_t bytes = 0;
  if (__builtin_mul_overflow(id->num_elements, id->type->size, &bytes) ||
      bytes > found->second.num_bytes) {
    return invalid_argument("has a storage that is shorter than it says");
  }
  return Storage{id->type, found->second.offset, id->num_elements};
}

Status TorchReader::fill_view(TensorView* view, const Storage& storage, int64_t first,
                              const std::vector<int64_t>& strides) {
  int64_t bytes = storage.type->size;
  for (const int64_t extent : view->shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return invalid_argument("has the impossible shape " + view->shape_text());
    }
  }
  view->dtype = storage.type->dtype;
  view->dtype_name = storage.type->dtype_name;
  if (view->dtype_name == "F64") view->block = find_block_type("F64");
  view->num_bytes = bytes;
  view->descriptor = out_.file_->descriptor();
  view->file_offset = storage.offset + (bytes > 0 ? first * storage.type->size : 0);
  view->data = out_.file_->memory() + view->file_offset;
  if (bytes == 0) return {};
  const auto last = last_element(first, view->shape, strides);
  if (!last || *last >= storage.num_elements) {
    return invalid_argument("goes beyond its storage");
  }
  if (is_contiguous(view->shape, strides)) return {};
  // Views that repeat what they have may be far larger than the file.
  const int64_t most = 2 * static_cast<int64_t>(out_.file_->size());
  if (bytes > most - copied_bytes_) return unsupported("repeats its numbers");
  copied_bytes_ += bytes;
  std::vector<std::byte>& copy = out_.copies_.emplace_back(static_cast<size_t>(bytes));
  gather(view->data, storage.type->size, *view, strides, copy.data());
  view->data = copy.data();
  view->descriptor = -1;
  view->file_offset = 0;
  return {};
}

// _rebuild_tensor_v2(storage, first element, shape, strides, ...).
Status TorchReader::add_tensor(const Pickle& pickle, const std::string& name,
                               const PickleValue& value) {
  const std::string where = path_ + ": tensor '" + name.substr(0, 200) + "' ";
  const PickleValue& arguments = pickle.at(value.items[1]);
  const std::string& function = pickle.at(value.items[0]).text;
  const bool is_untyped = function == kRebuildUntyped;
  if ((function != kRebuildTensor && !is_untyped) || arguments.kind != Kind::kList ||
      arguments.items.size() < (is_untyped ? 7 : 4)) {
    return invalid_argument(where + "is described in a way that is not read" + kSaveAgain);
  }
  const auto at = [&](size_t i) -> const PickleValue& { return pickle.at(arguments.items[i]); };
  const auto shape = sizes_of(pickle, at(2)), strides = sizes_of(pickle, at(3));
  const PickleValue& first = at(1);
  if (!shape || !strides || shape->size() != strides->size() || shape->size() > 16 ||
      first.kind != Kind::kInteger || first.integer < 0) {
    return invalid_argument(where + "has an impossible shape" + kDamaged);
  }
  TensorView view;
  view.name = name;
  view.file = path_;
  view.shape = *shape;
  Result<Storage> storage = find_storage(pickle, at(0));
  if (storage.ok() && is_untyped) {
    const auto* type = std::ranges::find(kUntypedElements, at(6).text, &StorageType::name);
    if (type == std::end(kUntypedElements)) {
      return unsupported(where + "has elements of the type '" + at(6).text.substr(0, 40) + "'" +
                         kSaveAgain);
    }
    storage.value().type = type;
  }
  Status status = storage.status();
  if (storage.ok()) status = fill_view(&view, storage.value(), first.integer, *strides);
  if (!status.ok()) {
    const bool damaged = status.code() != StatusCode::kUnsupported;
    return Status(status.code(), where + status.message() + (damaged ? kDamaged : kSaveAgain));
  }
  out_.tensors_.emplace(name, std::move(view));
  return {};
}

// _rebuild_from_type_v2(function, class, arguments, state) of torchao: the tensors of the state
// under the names that its safetensors have, as X._weight_qdata of X.weight.
Status TorchReader::add_parts(const Pickle& pickle, const std::string& name,
                              const PickleValue& value) {
  const PickleValue& arguments = pickle.at(value.items[1]);
  const bool is_whole = arguments.kind == Kind::kList && arguments.items.size() == 4;
  const PickleValue* state = is_whole ? &pickle.at(arguments.items[3]) : nullptr;
  const size_t dot = name.rfind('.');
  if (state == nullptr || state->kind != Kind::kDict || dot == std::string::npos ||
      !pickle.at(arguments.items[1]).text.starts_with("torchao.")) {
    return unsupported(path_ + ": tensor '" + name.substr(0, 200) +
                       "' is of a class that is not read" + kSaveAgain);
  }
  const std::string base = name.substr(0, dot) + "._" + name.substr(dot + 1) + "_";
  for (size_t i = 0; i + 1 < state->items.size(); i += 2) {
    const PickleValue& key = pickle.at(state->items[i]);
    const PickleValue& part = tensor_of(pickle, pickle.at(state->items[i + 1]));
    if (key.kind != Kind::kText || part.kind != Kind::kCall) continue;
    const std::string& function = pickle.at(part.items[0]).text;
    if (function == kRebuildFromType) {
      return unsupported(path_ + ": tensor '" + name.substr(0, 200) +
                         "' is of an older class of torchao's that is not read; quantise the model "
                         "with a newer torchao, or use the model as it was before");
    }
    if (function != kRebuildTensor && function != kRebuildUntyped) continue;
    FT_RETURN_IF_ERROR(add_tensor(pickle, base + key.text, part));
  }
  return {};
}

Status TorchReader::read_dictionary(const Pickle& pickle) {
  const PickleValue* dictionary = &pickle.root();
  for (const char* inner : {"state_dict", "model", "module"}) {
    for (size_t i = 0; dictionary->kind == Kind::kDict && i + 1 < dictionary->items.size();
         i += 2) {
      const PickleValue& value = pickle.at(dictionary->items[i + 1]);
      if (pickle.at(dictionary->items[i]).text != inner || value.kind != Kind::kDict) continue;
      dictionary = &value;
      break;
    }
  }
  if (dictionary->kind != Kind::kDict) {
    return unsupported(path_ + " holds no dictionary of tensors" + kSaveAgain);
  }
  for (size_t i = 0; i + 1 < dictionary->items.size(); i += 2) {
    const PickleValue& key = pickle.at(dictionary->items[i]);
    const PickleValue& value = tensor_of(pickle, pickle.at(dictionary->items[i + 1]));
    if (key.kind != Kind::kText || value.kind != Kind::kCall) continue;
    const bool has_parts = pickle.at(value.items[0]).text == kRebuildFromType;
    FT_RETURN_IF_ERROR(has_parts ? add_parts(pickle, key.text, value)
                                 : add_tensor(pickle, key.text, value));
  }
  if (!out_.tensors_.empty()) return {};
  return unsupported(path_ + " holds no dictionary of tensors" + kSaveAgain);
}

Result<std::unique_ptr<TorchFile>> TorchFile::open(const std::string& path) {
  std::unique_ptr<TorchFile> file(new TorchFile());
  FT_ASSIGN_OR_RETURN(
      file->file_,
      MappedFile::open(path, 16, std::string("too short for a file of torch.save") + kDamaged));
  FT_RETURN_IF_ERROR(TorchReader(*file, path).read());
  return file;
}

}  // namespace foretoken
