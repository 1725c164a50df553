#include "model/weights/weight_loader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/bfloat16.h"
#include "dialled/safetensors_writer.h"
#include "kernels/gemm/gemm.h"
#include "model/files/forms/convert.h"
#include "model/files/forms/scaled_file.h"
#include "model/forward_harness.h"
#include "support/scratch_folder.h"

namespace foretoken {
namespace {

using test::model_device;
using test::ScratchFolder;

TensorToWrite floats(const std::string& name, std::vector<int64_t> shape,
                     std::vector<float> values) {
  return {name, FileDType::kF32, std::move(shape), [values](std::byte* out) {
            std::memcpy(out, values.data(), values.size() * sizeof(float));
          }};
}

// A loader over a checkpoint of a matrix, two vectors and one tensor of a foreign type.
class WeightLoaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<TensorToWrite> tensors = {floats("w", {2, 3}, {1, 2, 3, 4, 5, 6.0009765625f}),
                                                floats("a", {2}, {7, 8}), floats("b", {1}, {9})};
    ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors).ok());
    checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  }

  std::unique_ptr<WeightLoader> loader(DType dtype) {
    return WeightLoader::create(model_device(), &*checkpoint_, dtype, 9 * 4, {}, nullptr).value();
  }

  // One row times a packed matrix [n, k] of floats.
  std::vector<float> product(const void* weight, int64_t n, int64_t k, int gated = 0) {
    const auto queue = model_device().make_queue().value();
    auto* counts = arena_.take_array<StepCounts>(1, "test").value();
    auto* x = arena_.take_array<float>(static_cast<size_t>(k), "test").value();
    auto* y = arena_.take_array<float>(static_cast<size_t>(n), "test").value();
    counts->num_rows = 1;
    for (int64_t i = 0; i < k; ++i) x[i] = 1.0f / float(i + 1);
    GemmArgs args{};
    args.counts = counts;
    args.x = x;
    args.weight = weight;
    args.y = y;
    args.row_kind = RowKind::kToken;
    args.max_rows = 1;
    args.n = static_cast<int32_t>(n);
    args.k = static_cast<int32_t>(k);
    args.dtype = args.out_dtype = DType::kF32;
    args.gated = gated;
    gemm(*queue, args);
    EXPECT_TRUE(queue->drain().ok());
    return {y, y + (n >> gated)};
  }

  ScratchFolder folder_;
  std::optional<Checkpoint> checkpoint_;
  // Pinned, so that the test may read what was loaded.
  Arena arena_{model_device(), MemoryKind::kPinned};
};

TEST_F(WeightLoaderTest, TablesAndVectors) {
  const auto source = loader(DType::kF32);
  const auto table = source->table(arena_, "w", 2, 3);
  ASSERT_TRUE(table.ok()) << table.status().message();
  const TensorPart parts[] = {{"a", 2}, {"b", 1}};
  const auto vector = source->vector(arena_, parts, 0);
  ASSERT_TRUE(vector.ok()) << vector.status().message();
  ASSERT_TRUE(source->finish().ok());
  EXPECT_EQ(static_cast<const float*>(table.value().data)[5], 6.0009765625f);
  EXPECT_EQ(vector.value()[0], 7);
  EXPECT_EQ(vector.value()[2], 9);
  EXPECT_EQ(source->bytes_loaded(), 9 * 4);
  EXPECT_TRUE(source->check_all_used("X").ok());
}

// Halves stay halves where rows are looked up and floats are wanted.
TEST_F(WeightLoaderTest, TablesOfHalves) {
  const std::vector<uint16_t> halves = {0x3c00, 0xc500, 0x0001, 0x3555, 0x7bff, 0x8000};
  const TensorToWrite tensor{"w", FileDType::kF16, {2, 3}, [&](std::byte* out) {
                               std::memcpy(out, halves.data(), halves.size() * 2);
                             }};
  ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), std::vector{tensor}).ok());
  checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  const auto wide = loader(DType::kF32), rounded = loader(DType::kBF16);
  const RowTable kept = wide->table(arena_, "w", 2, 3).value();
  const RowTable bf16 = rounded->table(arena_, "w", 2, 3).value();
  EXPECT_EQ(wide->bytes_loaded(), 6 * 2);
  const void* plain = wide->plain_table(arena_, "w", 2, 3).value();
  ASSERT_TRUE(wide->finish().ok() && rounded->finish().ok());
  EXPECT_EQ(kept.dtype, DType::kF16);
  EXPECT_EQ(kept.together, 1);
  EXPECT_EQ(std::memcmp(kept.data, halves.data(), halves.size() * 2), 0);
  EXPECT_EQ(bf16.dtype, DType::kBF16);
  EXPECT_EQ(static_cast<const uint16_t*>(bf16.data)[1], bf16_from_float(-5));
  EXPECT_EQ(static_cast<const float*>(plain)[1], -5);
}

