#include "gguf/encoder_architectures.h"

#include <string>
#include <vector>

#include "gguf/vocabulary/encoder_tokenizer.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

// Of judges, too: llama.cpp has RoBERTa's names for all of them.
constexpr GgufName kBertModel[] = {{"position_embd.weight", "model.embed_positions.weight"},
                                   {"token_embd_norm.weight", "model.embed_norm.weight"},
                                   {"token_embd_norm.bias", "model.embed_norm.bias"},
                                   {"cls.weight", "classifier.dense.weight"},
                                   {"cls.bias", "classifier.dense.bias"},
                                   {"cls.output.weight", "classifier.out_proj.weight"},
                                   {"cls.output.bias", "classifier.out_proj.bias"}};
// Norms behind each part.
constexpr GgufName kBertTensors[] = {{"attn_qkv", "self_attn.qkv_proj"},
                                     {"attn_output_norm", "self_attn_layer_norm"},
                                     {"layer_output_norm", "final_layer_norm"}};
constexpr GgufKey kBertKeys[] = {{"attention.layer_norm_epsilon", "layer_norm_eps"}};

constexpr const char* kBertJudge = "BertForSequenceClassification";

// The first rows of a table of positions, of padding, are cut off in files, and so RoBERTa is BERT.
// The converter leaves out what BERT puts between a text's state and its judgement, and one word of
// DistilBERT's; RoBERTa's is whole.
Status read_bert_file(const GgufFile& file, Json& config) {
  const auto& tensors = file.tensors();
  const auto kinds = tensors.find("token_types.weight");
  if (kinds != tensors.end() && kinds->second.shape.size() == 2) {
    config["type_vocab_size"] = kinds->second.shape[0];
  }
  FT_ASSIGN_OR_RETURN(const int marks, gguf_pair_marks(file));
  // RoBERTa has one kind of texts, whatever its table says.
  if (marks == 2) config["type_vocab_size"] = 1;
  const bool judges = tensors.contains("cls.output.weight");
  if (!judges) return {};
  if (!tensors.contains("cls.weight") || kinds == tensors.end()) {
    return unsupported(file.path() +
                       ": files of BERT and DistilBERT that judge texts lack a part that their "
                       "converter leaves out (the pooler), without which scores are wrong; use the "
                       "model's Hugging Face folder");
  }
  config["architectures"] = Json::array({kBertJudge});
  FT_ASSIGN_OR_RETURN(const auto* labels, file.texts("bert.classifier.output_labels"));
  for (size_t i = 0; labels != nullptr && i < labels->size(); ++i) {
    config["id2label"][std::to_string(i)] = (*labels)[i];
  }
  return {};
}

constexpr GgufArchitecture kEncoderArchitectures[] = {
    {.name = "bert",
     .hf_class = "BertModel",
     .model_type = "bert",
     .tensors = kBertTensors,
     .model_tensors = kBertModel,
     .keys = kBertKeys,
     .fields = R"({"hidden_act": "gelu", "is_causal": false})",
     .read = read_bert_file},
    {.name = "nomic-bert",
     .hf_class = "NomicBertModel",
     .model_type = "nomic_bert",
     .tensors = kBertTensors,
     .model_tensors = kBertModel,
     .keys = kBertKeys,
     .fields = R"({"is_causal": false})"},
    {.name = "eurobert",
     .hf_class = "EuroBertModel",
     .model_type = "eurobert",
     .fields = R"({"is_causal": false})"},
    {.name = "llama-embed",
     .hf_class = "LlamaBidirectionalModel",
     .model_type = "llama_bidirec",
     .interleaves_heads = true,
     .fields = R"({"is_causal": false})"},
};

}  // namespace

std::span<const GgufArchitecture> encoder_gguf_architectures() { return kEncoderArchitectures; }

}  // namespace foretoken
