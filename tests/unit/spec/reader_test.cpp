#include "generator/spec/reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <ctime>

#include "generator/spec/supported.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

// A file in a folder of its own, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : folder_(std::filesystem::temp_directory_path() /
                ("afdep-spec-test-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream(path(), std::ios::binary) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path path() const { return folder_ / "spec.yaml"; }
  [[nodiscard]] std::filesystem::path folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

std::string only_error(const Result<Spec>& spec) {
  if (spec.ok()) return "accepted";
  if (spec.diagnostics().size() != 1) return to_string(spec.diagnostics());
  return to_string(spec.diagnostics().front().code) + " " + spec.diagnostics().front().message;
}

TEST(Load, ReadsAFile) {
  const TemporaryFile file(kMinimal);
  const Result<Spec> spec = load(file.path());
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->file, file.path().string());
  EXPECT_EQ(spec->model.hidden_size.value, 256);
  EXPECT_EQ(spec->model.hidden_size.place, (Place{file.path().string(), 4, 3}));
  EXPECT_TRUE(spec->model.hidden_size.given);
}

TEST(Load, RefusesADirectory) {
  const TemporaryFile file("");
  EXPECT_EQ(only_error(load(file.folder())), "E000 is a directory, not a spec file");
}

TEST(Load, RefusesAMissingFile) {
  EXPECT_EQ(only_error(load("no/such/spec.yaml")),
            "E000 cannot open the file: No such file or directory");
}

TEST(Load, RefusesAFileWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const TemporaryFile file(kMinimal);
  std::filesystem::permissions(file.path(), std::filesystem::perms::none);
  EXPECT_EQ(only_error(load(file.path())), "E000 cannot open the file: Permission denied");
}

TEST(Load, RefusesALargeFileWithoutReadingIt) {
  const TemporaryFile file("");
  std::filesystem::resize_file(file.path(), 64'000'000);
  const std::clock_t start = std::clock();
  EXPECT_EQ(only_error(load(file.path())), "E000 the file is larger than 1000000 bytes");
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 2);
}

TEST(Parse, RefusesALargeText) {
  EXPECT_EQ(only_error(parse(std::string(1'000'001, '#'), "f.yaml")),
            "E000 the file is larger than 1000000 bytes");
  EXPECT_EQ(only_error(parse(std::string(1'000'000, '#'), "f.yaml")), "E000 the file is empty");
}

TEST(Parse, StopsAfterAHundredErrors) {
  std::string text = kMinimal;
  for (int i = 0; i < 50'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  const Result<Spec> spec = parse(text, "f.yaml");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.diagnostics().size(), 100U);
  EXPECT_NE(spec.diagnostics().back().note.find("only the first 100 errors are shown"),
            std::string::npos);
}

TEST(Parse, RefusesHostileNestingAtOnce) {
  for (const char* open : {"[", "{a: ", "- ", "? "}) {
    std::string text;
    while (text.size() < 900'000) text += open;
    const std::clock_t start = std::clock();  // CPU time: other programs may keep the machine busy
    const Result<Spec> spec = parse(text, "f.yaml");
    ASSERT_FALSE(spec.ok());
    EXPECT_EQ(spec.diagnostics().front().code, ErrorCode::kSpecUnreadable) << open;
    EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC) << open;
  }
}

TEST(Parse, RefusesAnAliasBombWithoutExpandingIt) {
  // Expanded, the last line would hold 9^100 items.
  std::string text = "a0: &a0 [x]\n";
  for (int i = 1; i <= 100; ++i) {
    const std::string name = "a" + std::to_string(i);
    std::string items;
    for (int j = 0; j < 9; ++j) items += "*a" + std::to_string(i - 1) + ", ";
    text += name + ": &" + name + " [" + items + "]\n";
  }
  const Result<Spec> spec = parse(text, "f.yaml");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.diagnostics().size(), 100U);
  EXPECT_EQ(spec.diagnostics().front().code, ErrorCode::kSpecKey);
}

