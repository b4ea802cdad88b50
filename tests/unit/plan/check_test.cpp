#include "generator/plan/check.h"

#include <gmock/gmock.h>

#include <functional>

#include "tests/unit/plan/sample_plan.h"

namespace afdep::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::sample_plan;

// The messages without their common beginning `plan rule `.
std::vector<std::string> broken(const ExchangePlan& plan) {
  constexpr std::string_view kPrefix = "plan rule ";
  std::vector<std::string> messages;
  const Result<void> result = check(plan);
  if (result.ok()) return messages;
  for (const Diagnostic& diagnostic : result.diagnostics()) {
    EXPECT_EQ(diagnostic.code, ErrorCode::kVerification);
    EXPECT_TRUE(diagnostic.message.starts_with(kPrefix)) << diagnostic.message;
    messages.push_back(diagnostic.message.substr(kPrefix.size()));
  }
  return messages;
}

std::vector<std::string> broken_by(const std::function<void(ExchangePlan&)>& change) {
  ExchangePlan plan = sample_plan();
  change(plan);
  return broken(plan);
}

Region& region(RoleLayout& layout, std::string_view name) {
  for (Region& one : layout.window) {
    if (one.name == name) return one;
  }
  throw std::logic_error("no region " + std::string(name));
}

Signal& signal(BucketPlan& bucket, std::string_view name) {
  for (Signal& one : bucket.signals) {
    if (one.name == name) return one;
  }
  throw std::logic_error("no signal " + std::string(name));
}

Kernel& kernel(BucketPlan& bucket, Operation operation) {
  for (Kernel& one : bucket.kernels) {
    if (one.operation == operation) return one;
  }
  throw std::logic_error("no kernel");
}

// Removes the step of this kind that names `signal_name`.
void drop_step(Kernel& from, StepKind kind, std::string_view signal_name) {
  std::erase_if(from.steps,
                [&](const Step& s) { return s.kind == kind && s.signal == signal_name; });
}

TEST(PlanCheck, GoodPlansPass) {
  EXPECT_THAT(broken(sample_plan()), IsEmpty());
  EXPECT_THAT(broken(sample_plan({.attention_ranks = 1, .ffn_ranks = 1})), IsEmpty());
  EXPECT_THAT(broken(sample_plan({.attention_ranks = 7, .ffn_ranks = 1})), IsEmpty());
  EXPECT_THAT(broken(sample_plan({.attention_ranks = 48, .ffn_ranks = 16, .top_k = 8})), IsEmpty());
  EXPECT_THAT(broken(sample_plan({.attention_ranks = 1, .ffn_ranks = 4, .top_k = 1})), IsEmpty());
}

TEST(PlanCheck, MessageHasCodeAndRule) {
  ExchangePlan plan = sample_plan();
  plan.window_bytes = 0;
  EXPECT_EQ(to_string(check(plan).diagnostics()),
            "error[E704]: plan rule \"window\": window_bytes = 0, but the larger role needs 8192\n"
            "  note: docs/plan.md gives the rule's reason; the planner broke it\n");
}

