#include "generator/spec/names.h"

#include <array>

namespace afdep::spec {
namespace {

template <typename E>
constexpr std::array<Name<E>, 0> kNames{};

template <>
constexpr std::array kNames<Roles> = {Name<Roles>{"disjoint", Roles::kDisjoint},
                                      Name<Roles>{"symmetric", Roles::kSymmetric}};
template <>
constexpr std::array kNames<RankOrder> = {
    Name<RankOrder>{"ffn_first", RankOrder::kFfnFirst},
    Name<RankOrder>{"attention_first", RankOrder::kAttentionFirst}};
template <>
constexpr std::array kNames<Mixed> = {Name<Mixed>{"union", Mixed::kUnion},
                                      Name<Mixed>{"directional", Mixed::kDirectional},
                                      Name<Mixed>{"forbid", Mixed::kForbid}};
template <>
constexpr std::array kNames<Transport> = {
    Name<Transport>{"auto", Transport::kAuto}, Name<Transport>{"lsa", Transport::kLsa},
    Name<Transport>{"gin", Transport::kGin}, Name<Transport>{"loopback", Transport::kLoopback}};
template <>
constexpr std::array kNames<IdDtype> = {Name<IdDtype>{"int32", IdDtype::kInt32},
                                        Name<IdDtype>{"int64", IdDtype::kInt64}};
template <>
constexpr std::array kNames<DispatchDtype> = {
    Name<DispatchDtype>{"bf16", DispatchDtype::kBf16},
    Name<DispatchDtype>{"fp16", DispatchDtype::kFp16},
    Name<DispatchDtype>{"fp8_e4m3", DispatchDtype::kFp8E4m3},
    Name<DispatchDtype>{"fp8_e5m2", DispatchDtype::kFp8E5m2},
    Name<DispatchDtype>{"mxfp8_e4m3", DispatchDtype::kMxfp8E4m3},
    Name<DispatchDtype>{"mxfp8_e5m2", DispatchDtype::kMxfp8E5m2},
    Name<DispatchDtype>{"mxfp4_e2m1", DispatchDtype::kMxfp4E2m1},
    Name<DispatchDtype>{"int8", DispatchDtype::kInt8}};
template <>
constexpr std::array kNames<Scale> = {Name<Scale>{"by_dtype", Scale::kByDtype},
                                      Name<Scale>{"none", Scale::kNone},
                                      Name<Scale>{"fp32_block128", Scale::kFp32Block128},
                                      Name<Scale>{"fp32_token", Scale::kFp32Token},
                                      Name<Scale>{"ue8m0_block128", Scale::kUe8m0Block128},
                                      Name<Scale>{"e8m0_block32", Scale::kE8m0Block32}};
template <>
constexpr std::array kNames<Quantize> = {Name<Quantize>{"caller", Quantize::kCaller},
                                         Name<Quantize>{"kernel", Quantize::kKernel}};
template <>
constexpr std::array kNames<ReplyDtype> = {Name<ReplyDtype>{"bf16", ReplyDtype::kBf16},
                                           Name<ReplyDtype>{"fp16", ReplyDtype::kFp16},
                                           Name<ReplyDtype>{"fp32", ReplyDtype::kFp32},
                                           Name<ReplyDtype>{"fp8_e4m3", ReplyDtype::kFp8E4m3}};
template <>
constexpr std::array kNames<AppliedBy> = {Name<AppliedBy>{"ffn", AppliedBy::kFfn},
                                          Name<AppliedBy>{"source", AppliedBy::kSource}};
template <>
constexpr std::array kNames<ReceiveLayout> = {
    Name<ReceiveLayout>{"expert_major", ReceiveLayout::kExpertMajor},
    Name<ReceiveLayout>{"rank_major", ReceiveLayout::kRankMajor}};
template <>
constexpr std::array kNames<Padding> = {Name<Padding>{"unspecified", Padding::kUnspecified},
                                        Name<Padding>{"zero", Padding::kZero}};
template <>
constexpr std::array kNames<PlacementKind> = {
    Name<PlacementKind>{"contiguous", PlacementKind::kContiguous},
    Name<PlacementKind>{"round_robin", PlacementKind::kRoundRobin},
    Name<PlacementKind>{"map", PlacementKind::kMap}};
template <>
constexpr std::array kNames<SharedMode> = {Name<SharedMode>{"none", SharedMode::kNone},
                                           Name<SharedMode>{"local", SharedMode::kLocal},
                                           Name<SharedMode>{"remote", SharedMode::kRemote}};
template <>
constexpr std::array kNames<Arch> = {Name<Arch>{"sm_90a", Arch::kSm90a},
                                     Name<Arch>{"sm_100a", Arch::kSm100a}};
template <>
constexpr std::array kNames<Protocol> = {
    Name<Protocol>{"auto", Protocol::kAuto}, Name<Protocol>{"flag_in_data", Protocol::kFlagInData},
    Name<Protocol>{"chunked", Protocol::kChunked}, Name<Protocol>{"bulk", Protocol::kBulk}};
template <>
constexpr std::array kNames<GraphMode> = {Name<GraphMode>{"capture", GraphMode::kCapture},
                                          Name<GraphMode>{"off", GraphMode::kOff}};
template <>
constexpr std::array kNames<RouteCheck> = {Name<RouteCheck>{"report", RouteCheck::kReport},
                                           Name<RouteCheck>{"trap", RouteCheck::kTrap},
                                           Name<RouteCheck>{"off", RouteCheck::kOff}};
template <>
constexpr std::array kNames<CacheMode> = {Name<CacheMode>{"jit", CacheMode::kJit},
                                          Name<CacheMode>{"aot", CacheMode::kAot}};

constexpr std::array<std::string_view, 5> kAblations = {
    "entry_barrier", "exit_barrier", "dummy_experts", "union_buffers", "separate_epilogues"};

}  // namespace

template <typename E>
std::span<const Name<E>> names() {
  return kNames<E>;
}

template std::span<const Name<Roles>> names();
template std::span<const Name<RankOrder>> names();
template std::span<const Name<Mixed>> names();
template std::span<const Name<Transport>> names();
template std::span<const Name<IdDtype>> names();
template std::span<const Name<DispatchDtype>> names();
template std::span<const Name<Scale>> names();
template std::span<const Name<Quantize>> names();
template std::span<const Name<ReplyDtype>> names();
template std::span<const Name<AppliedBy>> names();
template std::span<const Name<ReceiveLayout>> names();
template std::span<const Name<Padding>> names();
template std::span<const Name<PlacementKind>> names();
template std::span<const Name<SharedMode>> names();
template std::span<const Name<Arch>> names();
template std::span<const Name<Protocol>> names();
template std::span<const Name<GraphMode>> names();
template std::span<const Name<RouteCheck>> names();
template std::span<const Name<CacheMode>> names();

std::string join(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

std::span<const std::string_view> ablation_names() { return kAblations; }

}  // namespace afdep::spec
