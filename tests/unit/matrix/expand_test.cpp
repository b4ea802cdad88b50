#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "generator/matrix/matrix.h"
#include "generator/spec/resolve.h"
#include "tests/unit/matrix/sample.h"

namespace afdep::matrix {
namespace {

using ::testing::ElementsAre;

constexpr const char* kBase = R"(base:
  schema_version: 1
  name: m
  model: {hidden_size: 256, num_experts: 8, top_k: 2}
  topology: {ratio: "2A2F"}
  capacity: {tokens_per_rank: 16}
)";

std::vector<std::string> labels(const Matrix& matrix) {
  std::vector<std::string> all;
  for (const Cell& cell : expand(matrix)) all.push_back(label(matrix, cell));
  return all;
}

TEST(Expand, TheFirstAxisIsTheSlowest) {
  const Matrix matrix = matrix_of(std::string(kBase) + R"(axes:
  topology.ratio: ["1A1F", "2A2F"]
  routing.id_dtype: [int32, int64]
  model.top_k: [1, 2, 4]
)");
  EXPECT_THAT(
      labels(matrix),
      ElementsAre("ratio=1A1F id_dtype=int32 top_k=1", "ratio=1A1F id_dtype=int32 top_k=2",
                  "ratio=1A1F id_dtype=int32 top_k=4", "ratio=1A1F id_dtype=int64 top_k=1",
                  "ratio=1A1F id_dtype=int64 top_k=2", "ratio=1A1F id_dtype=int64 top_k=4",
                  "ratio=2A2F id_dtype=int32 top_k=1", "ratio=2A2F id_dtype=int32 top_k=2",
                  "ratio=2A2F id_dtype=int32 top_k=4", "ratio=2A2F id_dtype=int64 top_k=1",
                  "ratio=2A2F id_dtype=int64 top_k=2", "ratio=2A2F id_dtype=int64 top_k=4"));
  const std::vector<Cell> cells = expand(matrix);
  EXPECT_EQ(cells[4].number, 5);
  EXPECT_THAT(cells[4].choices, ElementsAre(0, 1, 1));
}

TEST(Expand, CellsHaveTheBaseAndTheirValues) {
  const Matrix matrix = matrix_of(std::string(kBase) + R"(axes:
  topology.ratio: ["1A1F", "3A4F"]
  capacity.buckets:
    - [1, 4]
    - [16]
  receive.expert_alignment: [8]
)");
  const std::vector<Cell> cells = expand(matrix);
  ASSERT_EQ(cells.size(), 4U);
  const Result<spec::Spec> spec = cell_spec(matrix, cells[2]);
  ASSERT_TRUE(spec.ok()) << to_string(spec.diagnostics());
  EXPECT_EQ(spec::attention_ranks(*spec), 3);
  EXPECT_EQ(spec::ffn_ranks(*spec), 4);
  EXPECT_THAT(spec->capacity.buckets.value, ElementsAre(1, 4));
  EXPECT_EQ(spec->expert_alignment.value, 8);
  EXPECT_EQ(spec->model.hidden_size.value, 256);
  EXPECT_THAT(matrix.base_values,
              ElementsAre(std::optional<std::string>("\"2A2F\""), std::nullopt, std::nullopt));
}

TEST(Expand, KeysOfOneAxisVaryTogether) {
  const Matrix matrix = matrix_of(std::string(kBase) + R"(axes:
  model.num_experts, model.top_k:
    - [8, 2]
    - [16, 4]
  routing.id_dtype: [int32, int64]
)");
  EXPECT_THAT(labels(matrix), ElementsAre("num_experts=8 top_k=2 id_dtype=int32",
                                          "num_experts=8 top_k=2 id_dtype=int64",
                                          "num_experts=16 top_k=4 id_dtype=int32",
                                          "num_experts=16 top_k=4 id_dtype=int64"));
}

TEST(Expand, NamesKeysInFullWhereTheLastWordIsShared) {
  const Matrix matrix = matrix_of(std::string(kBase) + R"(axes:
  timeouts.device_ms: [100]
  dispatch.dtype: [bf16]
  reply.dtype: [bf16]
)");
  EXPECT_THAT(short_keys(matrix), ElementsAre("device_ms", "dispatch.dtype", "reply.dtype"));
}

TEST(Expand, AllowsAsManyCellsAsTheLimit) {
  std::string tokens = "1";
  for (int i = 2; i <= 256; ++i) tokens += ", " + std::to_string(i);
  const Matrix matrix = matrix_of(std::string(kBase) + "axes:\n  model.top_k: [1, 2]\n" +
                                  "  capacity.tokens_per_rank: [" + tokens + "]\n");
  EXPECT_EQ(expand(matrix).size(), 512U);
}

TEST(Expand, AnIllegalCellHasTheErrorAtItsValue) {
  const Matrix matrix = matrix_of(std::string(kBase) + "axes:\n  model.top_k: [2, 9]\n");
  const std::vector<Cell> cells = expand(matrix);
  EXPECT_TRUE(cell_spec(matrix, cells[0]).ok());
  const Result<spec::Spec> refused = cell_spec(matrix, cells[1]);
  ASSERT_FALSE(refused.ok());
  ASSERT_EQ(refused.diagnostics().size(), 1U);
  EXPECT_EQ(refused.diagnostics().front().code, ErrorCode::kTopK);
  EXPECT_EQ(refused.diagnostics().front().place, (Place{"sample.yaml", 8, 20}));
}

TEST(Expand, PlacesInTheBaseAreThoseOfTheFile) {
  // top_k 2 of one expert: the rule points at top_k, which is line 4 of the matrix file.
  const Matrix matrix = matrix_of(std::string(kBase) + "axes:\n  model.num_experts: [1, 8]\n" +
                                  "  topology.ratio: [\"1A1F\"]\n");
  const Result<spec::Spec> refused = cell_spec(matrix, expand(matrix).front());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().place, (Place{"sample.yaml", 4, 52}));
}