TEST(PlanCheck, Shape) {
  EXPECT_THAT(
      broken_by([](auto& p) { p.attention_ranks = 63; }),
      ::testing::Contains("\"shape\": 63 attention and 2 ffn ranks; each role needs one, 64 "
                          "are the most in all"));
  EXPECT_THAT(broken_by([](auto& p) { p.experts = 15; }),
              ElementsAre("\"shape\": 15 experts do not divide over 2 ffn ranks"));
  EXPECT_THAT(broken_by([](auto& p) { p.top_k = 0; }),
              ElementsAre("\"shape\": top_k = 0 of 16 experts"));
  EXPECT_THAT(broken_by([](auto& p) { p.row_bytes = 112; }),
              ElementsAre("\"shape\": row_bytes = 112 for 64 BF16 elements, in units of 16 bytes"));
  EXPECT_THAT(broken_by([](auto& p) { p.arches.clear(); }), ElementsAre("\"shape\": no arch"));
  EXPECT_THAT(broken_by([](auto& p) { p.buckets.clear(); }), ElementsAre("\"shape\": no bucket"));
  EXPECT_THAT(broken_by([](auto& p) { std::swap(p.buckets[0], p.buckets[1]); }),
              ElementsAre("\"shape\": bucket 2 after 8: buckets ascend from 1"));
  EXPECT_THAT(broken_by([](auto& p) { p.capacity = 7; }),
              ElementsAre("\"shape\": bucket 8 exceeds the capacity of 7 tokens"));
  EXPECT_THAT(broken_by([](auto& p) { p.ffn.role = Role::kAttention; }),
              ElementsAre("\"shape\": the ffn layout is marked attention"));
  EXPECT_THAT(
      broken_by([](auto& p) { p.has_view = true; }),
      ::testing::Contains("\"shape\": has_view with 2 ffn ranks: only one rank's reply is a "
                          "token's output"));
}

TEST(PlanCheck, Region) {
  EXPECT_THAT(broken_by([](auto& p) { region(p.ffn, "rows").offset += 16; }),
              ElementsAre("\"region\": ffn window \"rows\": offset 3088 is not a multiple of 256",
                          "\"overlap\": ffn window \"rows\" [3088, 7184) and \"row_flags\" [7168, "
                          "8192) overlap"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.ffn, "rows").peer_bytes = 768; }),
      ElementsAre("\"region\": ffn window \"rows\": peer_bytes = 768 is less than 8 items of "
                  "128 bytes"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.ffn, "rows").half_bytes = 1024; }),
      ElementsAre("\"region\": ffn window \"rows\": half_bytes = 1024 is less than 2 peers of "
                  "1024 bytes"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.attention, "done").halves = 0; }),
      ElementsAre("\"region\": attention window \"done\": 0 halves of 1 peers of 2 items of "
                  "4 bytes"));
  EXPECT_THAT(
      broken_by([](auto& p) {
        Region& flags = region(p.ffn, "row_flags");
        flags.peer_bytes = 250;
      }),
      ElementsAre("\"region\": ffn window \"row_flags\": strides of 4, 250 and 512 bytes are "
                  "not multiples of 4"));
  EXPECT_THAT(broken_by([](auto& p) { region(p.ffn, "row_flags").name = "rows"; }),
              ::testing::Contains("\"region\": ffn window \"rows\": the name is given twice"));
  EXPECT_THAT(
      broken_by([](auto& p) {
        p.ffn.window_bytes -= 256;
        p.window_bytes -= 256;
      }),
      ElementsAre("\"region\": ffn window \"row_flags\": ends at 8192, past the 7936 bytes of "
                  "the layout"));
}

TEST(PlanCheck, Overlap) {
  EXPECT_THAT(broken_by([](auto& p) { region(p.ffn, "row_flags").offset -= 256; }),
              ElementsAre("\"overlap\": ffn window \"rows\" [3072, 7168) and \"row_flags\" [6912, "
                          "7936) overlap"));
}

TEST(PlanCheck, Window) {
  EXPECT_THAT(broken_by([](auto& p) { p.window_bytes = p.attention.window_bytes; }),
              ElementsAre("\"window\": window_bytes = 7424, but the larger role needs 8192"));
}

