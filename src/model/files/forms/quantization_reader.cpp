#include "model/files/forms/quantization_reader.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr const char* kRemedy =
    "; use a checkpoint of AutoGPTQ, GPTQModel (gptq), AutoAWQ (gemm) or compressed-tensors of 2, "
    "4 or 8 bits, one of FP8 (e4m3), NVFP4 or MXFP4, the unquantised model, or a GGUF file";

}  // namespace

std::string QuantizationReader::text(const char* name, const char* otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  refuse(std::string(name) + " " + value->dump().substr(0, 80));
  return otherwise;
}

int64_t QuantizationReader::integer(const char* name, const char* other_name, int64_t otherwise) {
  const Json* value = find(name);
  if (value == nullptr) value = find(other_name);
  if (value == nullptr) return otherwise;
  const bool fits =
      value->is_number_integer() && value->get<double>() >= -1 && value->get<double>() <= 1 << 24;
  if (fits) return value->get<int64_t>();
  refuse(std::string(name) + " " + value->dump().substr(0, 80));
  return otherwise;
}

void QuantizationReader::want_none(const char* name) {
  const Json* value = find(name);
  if (value != nullptr && *value != false && !value->empty()) {
    refuse(std::string("'") + name + "' " + value->dump().substr(0, 80));
  }
}

void QuantizationReader::want(bool holds, const std::string& otherwise) {
  if (!holds) refuse(otherwise);
}

void QuantizationReader::want_because(bool holds, const std::string& what, const std::string& why) {
  if (holds || !status_.ok()) return;
  status_ = unsupported(where_ + ": quantization_config with " + what + " is not read: " + why);
}

const Json* QuantizationReader::find(const char* name) const {
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

void QuantizationReader::refuse(const std::string& what) {
  if (!status_.ok()) return;
  status_ = unsupported(where_ + ": quantization_config with " + what + " is not read" + kRemedy);
}

std::string bits_text(int64_t bits) { return std::to_string(bits) + " bits"; }

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

bool is_empty_field(const Json* value) { return value == nullptr || value->empty(); }

void read_block(QuantizationReader& reader, const char* name, Quantization* out) {
  const Json* block = reader.find(name);
  if (block == nullptr) return;
  int64_t rows = 0, cols = 0;
  int read = 0;
  const std::string text = block->is_string() ? block->get<std::string>() : "";
  const bool is_text =
      text.size() < 16 &&
      std::sscanf(text.c_str(), "%" SCNd64 "x%" SCNd64 "%n", &rows, &cols, &read) == 2 &&
      read == std::ssize(text) && rows > 0 && cols > 0;
  if (is_text) {
    out->block_rows = rows;
    out->block_cols = cols;
    return;
  }
  const bool fits = block->is_array() && block->size() == 2 &&
                    std::all_of(block->begin(), block->end(), [](const Json& size) {
                      return size.is_number_integer() && size >= 1 && size <= 1 << 20;
                    });
  if (!fits) return reader.want(false, std::string(name) + " " + block->dump().substr(0, 80));
  out->block_rows = (*block)[0].get<int64_t>();
  out->block_cols = (*block)[1].get<int64_t>();
}

void set_scaled(Quantization* out) {
  out->layout = PackLayout::kScaled;
  out->bits = 8;
}

}  // namespace foretoken
