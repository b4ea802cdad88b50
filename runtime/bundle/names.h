// How the manifest spells its enumerations.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/bundle/manifest.h"
#include "runtime/support/check.h"

namespace afdep::bundle {

template <typename Enum, std::size_t kCount>
using Names = std::array<std::pair<Enum, std::string_view>, kCount>;

constexpr Names<Role, 2> kRoleNames{{{Role::kAttention, "attention"}, {Role::kFfn, "ffn"}}};
constexpr Names<Operation, 9> kOperationNames{{{Operation::kDispatch, "dispatch"},
                                               {Operation::kReceive, "receive"},
                                               {Operation::kReply, "reply"},
                                               {Operation::kCollect, "collect"},
                                               {Operation::kCollectView, "collect_view"},
                                               {Operation::kExpand, "expand"},
                                               {Operation::kReduce, "reduce"},
                                               {Operation::kIdleExpand, "idle_expand"},
                                               {Operation::kIdleReduce, "idle_reduce"}}};
constexpr Names<Protocol, 3> kProtocolNames{{{Protocol::kFlagInData, "flag_in_data"},
                                             {Protocol::kChunked, "chunked"},
                                             {Protocol::kBulk, "bulk"}}};
constexpr Names<IdType, 2> kIdTypeNames{{{IdType::kInt32, "int32"}, {IdType::kInt64, "int64"}}};
constexpr Names<RouteCheck, 3> kRouteCheckNames{
    {{RouteCheck::kReport, "report"}, {RouteCheck::kTrap, "trap"}, {RouteCheck::kOff, "off"}}};

template <typename Enum, std::size_t kCount>
std::string_view name_of(const Names<Enum, kCount>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  fail_check("enumerator without a name", std::source_location::current());
}

template <typename Enum, std::size_t kCount>
std::optional<Enum> value_of(const Names<Enum, kCount>& names, std::string_view name) {
  for (const auto& [value, candidate] : names) {
    if (candidate == name) return value;
  }
  return std::nullopt;
}

}  // namespace afdep::bundle