TEST(Expand, TheBaseMayStandBehindTheAxesOrInBraces) {
  const std::string axes = "axes:\n  model.top_k: [1, 2]\n";
  EXPECT_EQ(expand(matrix_of(axes + kBase)).size(), 2U);
  const Matrix matrix = matrix_of(
      "base: {schema_version: 1, name: m, model: {hidden_size: 256, num_experts: 8},\n"
      "  topology: {ratio: \"2A2F\"}, capacity: {tokens_per_rank: 16}}\n" +
      axes);
  const Result<spec::Spec> spec = cell_spec(matrix, expand(matrix).front());
  EXPECT_TRUE(spec.ok()) << to_string(spec.diagnostics());
}

TEST(Expand, ABaseFileIsRelativeToTheMatrix) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "specs");
  std::filesystem::copy_file("specs/tiny-1a1f.yaml", folder.path() / "specs/tiny.yaml");
  const std::filesystem::path file = folder.path() / "m.yaml";
  std::ofstream(file) << "base_file: specs/tiny.yaml\naxes:\n  model.top_k: [1, 2, 3]\n";
  const Result<Matrix> matrix = load(file);
  ASSERT_TRUE(matrix.ok()) << to_string(matrix.diagnostics());
  EXPECT_EQ(expand(*matrix).size(), 3U);
  EXPECT_EQ(matrix->base_file, (folder.path() / "specs/tiny.yaml").string());
  EXPECT_TRUE(cell_spec(*matrix, expand(*matrix)[2]).ok());
}

TEST(Expand, AnExpectationMarksTheCellsThatHaveAllOfItsValues) {
  const Matrix matrix = matrix_of(kSample);
  const std::vector<Cell> cells = expand(matrix);
  ASSERT_EQ(cells.size(), 6U);
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.must_refuse.has_value(), cell.number == 3) << cell.number;
  }
  EXPECT_EQ(cells[2].must_refuse, ErrorCode::kPlacement);
}

}  // namespace
}  // namespace afdep::matrix
