#include "gguf/container/front_reader.h"

#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "gguf/container/byte_reader.h"

namespace foretoken {
namespace {

constexpr uint32_t kMagic = 0x46554747;          // "GGUF"
constexpr uint32_t kTurnedVersion = 0x03000000;  // 3 in the other byte order
constexpr uint64_t kMaxDimensions = 4;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr size_t kLeastValueBytes = 13;   // key length, type, one byte
constexpr size_t kLeastTensorBytes = 24;  // name length, dimensions, type, offset
constexpr const char* kFetchAgain = "; the file is damaged or incomplete, fetch it again";

// Of one value; texts have at least their length. 0: no such type.
size_t least_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kText:
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

uint64_t read_unsigned(ByteReader& reader, GgufType type) {
  if (type == GgufType::kU8) return reader.number<uint8_t>();
  if (type == GgufType::kU16) return reader.number<uint16_t>();
  if (type == GgufType::kU32) return reader.number<uint32_t>();
  return reader.number<uint64_t>();
}

int64_t read_signed(ByteReader& reader, GgufType type) {
  if (type == GgufType::kI8) return reader.number<int8_t>();
  if (type == GgufType::kI16) return reader.number<int16_t>();
  if (type == GgufType::kI32) return reader.number<int32_t>();
  return reader.number<int64_t>();
}

double read_float(ByteReader& reader, GgufType type) {
  return type == GgufType::kF32 ? double{reader.number<float>()} : reader.number<double>();
}

template <class T, class Read>
GgufValue read_many(uint64_t count, Read read) {
  std::vector<T> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count; ++i) values.push_back(read());
  return values;
}

GgufValue read_one(ByteReader& reader, GgufType type) {
  switch (type) {
    case GgufType::kBool:
      return reader.number<uint8_t>() != 0;
    case GgufType::kText:
      return std::string(reader.text());
    case GgufType::kF32:
    case GgufType::kF64:
      return read_float(reader, type);
    case GgufType::kI8:
    case GgufType::kI16:
    case GgufType::kI32:
    case GgufType::kI64:
      return read_signed(reader, type);
    default:
      return read_unsigned(reader, type);
  }
}

GgufValue read_array(ByteReader& reader, GgufType type, uint64_t count) {
  switch (type) {
    case GgufType::kBool:
      return read_many<bool>(count, [&] { return reader.number<uint8_t>() != 0; });
    case GgufType::kText:
      return read_many<std::string>(count, [&] { return std::string(reader.text()); });
    case GgufType::kF32:
    case GgufType::kF64:
      return read_many<double>(count, [&] { return read_float(reader, type); });
    case GgufType::kI8:
    case GgufType::kI16:
    case GgufType::kI32:
    case GgufType::kI64:
      return read_many<int64_t>(count, [&] { return read_signed(reader, type); });
    default:
      return read_many<uint64_t>(count, [&] { return read_unsigned(reader, type); });
  }
}

class FrontReader {
 public:
  explicit FrontReader(std::span<const std::byte> file) : file_(file), reader_(file) {}

  Result<GgufFront> read() {
    if (reader_.number<uint32_t>() != kMagic) {
      if (is_safetensors()) {
        return invalid_argument(
            "it is a safetensors file and no GGUF file; name it model.safetensors, in a folder "
            "with the config.json and the tokenizer of its model, and give that folder");
      }
      return invalid_argument("it does not begin with GGUF; name a GGUF file or a model folder");
    }
    const auto version = reader_.number<uint32_t>();
    if (version == kTurnedVersion) {
      return unsupported(
          "it is made for processors with the other byte order (big-endian); fetch the file for "
          "little-endian ones, or convert the model again");
    }
    if (version != 2 && version != 3) {
      return unsupported("GGUF version " + std::to_string(version) +
                         "; convert the file to version 3");
    }
    const auto num_tensors = reader_.number<uint64_t>();
    const auto num_values = reader_.number<uint64_t>();
    if (!reader_.ok()) return short_file();
    FT_RETURN_IF_ERROR(read_metadata(num_values));
    FT_RETURN_IF_ERROR(read_tensors(num_tensors));
    FT_RETURN_IF_ERROR(place_data());
    return std::move(front_);
  }