TEST(PlanCheck, Kernel) {
  EXPECT_THAT(broken_by([](auto& p) {
                kernel(p.buckets[0], Operation::kReply).protocol = Protocol::kChunked;
              }),
              ElementsAre("\"kernel\": bucket 2: reply: protocol chunked, but the bucket's is "
                          "flag_in_data"));
  EXPECT_THAT(broken_by([](auto& p) { kernel(p.buckets[0], Operation::kReply).bucket = 8; }),
              ElementsAre("\"kernel\": bucket 2: reply: is planned for bucket 8"));
  EXPECT_THAT(
      broken_by([](auto& p) { kernel(p.buckets[0], Operation::kReply).template_path.clear(); }),
      ElementsAre("\"kernel\": bucket 2: reply: has no template"));
  EXPECT_THAT(broken_by([](auto& p) {
                auto& constants = kernel(p.buckets[0], Operation::kReply).constants;
                constants[1].name = "kTopK";
              }),
              ElementsAre("\"kernel\": bucket 2: reply: constant kTopK is given twice"));
  EXPECT_THAT(
      broken_by([](auto& p) { kernel(p.buckets[0], Operation::kReply).constants[0].why.clear(); }),
      ElementsAre("\"kernel\": bucket 2: reply: constant \"kTopK\" lacks a name or a reason"));
  EXPECT_THAT(
      broken_by([](auto& p) { kernel(p.buckets[1], Operation::kReceive).role = Role::kAttention; }),
      ::testing::Contains("\"kernel\": bucket 8: receive: is planned for attention ranks"));
  EXPECT_THAT(broken_by([](auto& p) {
                Kernel again = kernel(p.buckets[0], Operation::kCollect);
                again.symbol += "_again";
                p.buckets[0].kernels.push_back(again);
              }),
              ElementsAre("\"kernel\": bucket 2: 2 collect kernels, expected 1"));
}

TEST(PlanCheck, ViewNeedsItsKernelWhereRepliesAreRows) {
  ExchangePlan plan = sample_plan({.attention_ranks = 3, .ffn_ranks = 1});
  plan.buckets[1].kernels.pop_back();
  EXPECT_THAT(broken(plan),
              ElementsAre("\"kernel\": bucket 8: 0 collect_view kernels, expected 1"));
}

TEST(PlanCheck, Launch) {
  const auto with = [](const std::function<void(Kernel&)>& change) {
    return broken_by([&](ExchangePlan& p) { change(kernel(p.buckets[0], Operation::kDispatch)); });
  };
  EXPECT_THAT(with([](Kernel& k) { k.grid = 0; }),
              ElementsAre("\"launch\": bucket 2: dispatch: grid = 0"));
  EXPECT_THAT(with([](Kernel& k) { k.threads = 100; }),
              ElementsAre("\"launch\": bucket 2: dispatch: threads = 100 are not 1 to 32 warps"));
  EXPECT_THAT(with([](Kernel& k) { k.blocks_per_sm = 6; }),
              ElementsAre("\"launch\": bucket 2: dispatch: blocks_per_sm = 6 of 384 threads; an SM "
                          "holds 2048"));
  EXPECT_THAT(with([](Kernel& k) { k.register_ceiling = 256; }),
              ElementsAre("\"launch\": bucket 2: dispatch: register_ceiling = 256; a thread has at "
                          "most 255"));
  EXPECT_THAT(
      with([](Kernel& k) { k.shared_bytes = 232449; }),
      ElementsAre("\"launch\": bucket 2: dispatch: shared_bytes = 232449; a CTA has at most "
                  "232448"));
}

TEST(PlanCheck, Symbol) {
  EXPECT_THAT(broken_by([](auto& p) {
                kernel(p.buckets[1], Operation::kReply).symbol =
                    kernel(p.buckets[0], Operation::kReply).symbol;
              }),
              ElementsAre("\"symbol\": bucket 8: reply: afdep_sample_reply_b2 names another kernel "
                          "too"));
  EXPECT_THAT(broken_by([](auto& p) { kernel(p.buckets[1], Operation::kReply).symbol.clear(); }),
              ElementsAre("\"symbol\": bucket 8: reply: has no symbol"));
}

