#include "model/files/forms/quantization.h"

#include <gtest/gtest.h>

#include "model/files/forms/quantization_methods.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

Result<std::optional<Quantization>> read_quantization_text(const std::string& quantization) {
  return read_quantization({{"quantization_config", Json::parse(quantization)}}, "config.json");
}

TEST(Quantization, Layouts) {
  EXPECT_FALSE(read_quantization(Json::object(), "").value().has_value());
  const auto gptq = read_quantization_text(
                        R"({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": true})")
                        .value();
  EXPECT_EQ(gptq->layout, PackLayout::kGptq);
  EXPECT_EQ(gptq->bits, 8);
  EXPECT_EQ(gptq->group, -1);
  EXPECT_TRUE(gptq->stores_zero_less_one);
  EXPECT_FALSE(read_quantization_text(
                   R"({"quant_method": "gptq", "checkpoint_format": "gptq_v2", "dynamic": {}})")
                   .value()
                   ->stores_zero_less_one);
  const auto awq =
      read_quantization_text(
          R"({"quant_method": "awq", "w_bit": 4, "q_group_size": 64, "version": "GEMM"})")
          .value();
  EXPECT_EQ(awq->layout, PackLayout::kAwq);
  EXPECT_EQ(awq->group, 64);
  const auto compressed =
      read_quantization_text(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
               "config_groups": {"group_0": {"weights": {"num_bits": 8, "strategy": "channel"}}}})")
          .value();
  EXPECT_EQ(compressed->layout, PackLayout::kCompressed);
  EXPECT_EQ(compressed->bits, 8);
  EXPECT_EQ(compressed->group, -1);
}

TEST(Quantization, Fp8) {
  const auto blocks = read_quantization_text(
                          R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                               "weight_block_size": [128, 64]})")
                          .value();
  EXPECT_EQ(blocks->layout, PackLayout::kScaled);
  EXPECT_EQ(blocks->block_rows, 128);
  EXPECT_EQ(blocks->block_cols, 64);
  const char* const others[] = {
      R"({"quant_method": "fp8", "activation_scheme": "static"})",
      R"({"quant_algo": "FP8", "kv_cache_scheme": "FP8"})",
      R"({"quant_method": "modelopt", "quant_algo": "FP8"})",
      R"({"quant_method": "compressed-tensors", "format": "float-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float",
                                              "strategy": "channel"},
                                  "input_activations": {"num_bits": 8, "dynamic": true}}}})"};
  for (const char* json : others) {
    const auto found = read_quantization_text(json);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->layout, PackLayout::kScaled) << json;
    EXPECT_EQ(found.value()->block_rows, 0);
  }
}

// What tools of others name so, whose tensors tell the rest.
TEST(Quantization, FloatsAndBytes) {
  const char* const all[] = {
      R"({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0})",
      R"({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]})",
      R"({"quant_method": "modelopt_fp4", "quant_algo": "NVFP4"})",
      R"({"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ", "pre_quant_scale": true})",
      R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
          "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "W4A16_NVFP4"}}})",
      R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp8_e4m3"}},
          "layer_quant_config": {"*.down_proj": {"weight": {"dtype": "fp4"}}}})",
      R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 4, "type": "float",
                                              "strategy": "tensor_group", "group_size": 16}}}})",
      R"({"quant_method": "compressed-tensors", "format": "int-quantized",
          "sparsity_config": {"format": "dense"}, "transform_config": {},
          "config_groups": {"g": {"weights": {"num_bits": 8, "type": "int",
                                              "strategy": "channel"},
                                  "input_activations": {"num_bits": 8}}}})",
      R"({"quant_method": "compressed-tensors", "format": "int-quantized",
          "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "strategy": "group",
                                              "group_size": 128}}}})"};
  for (const char* json : all) {
    const auto found = read_quantization_text(json);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->layout, PackLayout::kScaled) << json;
  }
  EXPECT_TRUE(read_quantization_text(all[7]).value()->rounds_activations);
  EXPECT_FALSE(read_quantization_text(all[6]).value()->rounds_activations);
}

