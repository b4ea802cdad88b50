// The bodies of tests/gpu/bodies.h on the emulator: small rows, few replays, the same
// kernels' templates.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>

#include "generator/generate.h"
#include "generator/spec/reader.h"
#include "runtime/emulator/emulator_backend.h"
#include "tests/gpu/bodies.h"

namespace afdep::exchange_test {
namespace {

struct Layout {
  const char* name;
  const char* ratio;
  int experts;
  int top_k;
  const char* more;
};

constexpr Layout kLayouts[] = {
    {"1a1f", "1A1F", 6, 3, ""},
    {"2a2f", "2A2F", 8, 4, "routing: {id_dtype: int32}\n"},
    {"3a1f", "3A1F", 8, 2, "receive: {expert_alignment: 4, padding: zero}\n"},
    {"1a3f", "1A3F", 9, 1, ""},
    {"2a4f", "2A4F", 8, 2, "topology_order"},
    {"4a4f", "4A4F", 8, 8, "receive: {expert_alignment: 2}\n"},
};

bundle::Bundle emit(const std::string& text) {
  const Result<spec::Spec> spec = spec::parse(text, "layout.yaml");
  if (!spec.ok()) throw std::runtime_error(to_string(spec.diagnostics()));
  return require(generate(*spec, {.emit_only = true})).bundle;
}

bundle::Bundle make(const Layout& layout) {
  const bool attention_first = std::string_view(layout.more) == "topology_order";
  const std::string text = fmt::format(
      "schema_version: 1\n"
      "name: layout-{}\n"
      "model: {{hidden_size: 40, num_experts: {}, top_k: {}}}\n"
      "topology: {{ratio: \"{}\", rank_order: {}}}\n"
      "capacity: {{tokens_per_rank: 8, buckets: [1, 3, 8]}}\n"
      "kernel: {{num_sms: 2, protocol: {{1: flag_in_data, 3: flag_in_data, 8: chunked}}}}\n"
      "{}",
      layout.name, layout.experts, layout.top_k, layout.ratio,
      attention_first ? "attention_first" : "ffn_first", attention_first ? "" : layout.more);
  return emit(text);
}

class ExchangeOnEmulator : public ::testing::TestWithParam<std::tuple<Layout, Body>> {};

TEST_P(ExchangeOnEmulator, IsRight) {
  const auto& [layout, body] = GetParam();
  const bundle::Bundle bundle = make(layout);
  const auto backend = require(EmulatorBackend::create({}));
  body.run(*backend, bundle, {.eager_rounds = 4, .replays = 6});
}

INSTANTIATE_TEST_SUITE_P(Layouts, ExchangeOnEmulator,
                         ::testing::Combine(::testing::ValuesIn(kLayouts),
                                            ::testing::ValuesIn(kBodies)),
                         [](const auto& each) {
                           return std::string("of") + std::get<0>(each.param).name + "_" +
                                  std::get<1>(each.param).name;
                         });

// The spec of the GPU's folder for what no layout above has.
class HostCountsOnEmulator : public ::testing::TestWithParam<Body> {};

TEST_P(HostCountsOnEmulator, IsRight) {
  std::ifstream file("tests/gpu/host-counts-2a2f.yaml");
  const bundle::Bundle bundle = emit({std::istreambuf_iterator<char>(file), {}});
  const auto backend = require(EmulatorBackend::create({}));
  GetParam().run(*backend, bundle, {.eager_rounds = 4, .replays = 6});
}

INSTANTIATE_TEST_SUITE_P(Bodies, HostCountsOnEmulator, ::testing::ValuesIn(kBodies),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace afdep::exchange_test