TEST(PlanCheck, Signal) {
  EXPECT_THAT(
      broken_by([](auto& p) { signal(p.buckets[0], "rows").to = Role::kAttention; }),
      ::testing::Contains("\"signal\": bucket 2: \"rows\" goes from attention to attention: a "
                          "signal crosses roles"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.attention, "done").name = "finished"; }),
      ElementsAre("\"signal\": bucket 2: \"done\" is awaited in \"done\", which the attention "
                  "window lacks",
                  "\"signal\": bucket 8: \"done\" is awaited in \"done\", which the attention "
                  "window lacks"));
  EXPECT_THAT(broken_by([](auto& p) { signal(p.buckets[1], "rows").data_region = "replies"; }),
              ElementsAre("\"signal\": bucket 8: \"rows\" covers \"replies\", which the ffn window "
                          "lacks"));
  EXPECT_THAT(broken_by([](auto& p) { signal(p.buckets[1], "done").data_region = "replies"; }),
              ElementsAre("\"signal\": bucket 8: done word \"done\" covers data in \"replies\""));
  EXPECT_THAT(broken_by([](auto& p) { signal(p.buckets[0], "rows").data_region = "rows"; }),
              ElementsAre("\"signal\": bucket 2: packet \"rows\" is awaited in \"row_packets\" and "
                          "covers \"rows\""));
  EXPECT_THAT(broken_by([](auto& p) { signal(p.buckets[0], "rows").generation_lag = 1; }),
              ElementsAre("\"signal\": bucket 2: \"rows\" lags 1 generations: data is of its own "
                          "generation"));
  EXPECT_THAT(
      broken_by([](auto& p) {
        Signal& rows = signal(p.buckets[0], "rows");
        rows.flag_region = rows.data_region = "table";
      }),
      ::testing::Contains("\"signal\": bucket 2: \"table\" and \"rows\" are both awaited in "
                          "table"));
  EXPECT_THAT(
      broken_by([](auto& p) { p.buckets[0].signals.push_back(p.buckets[0].signals[0]); }),
      ::testing::Contains("\"signal\": bucket 2: the name \"table\" is empty or given twice"));
}

TEST(PlanCheck, Pairing) {
  EXPECT_THAT(broken_by([](auto& p) {
                drop_step(kernel(p.buckets[0], Operation::kDispatch), StepKind::kPublish, "table");
              }),
              ElementsAre("\"pairing\": bucket 2: no kernel publishes \"table\""));
  EXPECT_THAT(broken_by([](auto& p) {
                drop_step(kernel(p.buckets[0], Operation::kReceive), StepKind::kAwait, "table");
              }),
              ElementsAre("\"pairing\": bucket 2: no kernel awaits \"table\""));
  EXPECT_THAT(
      broken_by([](auto& p) {
        kernel(p.buckets[0], Operation::kReceive).steps.push_back({StepKind::kPublish, "done", ""});
      }),
      ElementsAre("\"pairing\": bucket 2: both receive and reply publish \"done\""));
  EXPECT_THAT(
      broken_by([](auto& p) {
        kernel(p.buckets[0], Operation::kCollect).steps.push_back({StepKind::kAwait, "counts", ""});
      }),
      ElementsAre("\"pairing\": bucket 2: collect awaits \"counts\", which is no signal of "
                  "the bucket"));
  EXPECT_THAT(
      broken_by([](auto& p) {
        kernel(p.buckets[0], Operation::kReply).steps.push_back({StepKind::kAwait, "replies", ""});
      }),
      ::testing::Contains("\"pairing\": bucket 2: reply runs on ffn ranks and awaits "
                          "\"replies\", which goes from ffn to attention"));
  EXPECT_THAT(
      broken_by([](auto& p) {
        kernel(p.buckets[0], Operation::kCollect).steps.push_back({StepKind::kPublish, "rows", ""});
      }),
      ElementsAre("\"pairing\": bucket 2: both dispatch and collect publish \"rows\""));
  EXPECT_THAT(
      broken_by([](auto& p) {
        kernel(p.buckets[0], Operation::kReply).steps.push_back({StepKind::kCompute, "rows", ""});
      }),
      ElementsAre("\"pairing\": bucket 2: reply: step compute names signal \"rows\""));
}