 private:
  // A header's length, then its JSON.
  bool is_safetensors() const {
    constexpr size_t kLength = 8;
    if (file_.size() <= kLength || file_[kLength] != std::byte{'{'}) return false;
    uint64_t length = 0;
    std::memcpy(&length, file_.data(), kLength);
    return length <= file_.size() - kLength;
  }
  static Status short_file() {
    return invalid_argument(std::string("it ends too early") + kFetchAgain);
  }

  Status read_metadata(uint64_t count) {
    if (count > reader_.left() / kLeastValueBytes) return short_file();
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key(reader_.text());
      const size_t begin = reader_.position();
      const auto type = static_cast<GgufType>(reader_.number<uint32_t>());
      if (!reader_.ok()) return short_file();
      FT_ASSIGN_OR_RETURN(GgufValue value, read_value(key, type));
      front_.raw_metadata[key] = file_.subspan(begin, reader_.position() - begin);
      if (!front_.metadata.emplace(key, std::move(value)).second) {
        return invalid_argument("the key '" + key + "' comes twice" + kFetchAgain);
      }
    }
    return {};
  }

  Result<GgufValue> read_value(const std::string& key, GgufType type) {
    if (type != GgufType::kArray) {
      if (least_bytes(type) == 0) return unknown_type(key, type);
      GgufValue value = read_one(reader_, type);
      if (!reader_.ok()) return short_file();
      return value;
    }
    const auto element = static_cast<GgufType>(reader_.number<uint32_t>());
    const auto count = reader_.number<uint64_t>();
    if (!reader_.ok()) return short_file();
    if (least_bytes(element) == 0) return unknown_type(key, element);
    if (count > reader_.left() / least_bytes(element)) return short_file();
    GgufValue value = read_array(reader_, element, count);
    if (!reader_.ok()) return short_file();
    return value;
  }

  static Status unknown_type(const std::string& key, GgufType type) {
    return invalid_argument("'" + key + "' has a value of the unknown type " +
                            std::to_string(static_cast<uint32_t>(type)) + kFetchAgain);
  }

  Status read_tensors(uint64_t count) {
    if (count > reader_.left() / kLeastTensorBytes) return short_file();
    for (uint64_t i = 0; i < count; ++i) {
      GgufTensor tensor;
      tensor.name = std::string(reader_.text());
      FT_RETURN_IF_ERROR(read_tensor(tensor));
      const std::string name = tensor.name;
      if (!front_.tensors.emplace(name, std::move(tensor)).second) {
        return invalid_argument("the tensor '" + name + "' comes twice" + kFetchAgain);
      }
    }
    return {};
  }

