#pragma once
#include <random>
#include <string>
#include <vector>

#include "gguf/block_type.h"
#include "gguf/gguf_bytes.h"

namespace foretoken::test {

// A tiny Llama with random weights in blocks, of which stacked ones differ in type as in files of
// "Q4_K_M". Hidden and intermediate size 256, 4 heads of 64, 2 of them for keys, tied head.
class QuantizedGguf {
 public:
  static constexpr uint64_t kHidden = 256, kKv = 128;

  // Every matrix in blocks of type `only`, or, by null, of mixed types.
  std::string write(const std::string& path, int layers, int vocab, const char* only = nullptr) {
    only_ = only;
    add("token_embd.weight", static_cast<uint64_t>(vocab), "Q6_K", 0.5F);
    vector("output_norm.weight");
    for (int i = 0; i < layers; ++i) {
      const std::string base = "blk." + std::to_string(i) + ".";
      vector(base + "attn_norm.weight");
      vector(base + "ffn_norm.weight");
      add(base + "attn_q.weight", kHidden, "Q4_K");
      add(base + "attn_k.weight", kKv, "Q8_0");
      add(base + "attn_v.weight", kKv, "Q6_K");
      add(base + "attn_output.weight", kHidden, "Q4_0");
      add(base + "ffn_gate.weight", kHidden, "Q4_K");
      add(base + "ffn_up.weight", kHidden, "Q8_0");
      add(base + "ffn_down.weight", kHidden, "Q6_K");
    }
    GgufBytes file(tensors_.size(), 7);
    file.text_value("general.architecture", "llama").u32_value("llama.embedding_length", kHidden);
    file.u32_value("llama.attention.head_count", 4).u32_value("llama.attention.head_count_kv", 2);
    file.u32_value("llama.block_count", static_cast<uint32_t>(layers));
    file.u32_value("llama.feed_forward_length", kHidden);
    file.u32_value("llama.context_length", 512);
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      if (tensor.rows == 0) {
        file.tensor(tensor.name, {kHidden}, tensor.type->number, offset);
      } else {
        file.tensor(tensor.name, {kHidden, tensor.rows}, tensor.type->number, offset);
      }
      offset += (tensor.data.size() + 31) / 32 * 32;
    }
    file.align();
    for (const Tensor& tensor : tensors_) {
      for (const char byte : tensor.data) file.number(byte);
      file.align();
    }
    return file.write(path);
  }

 private:
  struct Tensor {
    std::string name;
    uint64_t rows;  // 0: a vector
    const BlockType* type;
    std::string data;
  };

  static const BlockType* type_of(const std::string& name) {
    for (const BlockType& type : block_types()) {
      if (type.name == name) return &type;
    }
    return nullptr;
  }

  void vector(const std::string& name) {
    std::string ones(kHidden * 4, '\0');
    for (size_t i = 0; i < kHidden; ++i) {
      ones[4 * i + 2] = '\x80';
      ones[4 * i + 3] = '\x3f';
    }
    tensors_.push_back({name, 0, type_of("F32"), ones});
  }

  // Random bytes, and scales that make values of about `size` / 16.
  void add(const std::string& name, uint64_t rows, const char* type_name, float size = 1) {
    const BlockType* type = type_of(only_ != nullptr ? only_ : type_name);
    const uint64_t blocks = rows * kHidden / static_cast<uint64_t>(type->elements);
    const auto bytes = static_cast<size_t>(type->bytes);
    std::string data(blocks * bytes, '\0');
    for (char& byte : data) byte = static_cast<char>(random_());
    for (uint64_t i = 0; i < blocks; ++i) {
      char* block = data.data() + i * bytes;
      const std::string_view kind = type->name;
      if (kind == "Q8_0") put_half(block, size / 16 / 74);
      if (kind == "Q4_0") put_half(block, size / 16 / 4.6F);
      if (kind == "Q6_K") put_half(block + 208, size / 16 / 18 / 74);
      if (kind == "Q4_K") {
        put_half(block, size / 16 / 4.6F / 36);
        put_half(block + 2, size / 16 * 1.6F / 36);
      }
    }
    tensors_.push_back({name, rows, type, data});
  }

  // The half of a power of two near `value`, which is a normal one or a few bits below.
  static void put_half(char* at, float value) {
    int exponent = 15;
    while (value < 1 && exponent > 1) value *= 2, --exponent;
    const auto bits = static_cast<uint16_t>(exponent << 10);
    at[0] = static_cast<char>(bits & 255);
    at[1] = static_cast<char>(bits >> 8);
  }

  std::mt19937 random_{11};
  const char* only_ = nullptr;
  std::vector<Tensor> tensors_;
};

}  // namespace foretoken::test
