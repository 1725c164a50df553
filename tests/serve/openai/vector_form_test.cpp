#include "serve/openai/vector_form.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

VectorForm read(const Json& body, std::string* error = nullptr) {
  JsonFields fields(body, "");
  const VectorForm form = read_vector_form(fields);
  EXPECT_EQ(fields.status().ok(), error == nullptr) << body;
  if (error != nullptr) *error = fields.status().message();
  return form;
}

TEST(VectorForm, NumbersAndBytesOfEveryType) {
  const std::vector<float> values = {1.0f, -2.0f};
  EXPECT_EQ(vector_json(values, read(Json::object())), Json({1.0, -2.0}));
  const Json base64 = {{"encoding_format", "base64"}};
  EXPECT_EQ(vector_json(values, read(base64)), "AACAPwAAAMA=");
  Json body = base64;
  body["endianness"] = "big";
  EXPECT_EQ(vector_json(values, read(body)), "P4AAAMAAAAA=");
  body["embed_dtype"] = "bfloat16";
  EXPECT_EQ(vector_json(values, read(body)), "P4DAAA==");
  body["endianness"] = "little";
  body["embed_dtype"] = "float16";
  EXPECT_EQ(vector_json(values, read(body)), "ADwAwA==");
  EXPECT_EQ(vector_json({}, read(body)), "");
}

// As numpy.packbits makes them of what is above 0.
TEST(VectorForm, SignsAreBitsOfBytes) {
  const std::vector<float> values = {0.5f, -1, 0, 2, -3, -4, -5, 6, 7, -8};
  EXPECT_EQ(vector_json(values, read({{"encoding_format", "ubinary"}})), Json({0x91, 0x80}));
  EXPECT_EQ(vector_json(values, read({{"encoding_format", "binary"}})), Json({0x91 - 128, 0}));
  Json body = {{"output_dtype", "ubinary"}};
  EXPECT_EQ(vector_json(values, read(body)), Json({0x91, 0x80}));
  body["encoding_format"] = "base64";
  EXPECT_EQ(vector_json(values, read(body)), "kYA=");
  EXPECT_EQ(vector_json({}, read({{"encoding_format", "binary"}})), Json::array());
}

TEST(VectorForm, WhatIsWrongIsNamed) {
  for (const char* name : {"encoding_format", "embed_dtype", "endianness", "output_dtype"}) {
    std::string error;
    read({{name, "fp8_e4m3"}}, &error);
    EXPECT_NE(error.find(std::string("'") + name + "'"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace foretoken