// E5M2 stays out of products that want E4M3.
TEST(Quantization, OtherToolsAndTypes) {
  const auto e5m2 = read_quantization_text(R"({"quant_method": "fp8", "fmt": "e5m2"})").value();
  EXPECT_FALSE(e5m2->is_fp8);
  EXPECT_TRUE(read_quantization_text(R"({"quant_method": "fp8"})").value()->is_fp8);
  for (const char* json :
       {R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4}}})",
        R"({"quant_method": "torchao", "quant_type": {"default": {"_type": "X"}}})",
        R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"})",
        R"({"quant_method": "modelopt", "quant_algo": "W8A16"})"}) {
    const auto found = read_quantization_text(json);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->layout, PackLayout::kScaled) << json;
    EXPECT_FALSE(found.value()->rounds_activations);
  }
}

TEST(Quantization, MatricesThatDiffer) {
  const auto mixed =
      read_quantization_text(R"({"quant_method": "compressed-tensors", "format": "mixed-precision",
      "config_groups": {
        "a": {"format": "pack-quantized", "targets": ["re:.*mlp.*"],
              "weights": {"num_bits": 4, "type": "int", "actorder": "group", "group_size": 64}},
        "b": {"format": "float-quantized", "targets": ["Linear"],
              "weights": {"num_bits": 8, "type": "float", "strategy": "block",
                          "block_structure": [128, 64]}}}})")
          .value();
  EXPECT_TRUE(mixed->differs);
  EXPECT_EQ(mixed->layout, PackLayout::kCompressed);
  EXPECT_EQ(mixed->block_cols, 64);
  EXPECT_TRUE(read_quantization_text(
                  R"({"quant_method": "gptq", "bits": 4, "dynamic": {"+:x": {"bits": 8}}})")
                  .value()
                  ->differs);
  const auto rounds =
      read_quantization_text(R"({"quant_method": "auto-round", "bits": 4, "group_size": 128,
                               "packing_format": "auto_round:auto_gptq",
                               "extra_config": {"x": {"bits": 8}}})")
          .value();
  EXPECT_EQ(rounds->layout, PackLayout::kGptq);
  EXPECT_TRUE(rounds->differs);
}

// As some tools write it.
TEST(Quantization, UnusualForms) {
  const char* const scaled[] = {
      R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})",
      R"({"quant_method": "mxfp8", "weight_block_size": [1, 32], "scale_fmt": "ue8m0"})",
      R"({"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}})",
      R"({"quant_method": "modelopt", "quant_algo": "fp8_pb_wo"})",
      R"({"quant_method": "modelopt", "quant_algo": "mxfp4"})",
      R"({"quant_method": "w8a8_int8"})",
      R"({"quant_method": "w8a8_fp8"})",
      R"({"quant_method": "blockwise_int8", "weight_block_size": [128, 128]})",
      R"({"quant_method": "auto-round", "packing_format": "auto_round:llm_compressor",
          "data_type": "nv_fp", "bits": 4, "group_size": 16, "act_bits": 4})"};
  for (const char* json : scaled) {
    const auto found = read_quantization_text(json);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->layout, PackLayout::kScaled) << json;
  }
  for (const char* json :
       {R"({"quant_method": "compressed-tensors", "format": "dense", "config_groups": {}})",
        "{}"}) {
    const auto plain = read_quantization_text(json);
    ASSERT_TRUE(plain.ok()) << plain.status().message();
    EXPECT_FALSE(plain.value().has_value()) << json;
  }
}

// AutoRound's names for GPTQ's words, of which some store zeros as they are.
TEST(Quantization, PackingFormatsOfAutoRound) {
  const auto of = [](const std::string& format) {
    return read_quantization_text(
               (R"({"quant_method": "auto-round", "bits": 4, "packing_format": ")" + format + "\"}")
                   .c_str())
        .value()
        .value();
  };
  EXPECT_TRUE(of("auto_round:auto_gptq").stores_zero_less_one);
  EXPECT_FALSE(of("auto_round:gptqmodel").stores_zero_less_one);
  EXPECT_FALSE(of("auto_round").stores_zero_less_one);
  EXPECT_EQ(of("auto_round:gptqmodel").layout, PackLayout::kGptq);
  EXPECT_EQ(of("auto_round:fp8_static").layout, PackLayout::kScaled);
}