TEST_F(WeightLoaderTest, HalvesThatTakeTurns) {
  ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"),
                                std::vector{floats("pairs", {2, 4}, {1, 5, 2, 6, 3, 7, 4, 8})})
                  .ok());
  checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  const auto source = loader(DType::kF32);
  std::vector<TensorPart> parts;
  for (const int64_t first : {0, 4, 2, 6}) {
    parts.push_back({"pairs", 8, first, 2});
    parts.back().row_size = parts.back().alternating = 4;
  }
  const auto vector = source->vector(arena_, parts, 0);
  ASSERT_TRUE(vector.ok()) << vector.status().message();
  ASSERT_TRUE(source->finish().ok());
  for (int i = 0; i < 8; ++i) EXPECT_EQ(vector.value()[i], static_cast<float>(i + 1)) << i;
}

TEST_F(WeightLoaderTest, ConvertsToTheModelsType) {
  const auto source = loader(DType::kBF16);
  const auto table = source->table(arena_, "w", 2, 3);
  ASSERT_TRUE(table.ok()) << table.status().message();
  const TensorPart part[] = {{"w", 2}};
  const auto matrix = source->matrix(part, 3);
  EXPECT_TRUE(matrix.ok());
  ASSERT_TRUE(source->finish().ok());
  EXPECT_EQ(static_cast<const uint16_t*>(table.value().data)[5], bf16_from_float(6));
}

TEST_F(WeightLoaderTest, SingleRows) {
  const auto source = loader(DType::kF32);
  const int32_t ids[] = {1, 0, 1};
  const auto rows = source->matrix_rows({"w", 2}, 3, ids);
  ASSERT_TRUE(rows.ok());
  ASSERT_TRUE(source->finish().ok());
  EXPECT_EQ(source->bytes_loaded(), 9 * 4);
  EXPECT_FALSE(source->matrix_rows({"w", 3}, 2, ids).ok());
}

// A rank's rows and columns, whose products are those of the whole matrix.
TEST_F(WeightLoaderTest, PartsOfAMatrix) {
  const auto source = loader(DType::kF32);
  const TensorPart last_row[] = {{"w", 2, 1, 1}};
  const auto rows = source->matrix(last_row, 3);
  const TensorPart all_rows[] = {{"w", 2}};
  const auto columns = source->matrix(all_rows, ColumnRange{3, 1, 2});
  const TensorPart second[] = {{"a", 2, 1, 1}};
  const auto vector = source->vector(arena_, second, 0);
  ASSERT_TRUE(rows.ok() && columns.ok() && vector.ok());
  ASSERT_TRUE(source->finish().ok());
  EXPECT_FLOAT_EQ(product(rows.value().get(), 1, 3)[0], 4 + 5 / 2.0f + 6.0009765625f / 3);
  EXPECT_EQ(product(columns.value().get(), 2, 2),
            (std::vector<float>{2 + 3 / 2.0f, 5 + 6.0009765625f / 2}));
  EXPECT_EQ(vector.value()[0], 8);
  EXPECT_EQ(source->bytes_loaded(), (3 + 4 + 1) * 4);
}

TEST_F(WeightLoaderTest, ColumnsInPieces) {
  const auto source = loader(DType::kF32);
  const TensorPart all_rows[] = {{"w", 2}};
  const auto columns = source->matrix(all_rows, ColumnRange{3, 0, 2, 2, 2});
  ASSERT_TRUE(columns.ok());
  ASSERT_TRUE(source->finish().ok());
  EXPECT_EQ(product(columns.value().get(), 2, 2),
            (std::vector<float>{1 + 3 / 2.0f, 4 + 6.0009765625f / 2}));
}

