#include "generator/spec/value_text.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace afdep::spec {
namespace {

// A word that no YAML reader takes for a number, a boolean or nothing.
bool is_plain_word(std::string_view text) {
  constexpr std::array<std::string_view, 10> kReserved = {"null", "true", "false", "yes", "no",
                                                          "on",   "off",  "y",     "n",   "nan"};
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (text.empty() || !is_letter(text.front())) return false;
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
  return plain && std::find(kReserved.begin(), kReserved.end(), text) == kReserved.end();
}

std::string sms_text(int sms) { return sms == 0 ? "auto" : std::to_string(sms); }

}  // namespace

std::string value_text(int value) { return std::to_string(value); }

std::string value_text(bool value) { return value ? "true" : "false"; }

std::string value_text(const std::string& value) {
  if (is_plain_word(value)) return value;
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

std::string value_text(const std::vector<int>& value) {
  return fmt::format("[{}]", fmt::join(value, ", "));
}

std::string value_text(const std::vector<Arch>& value) {
  std::vector<std::string_view> texts;
  for (const Arch arch : value) texts.push_back(to_name(arch));
  return fmt::format("[{}]", join(texts));
}

std::string value_text(const std::map<int, Protocol>& value) {
  std::string text;
  for (const auto& [bucket, protocol] : value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", bucket, to_name(protocol));
  }
  return fmt::format("{{{}}}", text);
}

std::string value_text(const NumSms& value) {
  if (value.attention == value.ffn) return sms_text(value.attention);
  return fmt::format("{{attention: {}, ffn: {}}}", sms_text(value.attention), sms_text(value.ffn));
}

std::string value_text(const std::vector<Domain>& value) {
  std::string text;
  for (const Domain& domain : value) {
    text += fmt::format("\n    - {{name: {}, ", value_text(domain.name));
    if (domain.ranks.empty()) {
      text += fmt::format("count: {}, attention: {}, ffn: {}}}", domain.count, domain.attention,
                          domain.ffn);
    } else {
      text += fmt::format("ranks: {}}}", value_text(domain.ranks));
    }
  }
  return text;
}

std::string value_text(const std::vector<std::vector<int>>& value) {
  std::string text;
  for (const std::vector<int>& worker : value) text += "\n    - " + value_text(worker);
  return text;
}

}  // namespace afdep::spec
