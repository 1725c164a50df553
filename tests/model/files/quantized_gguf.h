#pragma once
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gguf/blocks/block_type.h"
#include "gguf/gguf_bytes.h"

namespace foretoken::test {

// A tiny Llama with random weights in blocks, of which stacked ones differ in type as in files of
// "Q4_K_M" and more than in those. Hidden and intermediate size 256, 4 heads of 64, 2 of them for
// keys, tied head.
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
      const bool even = i % 2 == 0;
      add(base + "attn_q.weight", kHidden, even ? "Q4_K" : "Q5_K");
      add(base + "attn_k.weight", kKv, even ? "Q8_0" : "Q4_1");
      add(base + "attn_v.weight", kKv, even ? "Q6_K" : "IQ4_NL");
      add(base + "attn_output.weight", kHidden, even ? "Q4_0" : "Q5_0");
      add(base + "ffn_gate.weight", kHidden, even ? "Q4_K" : "Q5_1");
      add(base + "ffn_up.weight", kHidden, even ? "Q8_0" : "TQ2_0");
      add(base + "ffn_down.weight", kHidden, even ? "Q6_K" : "Q3_K");
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

  // A scale inside a block, which makes values of about 1 together with what the codes are.
  struct Scale {
    std::string_view type;
    int at;
    float value;  // negative: of a minimum that is added
  };
  static constexpr Scale kScales[] = {{"Q8_0", 0, 1 / 74.0F},
                                      {"Q4_0", 0, 1 / 4.6F},
                                      {"Q6_K", 208, 1 / 18.0F / 74},
                                      {"Q4_K", 0, 1 / 4.6F / 36},
                                      {"Q4_K", 2, 1.6F / 36},
                                      {"Q5_K", 0, 1 / 9.2F / 36},
                                      {"Q5_K", 2, 1.6F / 36},
                                      {"Q4_1", 0, 1 / 4.6F},
                                      {"Q4_1", 2, -1.6F},
                                      {"Q5_0", 0, 1 / 9.2F},
                                      {"Q5_1", 0, 1 / 9.2F},
                                      {"Q5_1", 2, -1.6F},
                                      {"Q3_K", 108, 1 / 18.0F / 2.3F},
                                      {"Q2_K", 80, 1 / 1.1F / 8},
                                      {"Q2_K", 82, 1.4F / 8},
                                      {"IQ4_NL", 0, 1 / 67.0F},
                                      {"IQ4_XS", 0, 1 / 67.0F / 18},
                                      {"TQ2_0", 64, 1},
                                      {"F16", 0, 1}};

  static const BlockType* type_of(const std::string& name) { return find_block_type(name); }

  void vector(const std::string& name) {
    std::string ones(kHidden * 4, '\0');
    for (size_t i = 0; i < kHidden; ++i) {
      ones[4 * i + 2] = '\x80';
      ones[4 * i + 3] = '\x3f';
    }
    tensors_.push_back({name, 0, type_of("F32"), ones});
  }

  // Random bytes, and scales that make values of about `size` / 16; of F16 the signs are random.
  void add(const std::string& name, uint64_t rows, const char* type_name, float size = 1) {
    const BlockType* type = type_of(only_ != nullptr ? only_ : type_name);
    const uint64_t blocks = rows * kHidden / static_cast<uint64_t>(type->elements);
    const auto bytes = static_cast<size_t>(type->bytes);
    std::string data(blocks * bytes, '\0');
    for (char& byte : data) byte = static_cast<char>(random_());
    for (uint64_t i = 0; i < blocks; ++i) {
      char* block = data.data() + i * bytes;
      for (const Scale& scale : kScales) {
        if (scale.type != type->name) continue;
        const bool negative = scale.value < 0 || (scale.type == "F16" && random_() % 2 == 0);
        put_half(block + scale.at, size / 16 * std::abs(scale.value));
        if (negative) block[scale.at + 1] = static_cast<char>(block[scale.at + 1] | 0x80);
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