TEST(PlanCheck, Capacity) {
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.ffn, "rows").peers = 1; }),
      ElementsAre("\"capacity\": bucket 8: \"rows\" needs 2 peers of \"rows\", which has 1"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.ffn, "rows").items = 7; }),
      ElementsAre("\"capacity\": bucket 8: \"rows\" needs 1024 bytes a peer for 8 tokens in "
                  "\"rows\", which has 896"));
  // A row of 128 bytes is 11 packets of 12.
  EXPECT_THAT(broken_by([](auto& p) { region(p.ffn, "row_packets").item_bytes = 160; }),
              ElementsAre("\"capacity\": bucket 2: \"rows\" needs 352 bytes a peer for 2 tokens in "
                          "\"row_packets\", which has 320"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.ffn, "row_packets").item_bytes = 180; }),
      ElementsAre("\"capacity\": bucket 2: \"rows\" sends packets to \"row_packets\", whose "
                  "items are 180 bytes"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.ffn, "table").items = 4; }),
      ElementsAre("\"capacity\": bucket 8: \"table\" needs 128 bytes a peer for 8 tokens in "
                  "\"table\", which has 64"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.attention, "done").items = 1; }),
      ElementsAre("\"capacity\": bucket 2: \"done\" needs 2 words in \"done\", which has 1",
                  "\"capacity\": bucket 8: \"done\" needs 2 words in \"done\", which has 1"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.ffn, "row_flags").item_bytes = 8; }),
      ElementsAre("\"capacity\": bucket 8: \"rows\" is awaited in \"row_flags\", whose items "
                  "are 8 bytes, not a 4-byte word"));
}

TEST(PlanCheck, RepliesNeedABlockAWorkerOrAReplySlot) {
  ExchangePlan plan = sample_plan({.attention_ranks = 1, .ffn_ranks = 4, .top_k = 2});
  region(plan.attention, "replies").peers = 1;
  EXPECT_THAT(
      broken(plan),
      ElementsAre("\"capacity\": bucket 8: \"replies\" needs 2 peers of \"replies\", which has "
                  "1"));
}

TEST(PlanCheck, Halves) {
  EXPECT_THAT(broken_by([](auto& p) { region(p.ffn, "rows").halves = 1; }),
              ElementsAre("\"halves\": bucket 8: \"rows\" is written into \"rows\", which has one "
                          "half: generation g + 1 could overwrite what is still read for g"));
  EXPECT_THAT(
      broken_by([](auto& p) { region(p.attention, "reply_flags").halves = 1; }),
      ElementsAre("\"halves\": bucket 8: \"replies\" is written into \"reply_flags\", which "
                  "has one half: generation g + 1 could overwrite what is still read for g"));
}

TEST(PlanCheck, Done) {
  EXPECT_THAT(
      broken_by([](auto& p) { signal(p.buckets[0], "done").generation_lag = 1; }),
      ElementsAre("\"done\": bucket 2: done word \"done\" lags 1 generations; two halves need "
                  "2"));
  EXPECT_THAT(
      broken_by([](auto& p) {
        BucketPlan& bucket = p.buckets[1];
        std::erase_if(bucket.signals, [](const Signal& s) { return s.name == "done"; });
        drop_step(kernel(bucket, Operation::kDispatch), StepKind::kAwait, "done");
        drop_step(kernel(bucket, Operation::kReply), StepKind::kPublish, "done");
      }),
      ElementsAre("\"done\": bucket 8: no done word: a source can lap a worker that got no "
                  "rows from it",
                  "\"order\": bucket 8: dispatch publishes \"table\" and awaits no done word"));
}