TEST(Quantization, QuarksWordsAndFloatsOfSixBits) {
  const auto words = read_quantization_text(
                         R"({"quant_method": "quark", "global_quant_config": {"weight":
        {"dtype": "int4", "qscheme": "per_group", "group_size": 64}},
        "export": {"pack_method": "reorder"}})")
                         .value()
                         .value();
  EXPECT_EQ(words.layout, PackLayout::kQuark);
  EXPECT_TRUE(words.is_signed);
  EXPECT_EQ(words.group, 64);
  const auto floats = read_quantization_text(
                          R"({"quant_method": "quark", "global_quant_config": {"weight":
        {"dtype": "fp6_e2m3", "qscheme": "per_group"}}, "layer_quant_config":
        {"*mlp*": {"weight": {"dtype": "fp4"}}}})")
                          .value()
                          .value();
  EXPECT_EQ(floats.layout, PackLayout::kScaled);
  EXPECT_EQ(floats.six_bits, SixBits::kE2m3);
}

TEST(Quantization, OthersAreNamedWithARemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"quant_method": "gptq", "bits": 9})", "9 bits"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
          {"g": {"weights": {"num_bits": 3}}}})",
       "3 bits"},
      {R"({"quant_method": "gptq", "bits": 2.5})", "bits 2.5"},
      {R"({"quant_method": "gptq", "checkpoint_format": "marlin"})", "checkpoint_format marlin"},
      {R"({"quant_method": "gptq", "is_marlin_format": true})", "is_marlin_format"},
      {R"({"quant_method": "gptq", "group_size": 12})", "group_size 12"},
      {R"({"quant_method": "awq", "bits": 8})", "8 bits"},
      {R"({"quant_method": "awq", "version": "gemv"})", "version gemv"},
      {R"({"quant_method": "awq", "version": "exllama"})", "version exllama"},
      {R"({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"})",
       "no config_groups"},
      {R"({"quant_method": "compressed-tensors", "format": "float-quantized",
           "config_groups": {"g": {"weights": {"num_bits": 6, "type": "float"}}}})",
       "floats of 6 bits"},
      {R"({"quant_method": "compressed-tensors", "format": "int-quantized",
           "config_groups": {"g": {"weights": {"num_bits": 2, "type": "int"}}}})",
       "integers of 2 bits"},
      {R"({"quant_method": "compressed-tensors", "format": "float-quantized",
           "transform_config": {"config_groups": {"u": {"apply": [{"location": "input"}]}}},
           "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}})",
       "transform_config"},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4_SVD"})", "part of low rank"},
      {R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
           "quantized_layers": {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "INT4_AWQ"}}})",
       "INT4_AWQ"},
      {R"({"quant_method": "quark"})", "no global_quant_config"},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "int4",
           "qscheme": "per_channel"}}})",
       "Quark's weights"},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": [{"dtype": "fp8_e4m3"},
           {"dtype": "int4"}]}})",
       "scales of two roundings"},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp6_e3m2"}},
           "layer_quant_config": {"a": {"weight": {"dtype": "fp6_e2m3"}}}})",
       "fp6_e3m2 and fp6_e2m3"},
      {R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "uint4",
           "qscheme": "per_group", "group_size": 128}}, "export": {"pack_method": "order"}})",
       "pack_method 'order'"},
      {R"({"quant_method": "auto-round", "packing_format": "auto_round:ark"})", "packing_format"},
      {R"({"quant_method": "fp8", "fmt": "e3m4"})", "fmt e3m4"},
      {R"({"quant_method": "fp8", "weight_block_size": [128]})", "weight_block_size [128]"},
      {R"({"quant_method": "fp8", "weight_block_size": [0, 128]})", "weight_block_size [0,128]"},
      {R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})", "config_groups"},
      {R"({"quant_method": "aqlm"})", "quant_method 'aqlm' is not read: its weights are sums"},
      {R"({"quant_method": "nothing"})", "quant_method 'nothing'"},
      {R"({"quant_method": 4})", "quant_method 4"},
      {R"({"bits": null})", "quant_method ''"}};
  for (const auto& [json, wanted] : cases) {
    const Status status = read_quantization_text(json).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << json;
    EXPECT_NE(status.message().find(wanted), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("GGUF file"), std::string::npos) << status.message();
  }
  EXPECT_EQ(read_quantization_text("7").status().code(), StatusCode::kInvalidArgument);
}