// Where plain matrices lie transposed (GPT-2), tools that quantise turn them.
TEST_F(WeightLoaderTest, QuantisedMatricesLieAsTheyMultiply) {
  ScaledFile file;
  file.add("m", "F8_E4M3", {2, 3}, "\x38\x40\x44\x48\x4a\x4c");
  file.add_floats("m_scale", {1}, {0.5f});
  checkpoint_.emplace(open_scaled(folder_, file, {{"quant_method", "fp8"}}).value());
  const auto source = loader(DType::kF32);
  source->enter_layers(true);
  const TensorPart all_rows[] = {{"m", 2}};
  const auto matrix = source->matrix(all_rows, 3);
  ASSERT_TRUE(matrix.ok()) << matrix.status().message();
  ASSERT_TRUE(source->finish().ok());
  EXPECT_EQ(product(matrix.value().get(), 2, 3), (std::vector<float>{1.5f, 4.25f}));
}

// Random columns are those of the whole matrix.
TEST_F(WeightLoaderTest, RandomPartsOfAMatrix) {
  const auto source =
      WeightLoader::create(model_device(), nullptr, DType::kF32, 36, {}, nullptr).value();
  const TensorPart part[] = {{"r", 2}};
  const auto whole = source->matrix(part, 4);
  const auto left = source->matrix(part, ColumnRange{4, 0, 2});
  const auto right = source->matrix(part, ColumnRange{4, 2, 2});
  ASSERT_TRUE(whole.ok() && left.ok() && right.ok());
  ASSERT_TRUE(source->finish().ok());
  // The first two columns of x are 1 and 1/2, the others 1/3 and 1/4.
  const auto sum = product(whole.value().get(), 2, 4), first = product(left.value().get(), 2, 2);
  EXPECT_NE(first, product(right.value().get(), 2, 2));
  EXPECT_NE(first, sum);
}

TEST_F(WeightLoaderTest, RandomColumnsInPieces) {
  const auto source =
      WeightLoader::create(model_device(), nullptr, DType::kF32, 36, {}, nullptr).value();
  const TensorPart part[] = {{"r", 2}};
  const auto pieces = source->matrix(part, ColumnRange{4, 0, 2, 2, 3});
  const auto first = source->matrix(part, ColumnRange{4, 0, 1});
  const auto last = source->matrix(part, ColumnRange{4, 3, 1});
  ASSERT_TRUE(pieces.ok() && first.ok() && last.ok());
  ASSERT_TRUE(source->finish().ok());
  const auto both = product(pieces.value().get(), 2, 2);
  const auto of_first = product(first.value().get(), 2, 1);
  const auto of_last = product(last.value().get(), 2, 1);
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_FLOAT_EQ(both[row], of_first[row] + of_last[row] / 2);
  }
}

TEST_F(WeightLoaderTest, IntegersAndOptionalTensors) {
  const int64_t values[] = {5, -6};
  const TensorToWrite tensor{
      "ids", FileDType::kI64, {2}, [&](std::byte* out) { std::memcpy(out, values, 16); }};
  ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), {&tensor, 1}).ok());
  checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  const auto source = loader(DType::kF32);
  EXPECT_EQ(source->integers("ids", 2).value(), (std::vector<int64_t>{5, -6}));
  EXPECT_TRUE(source->check_all_used("X").ok());
  EXPECT_EQ(source->integers("ids", 3).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(source->has_optional("ids"));
  EXPECT_FALSE(source->has_optional("w"));
  const auto random =
      WeightLoader::create(model_device(), nullptr, DType::kF32, 36, {}, nullptr).value();
  EXPECT_TRUE(random->has("w"));
  EXPECT_FALSE(random->has_optional("w"));
}

TEST_F(WeightLoaderTest, WrongShapeIsNamed) {
  const auto source = loader(DType::kF32);
  const TensorPart part[] = {{"w", 3}};
  const auto matrix = source->matrix(part, 2);
  ASSERT_FALSE(matrix.ok());
  EXPECT_EQ(matrix.status().code(), StatusCode::kInvalidArgument);
  const std::string& message = matrix.status().message();
  for (const char* said : {"model.safetensors", "tensor 'w'", "[2, 3]", "[3, 2]"}) {
    EXPECT_NE(message.find(said), std::string::npos) << message;
  }
}

