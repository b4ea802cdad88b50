#include "generator/tune/state.h"

#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace afdep::tune {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Failure damaged(const std::string& file, std::string_view why) {
  return {ErrorCode::kDirectory, fmt::format("{} is not the state of a tuner: {}", file, why),
          "remove it, or pass --fresh"};
}

struct Part {
  const char* name;
  std::string Identity::* value;
};
constexpr Part kParts[] = {{"spec digest", &Identity::spec_digest},
                           {"generator", &Identity::generator},
                           {"GPU", &Identity::gpu},
                           {"driver", &Identity::driver},
                           {"method", &Identity::method}};

}  // namespace

std::string to_text(const State& state) {
  Json identity;
  for (const Part& part : kParts) identity[part.name] = state.identity.*part.value;
  const Json text{{"format", kFormat},
                  {"identity", std::move(identity)},
                  {"samples", state.samples},
                  {"refused", state.refused}};
  return text.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<State> read_state(std::string_view text, const std::string& file, const Identity& identity) {
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded() || !parsed.is_object()) return damaged(file, "no JSON object");
  State state;
  try {
    if (parsed.at("format").get<int>() != kFormat) return damaged(file, "another format");
    for (const Part& part : kParts) {
      state.identity.*part.value = parsed.at("identity").at(part.name).get<std::string>();
    }
    parsed.at("samples").get_to(state.samples);
    parsed.at("refused").get_to(state.refused);
  } catch (const Json::exception& error) {
    return damaged(file, error.what());
  }
  for (const Part& part : kParts) {
    if (state.identity.*part.value == identity.*part.value) continue;
    return Failure(ErrorCode::kDirectory,
                   fmt::format("{} holds measurements of another run: {} is {}, here {}", file,
                               part.name, state.identity.*part.value, identity.*part.value),
                   "remove it, or pass --fresh to measure everything again");
  }
  return state;
}

}  // namespace afdep::tune
