// The bodies of bodies.h on a GPU, for every bundle in $AFDEP_BUNDLES or in ../bundles of
// the program's folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/bundle/bundle.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/gpu/bodies.h"
#include "tests/gpu/counted_new.h"

namespace afdep::exchange_test {
namespace {

namespace fs = std::filesystem;

fs::path bundle_folder() {
  if (const char* folder = std::getenv("AFDEP_BUNDLES"); folder != nullptr) return folder;
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path() / "bundles";
}

std::vector<std::string> bundle_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(bundle_folder(), error), end; !error && it != end;
       it.increment(error)) {
    if (fs::exists(it->path() / bundle::kManifestPath)) names.push_back(it->path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// One for the process: creating a context takes a second.
const Result<std::unique_ptr<Backend>>& gpu() {
  static const Result<std::unique_ptr<Backend>> kGpu = make_cuda_backend();
  return kGpu;
}

// Each bundle on a backend of its own, kept while its tests run: how SMs split L1 and shared memory
// follows from what a backend has loaded, and is here what it is in a process with this bundle
// alone.
Backend& backend_for(const std::string& bundle) {
  static std::pair<std::string, std::unique_ptr<Backend>> last;
  if (last.first != bundle || last.second == nullptr) {
    last.second.reset();
    last = {bundle, make_cuda_backend().value()};
  }
  return *last.second;
}

class ExchangeOnGpu : public ::testing::TestWithParam<std::tuple<std::string, Body>> {};

TEST_P(ExchangeOnGpu, IsRight) {
  if (!gpu().ok()) GTEST_SKIP() << to_string(gpu().diagnostics());
  const auto& [name, body] = GetParam();
  const Result<bundle::Bundle> bundle = bundle::read_bundle(bundle_folder() / name);
  ASSERT_TRUE(bundle.ok()) << to_string(bundle.diagnostics());
  Scale scale;
  // A memory checker makes everything a hundred times slower.
  if (const char* replays = std::getenv("AFDEP_TEST_REPLAYS"); replays != nullptr) {
    scale.replays = std::max(1, std::atoi(replays));
    scale.eager_rounds = std::min(scale.eager_rounds, scale.replays);
  }
  body.run(backend_for(name), *bundle, scale);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ExchangeOnGpu);
INSTANTIATE_TEST_SUITE_P(Bundles, ExchangeOnGpu,
                         ::testing::Combine(::testing::ValuesIn(bundle_names()),
                                            ::testing::ValuesIn(kBodies)),
                         [](const auto& each) {
                           std::string name = std::get<0>(each.param);
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name + "_" + std::get<1>(each.param).name;
                         });

// Neither do the backend's launches and checks. The driver allocates as it likes, but not by
// operator new.
TEST(Enqueue, NoOperationAllocates) {
  if (!gpu().ok()) GTEST_SKIP() << to_string(gpu().diagnostics());
  if (bundle_names().empty()) GTEST_SKIP() << "no bundles in " << bundle_folder();
  const Result<bundle::Bundle> bundle = bundle::read_bundle(bundle_folder() / bundle_names()[0]);
  ASSERT_TRUE(bundle.ok()) << to_string(bundle.diagnostics());
  const bundle::Manifest& m = bundle->manifest();
  Group group(**gpu(), m.ranks());
  World world(group, *bundle, {});
  Generator random(13);
  const int bucket = m.buckets.front().tokens;
  const ExchangeData data = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kRandom);
  world.fill(0, data);
  world.enqueue(0, data);  // the harness keeps receipts: their places are made here
  group.synchronize();
  const std::int64_t before = testing::allocations();
  world.enqueue(0, data);
  EXPECT_EQ(testing::allocations() - before, 0);
  group.synchronize();
  world.expect(0, data, "after the counted exchange");
}

// So that a folder without bundles does not pass for a tested one.
TEST(Bundles, CoverTheLayouts) {
  if (!gpu().ok()) GTEST_SKIP() << to_string(gpu().diagnostics());
  std::set<std::string> layouts;
  for (const std::string& name : bundle_names()) {
    const Result<bundle::Bundle> bundle = bundle::read_bundle(bundle_folder() / name);
    ASSERT_TRUE(bundle.ok()) << to_string(bundle.diagnostics());
    const bundle::Manifest& m = bundle->manifest();
    layouts.insert(std::to_string(m.attention_ranks) + "A" + std::to_string(m.ffn_ranks) + "F");
  }
  EXPECT_THAT(layouts, ::testing::IsSupersetOf(
                           {"1A1F", "2A2F", "3A1F", "1A3F", "5A2F", "4A4F", "6A2F", "7A1F"}))
      << "in " << bundle_folder();
}

}  // namespace
}  // namespace afdep::exchange_test
