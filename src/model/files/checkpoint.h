#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/container/gguf_file.h"
#include "gguf/hf_names.h"
#include "gguf/model_files.h"
#include "model/files/containers/joined_tensor.h"
#include "model/files/containers/safetensors.h"
#include "model/files/containers/torch_file.h"
#include "model/files/containers/unpacked_tensor.h"
#include "model/files/forms/affine_tensor.h"
#include "model/files/forms/bnb_tensor.h"
#include "model/files/forms/float_zero_tensor.h"
#include "model/files/forms/made_tensor.h"
#include "model/files/forms/mlx_names.h"
#include "model/files/forms/packed_tensor.h"
#include "model/files/forms/scaled_tensor.h"
#include "model/files/weight_files.h"

namespace foretoken {

struct FpQuantMatrix;
struct GemmaMatrix;
struct MlxLayout;

// A tensor of a GGUF file, under its name there; lives as long as the file.
TensorView gguf_tensor_view(const GgufTensor& tensor);

// The weights of a model folder: model.safetensors, or the shards that
// model.safetensors.index.json names; or those of a GGUF file, under the names that they have in
// such a folder. Quantised matrices of several tensors (model/files/forms/quantization.h) are one,
// X.weight, and so are codes with their scales (model/files/forms/scaled_names.h). Embeddings that
// are narrower than the layers (OPT-350m) are multiplied by what widens them, and matrices that are
// ternary while a model runs (BitNet, online) are so here. Tensors stay mapped, not read, until
// they are used.
class Checkpoint {
 public:
  // NotFound when the folder has no weights; InvalidArgument for anything wrong inside them, for
  // example a tensor in two shards.
  static Result<Checkpoint> open(const ModelFiles& model);

  // NotFound names the tensor and the folder.
  Result<const TensorView*> find(const std::string& name) const;
  // Puts a square matrix with ones on its diagonal in place of what the files have under the name.
  void add_identity(const std::string& name, int64_t size);
  // By their names in a folder; TensorView::name is the file's own.
  const std::map<std::string, const TensorView*>& tensors() const { return tensors_; }
  // What says which tensors there must be, for messages: "its config.json".
  std::string config_name() const;
  // An error that names fields of a folder, with what a GGUF file calls them.
  Status with_own_fields(const Status& status) const;
  // Whether the tool that quantised the weights rounds activations too, which is not done here.
  bool rounds_activations() const { return rounds_activations_; }
  // Whether a model may do without the tensor: one that only training reads, a bias of zeros, which
  // GPTQ writes beside every matrix, or one of a file that the index does not name.
  bool may_be_left_out(const TensorView& tensor) const;

 private:
  Status add_unpacked();
  Status add_marlin_scales(const TensorView& scales, const TensorView& words);
  Status add_packed();
  Status add_scaled();
  Status add_bnb();
  Status add_fp_quant();
  Result<std::unique_ptr<TensorView>> unturned_fp_quant(const Quantization& quantization,
                                                        const FpQuantMatrix& matrix);
  Result<std::unique_ptr<TensorView>> with_turned_columns(std::unique_ptr<TensorView> view,
                                                          const TensorView& turn);
  Status add_gemma();
  Status take_gemma_words(const GemmaMatrix& matrix, TensorView* view);
  Status take_gemma_bytes(const GemmaMatrix& matrix, TensorView* view);
  Status add_mlx();
  Status add_float_zeros();
  Result<std::unique_ptr<TensorView>> with_column_scales(std::unique_ptr<TensorView> view,
                                                         const TensorView& scales);
  Status add_mlx_floats(const MlxMatrix& matrix);
  void take_names_of_mlx(const MlxLayout* layout);
  void mark_whole_norms(const MlxLayout* layout);
  Status add_online();
  // Of layouts of their own that makers of models have.
  Status take_names_of_makers();
  Status pair_rows_of_makers();
  // Of encoders, all of whose texts are of the first kind where there are two.
  Status take_names_of_encoders();
  Status add_kinds_of_texts(const TensorView& kinds, const TensorView* tasks);
  void put_made(const std::string& name, std::vector<float> row, Making making);
  Status add_meta(const std::vector<std::filesystem::path>& files);
  Status add_meta_parts(const std::string& name, const nlohmann::json& config,
                        const std::vector<const TensorView*>& parts);
  Status add_widened();
  Status add_product(const std::string& name, const TensorView& plain, const std::string& factor,
                     bool turned);
  Status add_matrix(std::unique_ptr<TensorView> view, const std::vector<std::string>& parts);
  std::string config_path() const;
  Result<Quantization> read_own_quantization() const;
  Status add_gguf(const ModelFiles& model);
  // Llama's query and key rows: whole heads of an even number of rows.
  static Status interleave(int64_t head_dim, TensorView* view);
  Status add_gguf_scales();
  Result<std::unique_ptr<TensorView>> scaled_gguf_view(const GgufTensor& tensor);
  Status divide_projections(const std::string& name, const TensorView& joined,
                            const nlohmann::json& config);
  Status add_numbers(const GgufName& number, int64_t num_layers);
  Status add_file(const std::string& path);
  void add_shared(const SafetensorsFile& file);
  Status add_tensors(const std::map<std::string, TensorView>& tensors, const std::string& path);
  Status check_index(const std::string& index_path) const;
  void add_unindexed(const std::string& path, const std::string& index_path);
  void rename(std::string (*new_name)(const std::string& name));
  // Takes off what a trainer or transformers put before every name.
  void unwrap_names();
  // Undoes what transformers 5.24 does to OLMo's hybrid layers when it saves them.
  Status repair_resaved();
  Status repair_convolution(const std::string& base);
  void repair_dense_layer(const std::string& base);
  void repair_embedding();
  void repair_delta_outputs();
  // Of ERNIE with vision, whose mixtures hold experts of images behind those of texts: leaves those
  // of texts, with the router [experts, hidden] and its correction [1, experts].
  Status take_text_experts();
  Status take_text_router(const std::string& mixture, int64_t* count);

  std::string folder_;
  bool rounds_activations_ = false;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::vector<std::unique_ptr<TorchFile>> torch_files_;
  std::shared_ptr<const GgufFile> gguf_;
  const GgufArchitecture* architecture_ = nullptr;  // of gguf_
  std::set<std::string> unindexed_;                 // paths of files that the index does not name
  std::vector<std::unique_ptr<TensorView>> made_tensors_;
  std::vector<std::unique_ptr<float>> made_numbers_;
  std::vector<std::unique_ptr<std::vector<uint16_t>>> made_rows_;  // of bfloat16
  std::vector<std::unique_ptr<UnpackedTensor>> unpacked_;
  std::vector<std::unique_ptr<JoinedTensor>> joined_;
  std::vector<std::unique_ptr<PackedTensor>> packed_;
  std::vector<std::unique_ptr<ScaledTensor>> scaled_;
  std::vector<std::unique_ptr<AffineTensor>> affine_;
  std::vector<std::unique_ptr<BnbTensor>> bnb_;
  std::vector<std::unique_ptr<FloatZeroTensor>> float_zeros_;
  std::vector<std::unique_ptr<MadeTensor>> made_;
  std::map<std::string, const TensorView*> tensors_;
};

}  // namespace foretoken
