#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "device/dtype.h"
#include "dialled/dialled_writer.h"
#include "dialled/safetensors_writer.h"
#include "model/config/architecture.h"
#include "model/config/config.h"

namespace foretoken {

// Deviation that all layers of a dialled model together add to a residual of deviation 1.
inline constexpr float kDialledPerturbation = 0.05f;

// The number of the word that stands at an id, and the other way round. Ids 0 and 1 are no words.
int32_t dialled_word(const DialledShape& shape, int32_t id);
int32_t dialled_id(const DialledShape& shape, int32_t word);

// Collects the tensors of a dialled checkpoint, in order.
class DialledTensors {
 public:
  DialledTensors(DType dtype, int32_t hidden_size) : dtype_(dtype), hidden_size_(hidden_size) {}

  void add_constant(const std::string& name, int64_t size, float value);
  // Random numbers of the given deviation.
  void add_vector(const std::string& name, int64_t size, float deviation);
  // A matrix whose outputs have the given deviation for inputs of deviation 1, and its bias.
  void add_linear(const std::string& name, int64_t rows, int64_t cols, float deviation, bool bias);
  // Such matrices as one tensor [count, rows, cols], the outputs being rows or, where they are
  // turned, columns.
  void add_stack(const std::string& name, const std::vector<int64_t>& size, bool turned,
                 float deviation);
  // Rows of random numbers of the given deviation.
  void add_rows(const std::string& name, int64_t rows, int64_t cols, float deviation);
  // A matrix of square blocks side by side, each a multiple of the identity, plus random numbers
  // that give outputs of the given deviation.
  void add_blocks(const std::string& name, int64_t size, std::vector<float> gains, float deviation);
  // A matrix of square blocks below each other, each a multiple of the identity.
  void add_gates(const std::string& name, int64_t size, std::vector<float> gains);
  // A row for each entry of `words`: the code of that word, hidden_size elements of `scale` or
  // -`scale`, exact in every type, which nothing else resembles; zeros where the word is negative.
  void add_codes(const std::string& name, std::vector<int32_t> words, float scale);
  void add_integers(const std::string& name, std::vector<int64_t> values);
  void add_flags(const std::string& name, std::vector<bool> values);

  std::vector<TensorToWrite> take() { return std::move(tensors_); }

 private:
  void add(const std::string& name, FileDType dtype, std::vector<int64_t> size,
           std::function<void(std::byte*)> fill);
  void add_weights(const std::string& name, std::vector<int64_t> size,
                   std::function<void(std::byte*)> fill);

  const DType dtype_;
  const int32_t hidden_size_;
  std::vector<TensorToWrite> tensors_;
};

// The words whose codes are the rows of an output matrix: at each id the word that it follows.
std::vector<int32_t> dialled_head_words(const DialledShape& shape,
                                        const std::vector<int32_t>& successors);

// The scale of output matrices: logits of 16 to 32 where the codes agree.
float dialled_head_scale(int32_t hidden_size);

// A decoder layer under the names of its architecture, which adds `deviation` twice. Without
// `input_norm` it has none, as in EAGLE.
struct DialledLayer {
  const DialledShape& shape;
  const ModelConfig& config;
  const DecoderTraits& traits;
  float deviation;
  bool input_norm = true;
  bool experts = false;  // it is a mixture
};
void add_dialled_layer(const DialledLayer& layer, const std::string& base, DialledTensors* out);
// Its second half alone.
void add_dialled_mlp(const DialledLayer& layer, const std::string& base, DialledTensors* out);

}  // namespace foretoken