  Status read_tensor(GgufTensor& tensor) {
    const auto num_dimensions = reader_.number<uint32_t>();
    if (!reader_.ok()) return short_file();
    if (num_dimensions > kMaxDimensions) {
      return invalid_argument("the tensor '" + tensor.name + "' has " +
                              std::to_string(num_dimensions) + " dimensions" + kFetchAgain);
    }
    int64_t elements = 1;
    for (uint32_t i = 0; i < num_dimensions; ++i) {
      const auto extent = static_cast<int64_t>(reader_.number<uint64_t>());
      if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements)) {
        return invalid_argument("the tensor '" + tensor.name + "' has an impossible shape" +
                                kFetchAgain);
      }
      tensor.shape.insert(tensor.shape.begin(), extent);
    }
    const auto type = reader_.number<uint32_t>();
    const auto offset = reader_.number<uint64_t>();
    if (!reader_.ok()) return short_file();
    return check_tensor(tensor, type, offset, elements);
  }

  Status check_tensor(GgufTensor& tensor, uint32_t type, uint64_t offset, int64_t elements) {
    const std::string where = "the tensor '" + tensor.name + "'";
    tensor.type = is_of_bitnet() ? find_bitnet_type(type) : nullptr;
    if (tensor.type == nullptr) tensor.type = find_block_type(type);
    if (tensor.type == nullptr) return unread_type(where, type);
    const int64_t along_row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (along_row % tensor.type->elements != 0) {
      return invalid_argument(where + " has rows of " + std::to_string(along_row) +
                              " elements, which are no whole blocks of " +
                              std::string(tensor.type->name) + kFetchAgain);
    }
    const int64_t blocks = elements / tensor.type->elements;
    if (__builtin_mul_overflow(blocks, tensor.type->bytes, &tensor.num_bytes) ||
        offset > file_.size()) {
      return invalid_argument(where + " does not fit into the file" + kFetchAgain);
    }
    tensor.offset = static_cast<int64_t>(offset);
    return {};
  }

  bool is_of_bitnet() const {
    const auto named = front_.metadata.find("general.architecture");
    const auto* text =
        named == front_.metadata.end() ? nullptr : std::get_if<std::string>(&named->second);
    return text != nullptr && text->starts_with("bitnet");
  }

  // Numbers that other programs gave types of their own, or that llama.cpp has no more. bitnet.cpp
  // took some of the latter.
  Status unread_type(const std::string& where, uint32_t type) const {
    if (is_of_bitnet() && type >= 37 && type <= 39) {
      return unsupported(where +
                         " is of a type of bitnet.cpp's own (TL1 or TL2), which is not read; use "
                         "the file of I2_S or the model's Hugging Face folder instead");
    }
    if ((type >= 31 && type <= 33) || (type >= 36 && type <= 38)) {
      return unsupported(
          where + " has its rows put in order for one processor (type " + std::to_string(type) +
          "), which llama.cpp no longer reads either; fetch the Q4_0 or IQ4_NL file");
    }
    if (type >= 133 && type < 400) {
      return unsupported(where + " is of a type of ik_llama.cpp's own (" + std::to_string(type) +
                         "), which is not read; fetch a file of llama.cpp's types, for example "
                         "Q4_K_M");
    }
    return unsupported(where + " has the unknown type " + std::to_string(type) +
                       "; convert the model to Q4_K, Q8_0 or BF16");
  }

  // Offsets count from the first aligned byte behind the front.
  Status place_data() {
    uint64_t alignment = 32;
    const auto found = front_.metadata.find("general.alignment");
    if (found != front_.metadata.end()) {
      const auto* value = std::get_if<uint64_t>(&found->second);
      if (value == nullptr || !std::has_single_bit(*value) || *value > kMaxAlignment) {
        return invalid_argument(std::string("general.alignment is impossible") + kFetchAgain);
      }
      alignment = *value;
    }
    const uint64_t begin = (reader_.position() + alignment - 1) / alignment * alignment;
    const auto size = static_cast<int64_t>(file_.size());
    for (auto& [name, tensor] : front_.tensors) {
      tensor.offset += static_cast<int64_t>(begin);
      const int64_t tail = gguf_tail_bytes(*tensor.type);
      if (tensor.offset > size || tensor.num_bytes > size - tensor.offset - tail) {
        return invalid_argument("the tensor '" + name + "' ends behind the file's " +
                                std::to_string(size) + " bytes" + kFetchAgain);
      }
    }
    return check_places(static_cast<int64_t>(alignment));
  }

  // Data begin at aligned bytes, and no two tensors' lie over each other.
  Status check_places(int64_t alignment) const {
    std::map<int64_t, const GgufTensor*> by_offset;
    for (const auto& [name, tensor] : front_.tensors) {
      const auto [at, is_new] = by_offset.emplace(tensor.offset, &tensor);
      if (tensor.offset % alignment != 0 || (!is_new && tensor.num_bytes > 0)) {
        return invalid_argument("the data of the tensor '" + name +
                                "' do not begin where they may" + kFetchAgain);
      }
    }
    int64_t end = 0;
    for (const auto& [offset, tensor] : by_offset) {
      if (offset < end) {
        return invalid_argument("the data of the tensor '" + tensor->name +
                                "' lie over those of another" + kFetchAgain);
      }
      end = offset + tensor->num_bytes + gguf_tail_bytes(*tensor->type);
    }
    return {};
  }

  const std::span<const std::byte> file_;
  ByteReader reader_;
  GgufFront front_;
};

}  // namespace

Result<GgufFront> read_gguf_front(std::span<const std::byte> file) {
  return FrontReader(file).read();
}

}  // namespace foretoken
