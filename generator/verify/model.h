// What an exchange must deliver, computed one value at a time from the contract alone. It shares
// nothing with the kernels, the plan or the templates: agreement of the two is evidence.
#pragma once

#include <cstdint>
#include <vector>

namespace afdep::verify {

using Bf16 = std::uint16_t;  // the bits

struct Shape {
  int sources = 0;
  int workers = 0;
  int hidden = 0;  // elements
  int experts = 0;
  int top_k = 0;
  int alignment = 1;  // rows

  [[nodiscard]] int local_experts() const { return experts / workers; }
};

// What one source passes to an exchange. Row-major.
struct SourceInput {
  int tokens = 0;
  std::vector<Bf16> x;            // [tokens][hidden]
  std::vector<std::int64_t> ids;  // [tokens][top_k]; -1 skips
  std::vector<float> weights;     // [tokens][top_k]
};

// One live row of a worker's receive tensor.
struct ReceivedRow {
  int row = 0;  // in the receive tensor
  int source = 0;
  int token = 0;
  int choice = 0;
};

struct WorkerOutput {
  std::vector<std::int32_t>
      ends;  // [local experts]: expert e occupies [align_up(ends[e-1]), ends[e])
  std::vector<std::int32_t> counts;  // [local experts]: live rows
  std::vector<ReceivedRow> rows;     // ascending: by expert, then source, then token
  [[nodiscard]] int rows_used() const { return ends.empty() ? 0 : ends.back(); }
};

// What each worker receives. An id outside [0, experts), or equal to an earlier one of its token,
// is treated as -1.
std::vector<WorkerOutput> receive_model(const Shape& shape, const std::vector<SourceInput>& inputs);

// What each source collects, [tokens][hidden], when worker w replies with replies[w],
// [rows][hidden]. A worker adds a token's rows in order of choice in FP32 and rounds once to BF16;
// the source adds the workers' sums in order of worker in FP32 and rounds once. A token without an
// expert gets +0.
std::vector<std::vector<Bf16>> collect_model(const Shape& shape,
                                             const std::vector<SourceInput>& inputs,
                                             const std::vector<WorkerOutput>& received,
                                             const std::vector<std::vector<Bf16>>& replies);

float to_float(Bf16 bits);
Bf16 to_bf16(float value);  // to nearest, ties to even; every NaN becomes 0x7fff

}  // namespace afdep::verify
