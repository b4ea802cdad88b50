// The matrices of specs/matrix: they read, and are as large as their purpose allows.
#include <gtest/gtest.h>

#include <set>

#include "generator/generate.h"
#include "generator/matrix/matrix.h"
#include "generator/spec/digest.h"
#include "generator/spec/resolve.h"

namespace afdep::matrix {
namespace {

// Every cell is planned, and only those that the file says are refused.
std::vector<spec::Spec> legal_cells(const Matrix& matrix) {
  std::vector<spec::Spec> specs;
  for (const Cell& cell : expand(matrix)) {
    Result<spec::Spec> spec = cell_spec(matrix, cell);
    EXPECT_EQ(spec.ok(), !cell.must_refuse.has_value()) << label(matrix, cell);
    if (!spec.ok()) continue;
    const Result<plan::ExchangePlan> plan = plan_exchange(*spec);
    EXPECT_TRUE(plan.ok()) << label(matrix, cell);
    specs.push_back(std::move(*spec));
  }
  return specs;
}

TEST(ShippedMatrices, TheOneForEveryChangeMeetsTheTraps) {
  const Result<Matrix> matrix = load("specs/matrix/ci.yaml");
  ASSERT_TRUE(matrix.ok()) << to_string(matrix.diagnostics());
  const std::size_t cells = expand(*matrix).size();
  EXPECT_GE(cells, 60U);
  EXPECT_LE(cells, 100U);
  const std::vector<spec::Spec> specs = legal_cells(*matrix);
  EXPECT_LT(specs.size(), cells) << "an expected refusal is part of it";
  std::set<std::string> met;
  std::set<std::string> digests;
  for (const spec::Spec& spec : specs) {
    digests.insert(spec::digest(spec));
    const int a = spec::attention_ranks(spec);
    const int f = spec::ffn_ranks(spec);
    const int k = spec.model.top_k.value;
    if (k == 1) met.insert("K = 1");
    if (f > k) met.insert("F > K");
    if (f == 1) met.insert("F = 1");
    if (a < f) met.insert("A < F");
    if (a > f && a % f != 0) met.insert("A % F != 0");
    if (spec.protocol.value == spec::Protocol::kChunked) met.insert("chunked");
    if (spec.protocol.value == spec::Protocol::kBulk) met.insert("bulk");
    if (spec.protocol.value == spec::Protocol::kFlagInData) {
      met.insert("tail " + std::to_string(spec.model.hidden_size.value * 2 % 12));
    }
    if (spec.id_dtype.value == spec::IdDtype::kInt32) met.insert("int32");
    if (spec.expert_alignment.value > 1) met.insert("alignment");
    if (spec.receive_padding.value == spec::Padding::kZero) met.insert("zero padding");
  }
  EXPECT_EQ(met, (std::set<std::string>{"chunked", "bulk", "K = 1", "F > K", "F = 1", "A < F",
                                        "A % F != 0", "tail 0", "tail 4", "tail 8", "int32",
                                        "alignment", "zero padding"}));
  EXPECT_EQ(digests.size(), specs.size()) << "no two cells are the same";
}

TEST(ShippedMatrices, TheNightlyOneIsLegal) {
  const Result<Matrix> matrix = load("specs/matrix/nightly.yaml");
  ASSERT_TRUE(matrix.ok()) << to_string(matrix.diagnostics());
  EXPECT_GT(expand(*matrix).size(), 300U);
  legal_cells(*matrix);
}

}  // namespace
}  // namespace afdep::matrix