TEST(PlanCheck, Order) {
  EXPECT_THAT(broken_by([](auto& p) {
                auto& steps = kernel(p.buckets[0], Operation::kDispatch).steps;
                std::rotate(steps.begin() + 2, steps.begin() + 3, steps.begin() + 4);
              }),
              ElementsAre("\"order\": bucket 2: dispatch publishes \"table\" before it awaits "
                          "\"done\""));
  EXPECT_THAT(broken_by([](auto& p) {
                drop_step(kernel(p.buckets[0], Operation::kReply), StepKind::kPublish, "done");
                auto& steps = kernel(p.buckets[0], Operation::kReceive).steps;
                steps.insert(steps.begin() + 3, {StepKind::kPublish, "done", ""});
              }),
              ElementsAre("\"order\": bucket 2: receive publishes \"done\" before it awaits "
                          "\"rows\""));
}

TEST(PlanCheck, Path) {
  EXPECT_THAT(broken_by([](auto& p) { p.buckets[0].critical_path.clear(); }),
              ElementsAre("\"path\": bucket 2: the critical path has no hop"));
  EXPECT_THAT(
      broken_by([](auto& p) {
        p.buckets[0].critical_path.erase(p.buckets[0].critical_path.begin() + 1);
        p.buckets[0].critical_path.push_back(p.buckets[0].critical_path[0]);
      }),
      ElementsAre("\"path\": bucket 2: hop dispatch -> receive by \"rows\" follows a hop that "
                  "ends on ffn ranks"));
  EXPECT_THAT(
      broken_by([](auto& p) { p.buckets[0].critical_path[0].signal = "done"; }),
      ElementsAre("\"path\": bucket 2: hop dispatch -> receive by \"done\": dispatch does not "
                  "publish it",
                  "\"path\": bucket 2: hop dispatch -> receive by \"done\": receive does not "
                  "await it"));
  EXPECT_THAT(
      broken_by([](auto& p) { p.buckets[0].critical_path[1].to = Operation::kReceive; }),
      ElementsAre("\"path\": bucket 2: hop reply -> receive by \"replies\" stays within a "
                  "role",
                  "\"path\": bucket 2: hop reply -> receive by \"replies\": receive does not "
                  "await it"));
}

TEST(PlanCheck, Packet) {
  // The rows of the chunked bucket go where the packets of the small one are awaited.
  EXPECT_THAT(
      broken_by([](auto& p) {
        signal(p.buckets[1], "rows").data_region = "row_packets";
        Region& packets = region(p.ffn, "row_packets");
        packets.items = 8;
        packets.peer_bytes = 1536;
        packets.half_bytes = 3072;
        packets.offset = 8192;
        p.ffn.window_bytes = p.window_bytes = 8192 + 6144;
      }),
      ElementsAre("\"packet\": bucket 8: \"rows\" writes raw bytes into \"row_packets\", where "
                  "\"rows\" of bucket 2 awaits a generation"));
}

TEST(PlanCheck, Figures) {
  EXPECT_THAT(broken_by([](auto& p) { p.buckets[0].traffic.reply_wire_bytes = 0; }),
              ElementsAre("\"figures\": bucket 2: reply_wire_bytes = 0"));
  EXPECT_THAT(broken_by([](auto& p) { p.buckets[1].floor = {}; }),
              ElementsAre("\"figures\": bucket 8: floor = 0"));
}

TEST(PlanCheck, ReportsEveryBrokenRule) {
  EXPECT_THAT(broken_by([](auto& p) {
                p.window_bytes = 0;
                kernel(p.buckets[0], Operation::kDispatch).grid = -1;
                p.buckets[1].critical_path.clear();
              }),
              ElementsAre("\"window\": window_bytes = 0, but the larger role needs 8192",
                          "\"launch\": bucket 2: dispatch: grid = -1",
                          "\"path\": bucket 8: the critical path has no hop"));
}

}  // namespace
}  // namespace afdep::plan