TEST_F(WeightLoaderTest, MissingAndUnusedTensorsAreNamed) {
  const auto source = loader(DType::kF32);
  EXPECT_EQ(source->table(arena_, "q", 1, 1).status().code(), StatusCode::kNotFound);
  const Status unused = source->check_all_used("LlamaForCausalLM");
  EXPECT_EQ(unused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(unused.message().find("LlamaForCausalLM has no use for tensor 'a'"), std::string::npos);
  source->ignore("a");
  EXPECT_NE(source->check_all_used("X").message().find("'b'"), std::string::npos);
}

TEST_F(WeightLoaderTest, ForeignTypeIsNamed) {
  std::string file(8, '\0');
  const std::string header = R"({"w":{"dtype":"I16","shape":[1,2],"data_offsets":[0,4]}})";
  file[0] = static_cast<char>(header.size());
  folder_.write("model.safetensors", file + header + std::string(4, '\0'));
  checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  const auto table = loader(DType::kF32)->table(arena_, "w", 1, 2);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(table.status().message().find("tensor 'w' has dtype I16"), std::string::npos);
}

// Matrices of several parts and pieces, from a file and random, have the rows of their tensors.
TEST_F(WeightLoaderTest, MatricesHaveTheirRows) {
  constexpr int64_t kRows = 700, kCols = 2048;
  const auto values = [](const std::string& name) {
    std::vector<float> all(kRows * kCols);
    fill_random(name, kRows * kCols, 1.0f / std::sqrt(float(kCols)), DType::kF32, all.data());
    return all;
  };
  const std::vector<TensorToWrite> tensors = {floats("p", {kRows, kCols}, values("p")),
                                              floats("q", {kRows, kCols}, values("q"))};
  ASSERT_TRUE(write_safetensors(folder_.file("model.safetensors"), tensors).ok());
  checkpoint_.emplace(Checkpoint::open(folder_.path()).value());
  const int64_t bytes = 2 * kRows * kCols * 4;
  const auto random =
      WeightLoader::create(model_device(), nullptr, DType::kF32, bytes, {}, nullptr).value();
  const auto stored = loader(DType::kF32);
  const std::vector<float> p = values("p"), q = values("q");
  const WeightPart parts[] = {{p.data(), kRows}, {q.data(), kRows}};
  PackedWeight want(model_device(), model_device().pack_weight(parts, kCols, DType::kF32));
  const auto expected = product(want.get(), 2 * kRows, kCols);
  const auto pairs = WeightOrder::kGateUp;
  PackedWeight gates(model_device(), model_device().pack_weight(parts, kCols, DType::kF32, pairs));
  const auto gated = product(gates.get(), 2 * kRows, kCols, 1);
  const TensorPart names[] = {{"p", kRows}, {"q", kRows}};
  std::vector<int32_t> ids(kRows);
  for (int32_t i = 0; i < kRows; ++i) ids[static_cast<size_t>(i)] = i / 50 % 2 == 0 ? i : kRows - i;
  for (WeightLoader* source : {random.get(), stored.get()}) {
    const auto matrix = source->matrix(names, kCols);
    const auto gate_up = source->matrix(names, kCols, pairs);
    const auto rows = source->matrix_rows({"q", kRows}, kCols, ids);
    const auto table = source->table(arena_, "p", kRows, kCols);
    ASSERT_TRUE(matrix.ok() && gate_up.ok() && rows.ok() && table.ok());
    ASSERT_TRUE(source->finish().ok());
    EXPECT_EQ(product(matrix.value().get(), 2 * kRows, kCols), expected);
    EXPECT_EQ(product(gate_up.value().get(), 2 * kRows, kCols, 1), gated);
    const auto picked = product(rows.value().get(), kRows, kCols);
    for (size_t i = 0; i < ids.size(); ++i) {
      ASSERT_EQ(picked[i], expected[static_cast<size_t>(kRows + ids[i])]) << i;
    }
    EXPECT_EQ(std::memcmp(table.value().data, p.data(), kRows * kCols * sizeof(float)), 0);
  }
}

// What reading finds out ends the load, and nothing goes on filling memory that is given back.
TEST_F(WeightLoaderTest, FilesCutShortWhileLoading) {
  std::filesystem::resize_file(folder_.file("model.safetensors"), 100);
  const auto source = loader(DType::kF32);
  const TensorPart part[] = {{"w", 2}};
  const auto matrix = source->matrix(part, 3);
  const Status status = matrix.ok() ? source->finish() : matrix.status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("became shorter"), std::string::npos) << status.message();
}

TEST_F(WeightLoaderTest, StopsWhenCancelled) {
  const std::atomic<bool> cancelled = true;
  const auto source =
      WeightLoader::create(model_device(), &*checkpoint_, DType::kF32, 36, {}, &cancelled).value();
  EXPECT_EQ(source->table(arena_, "w", 2, 3).status().code(), StatusCode::kAborted);
}

TEST_F(WeightLoaderTest, TooMuchForTheDevice) {
  const auto source = WeightLoader::create(model_device(), &*checkpoint_, DType::kF32,
                                           int64_t{1} << 60, {}, nullptr);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace foretoken