TEST(Parse, GivesTheDefaultsOfTheSchema) {
  const Result<Spec> spec = parse(kMinimal, "f.yaml");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->topology.scale.value, 1);
  EXPECT_EQ(spec->topology.roles.value, Roles::kDisjoint);
  EXPECT_EQ(spec->topology.rank_order.value, RankOrder::kFfnFirst);
  EXPECT_TRUE(spec->topology.domains.value.empty());
  EXPECT_EQ(spec->topology.transport.value, Transport::kAuto);
  EXPECT_EQ(spec->capacity.buckets.value, std::vector<int>{512});
  EXPECT_FALSE(spec->capacity.buckets.given);
  EXPECT_EQ(spec->id_dtype.value, IdDtype::kInt64);
  EXPECT_EQ(spec->dispatch_dtype.value, DispatchDtype::kBf16);
  EXPECT_EQ(spec->dispatch_quantize.value, Quantize::kCaller);
  EXPECT_EQ(spec->reply_dtype.value, ReplyDtype::kBf16);
  EXPECT_EQ(spec->reply_min_bucket.value, 0);
  EXPECT_FALSE(spec->reply_allow_lossy.value);
  EXPECT_EQ(spec->weights_applied_by.value, AppliedBy::kFfn);
  EXPECT_EQ(spec->receive_layout.value, ReceiveLayout::kExpertMajor);
  EXPECT_EQ(spec->expert_alignment.value, 1);
  EXPECT_EQ(spec->receive_padding.value, Padding::kUnspecified);
  EXPECT_FALSE(spec->host_counts.value);
  EXPECT_EQ(spec->placement.kind.value, PlacementKind::kContiguous);
  EXPECT_EQ(spec->placement.redundant_experts.value, 0);
  EXPECT_EQ(spec->shared_experts_count.value, 0);
  EXPECT_EQ(spec->shared_experts_mode.value, SharedMode::kNone);
  EXPECT_EQ(spec->arch.value, std::vector<Arch>{Arch::kSm90a});
  EXPECT_EQ(spec->num_sms.value, NumSms{});
  EXPECT_EQ(spec->protocol.value, Protocol::kAuto);
  EXPECT_EQ(spec->microbatches.value, 1);
  EXPECT_EQ(spec->graph_mode.value, GraphMode::kCapture);
  EXPECT_EQ(spec->route_check.value, RouteCheck::kReport);
  EXPECT_FALSE(spec->stats_cost.value);
  EXPECT_EQ(spec->device_timeout_ms.value, 30000);
  EXPECT_EQ(spec->host_timeout_ms.value, 120000);
  EXPECT_EQ(spec->cache_mode.value, CacheMode::kJit);
}

TEST(Parse, TakesAByteOrderMarkAndCrLf) {
  std::string text = "\xEF\xBB\xBF";
  for (const char c : std::string_view(kMinimal))
    text += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Result<Spec> spec = parse(text, "f.yaml");
  ASSERT_TRUE(spec.ok()) << to_string(spec.diagnostics());
  EXPECT_EQ(spec->name.value, "minimal");
  EXPECT_EQ(spec->topology.ratio.value, "2A2F");
  EXPECT_EQ(spec->topology.ratio.place, (Place{"f.yaml", 8, 3}));
}

TEST(Parse, CountsColumnsInBytes) {
  const Result<Spec> spec = parse("name: {\"é\": 1, x: 2}\n", "f.yaml");
  ASSERT_FALSE(spec.ok());
  const Result<Spec> flow = parse("model: {\"é\": 1, top_kk: 2}\n", "f.yaml");
  ASSERT_FALSE(flow.ok());
  EXPECT_EQ(flow.diagnostics().back().place, (Place{"f.yaml", 1, 18}));
}

}  // namespace
}  // namespace afdep::spec