// What older tools wrote beside config.json.
// Every name that is listed is known; what else is missing of it may be said.
TEST(Quantization, ListedMethodsAreRead) {
  for (const QuantizationMethod& method : quantization_methods()) {
    const std::string name =
        std::string(method.names).substr(0, std::string(method.names).find(','));
    const auto result = read_quantization_text(R"({"quant_method": ")" + name + R"("})");
    EXPECT_TRUE(result.ok() || result.status().message().find("quant_method '" + name +
                                                              "' is not read") == std::string::npos)
        << result.status().message();
  }
}

TEST(Quantization, FilesOfTheirOwn) {
  const std::pair<const char*, const char*> files[] = {
      {"quantize_config.json", R"({"bits": 8, "group_size": 64, "desc_act": false})"},
      {"quant_config.json", R"({"w_bit": 4, "q_group_size": 64, "version": "GEMM"})"}};
  for (const auto& [name, text] : files) {
    const test::ScratchFolder folder;
    folder.write("config.json", "{}");
    folder.write(name, text);
    const auto config = read_config_json(folder.path());
    ASSERT_TRUE(config.ok()) << config.status().message();
    const auto found = read_quantization(config.value(), "config.json");
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found.value()->group, 64);
  }
}

// compressed-tensors' fields of before September 2024, and its package's name.
TEST(Quantization, EarlyCompressedTensors) {
  const char* groups = R"("config_groups": {"g": {"weights": {"num_bits": 8, "group_size": 64,
                          "strategy": "group", "type": "int"}}}, "format": "pack-quantized")";
  const std::string outer = R"({"compression_config": {"quant_method": "compressed-tensors", )" +
                            std::string(groups) + "}}";
  const std::string inner = R"({"compression_config": {"sparsity_config": {"format": "dense"},
                                "quantization_config": {"quant_method": "sparseml", )" +
                            std::string(groups) + "}}}";
  const std::string named = R"({"quantization_config": {"quant_method": "compressed_tensors", )" +
                            std::string(groups) + "}}";
  for (const std::string& text : {outer, inner, named}) {
    const test::ScratchFolder folder;
    folder.write("config.json", text);
    const auto config = read_config_json(folder.path());
    ASSERT_TRUE(config.ok()) << config.status().message();
    const auto found = read_quantization(config.value(), "config.json");
    ASSERT_TRUE(found.ok()) << found.status().message();
    ASSERT_TRUE(found.value().has_value()) << text;
    EXPECT_EQ(found.value()->layout, PackLayout::kCompressed);
    EXPECT_EQ(found.value()->bits, 8);
  }
  const test::ScratchFolder folder;
  folder.write("config.json",
               R"({"compression_config": {"sparsity_config": {"format": "sparse-bitmask"}}})");
  const auto config = read_config_json(folder.path());
  const auto sparse = read_quantization(config.value(), "config.json");
  ASSERT_TRUE(sparse.ok()) << sparse.status().message();
  EXPECT_FALSE(sparse.value().has_value());
}

TEST(Quantization, ModelOptsFileIsNamed) {
  const test::ScratchFolder folder;
  folder.write("config.json", "{}");
  folder.write("hf_quant_config.json",
               R"({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "INT4_AWQ"}})");
  const auto found = read_quantization(read_config_json(folder.path()).value(), "config.json");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.status().message().find("quant_method 'modelopt' (quant_algo INT4_AWQ)"),
            std::string::npos)
      << found.status().message();
  // The KV cache alone.
  for (const char* text :
       {R"({"quant_method": "compressed-tensors", "format": "dense", "config_groups": {},
            "kv_cache_scheme": {"num_bits": 8, "type": "float"}})",
        R"({"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"})"}) {
    const nlohmann::json own = {{"quantization_config", nlohmann::json::parse(text)}};
    EXPECT_FALSE(read_quantization(own, "").value().has_value()) << text;
  }
  folder.write("hf_quant_config.json",
               R"({"quantization": {"quant_algo": null, "kv_cache_quant_algo": "FP8"}})");
  EXPECT_FALSE(read_quantization(read_config_json(folder.path()).value(), "").value().has_value());
}

TEST(Quantization, OfMlxHasNoName) {
  const auto read = read_quantization(
      {{"quantization_config", {{"group_size", 64}, {"bits", 4}, {"mode", "affine"}}}}, "config");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_TRUE(read.value().has_value());
  EXPECT_EQ(read.value()->method, "mlx");
}

}  // namespace
}  // namespace foretoken
