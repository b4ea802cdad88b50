#include "runtime/emulator/exhaustive.h"

#include <algorithm>
#include <utility>

#include "runtime/support/check.h"

namespace afdep::emulator {

void Clock::set(std::uint32_t unit, std::uint32_t step) {
  if (unit >= steps_.size()) steps_.resize(unit + 1, 0);
  steps_[unit] = std::max(steps_[unit], step);
}

void Clock::join(const Clock& other) {
  if (other.steps_.size() > steps_.size()) steps_.resize(other.steps_.size(), 0);
  for (std::size_t i = 0; i < other.steps_.size(); ++i) {
    steps_[i] = std::max(steps_[i], other.steps_[i]);
  }
}

void Exploration::begin() {
  depth_ = 0;
  step_ = 0;
  running_ = kNone;
  stale_ = 0;
  redundant_ = false;
  races_.clear();
  clocks_.clear();
  cells_.clear();
}

bool Exploration::next() {
  end_step();
  (redundant_ ? counts_.redundant : counts_.schedules) += 1;
  counts_.longest = std::max<std::uint64_t>(counts_.longest, depth_);
  if (replaying_) return false;
  // A schedule that stopped early leaves decisions of the one before it behind.
  path_.resize(std::min<std::size_t>(path_.size(), depth_));
  while (!path_.empty()) {
    Decision& last = path_.back();
    if (last.candidates.empty()) {
      if (++last.picked < last.options) {
        auto step = path_.rbegin();
        while (step != path_.rend() && step->candidates.empty()) ++step;
        if (step != path_.rend()) {
          step->earlier.insert(step->earlier.end(), step->touches.begin(), step->touches.end());
        }
        return true;
      }
      path_.pop_back();
      continue;
    }
    last.earlier.insert(last.earlier.end(), last.touches.begin(), last.touches.end());
    last.sleeping[last.picked] = std::exchange(last.earlier, {});
    for (const std::uint32_t unit : last.wanted) {
      if (last.sleeping.contains(unit)) continue;
      if (bounded() && preempts(last, unit) && last.preemptions >= preemptions_) {
        cut_ = true;
        continue;
      }
      last.picked = unit;
      return true;
    }
    path_.pop_back();
  }
  return false;
}

std::vector<std::uint32_t> Exploration::choices() const {
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < depth_; ++i) all.push_back(path_[i].picked);
  return all;
}

void Exploration::replay(std::vector<std::uint32_t> choices) {
  replaying_ = true;
  script_ = std::move(choices);
}

std::uint32_t Exploration::unit(std::uint64_t stream, std::uint64_t launch, int block, int warp) {
  const auto number = static_cast<std::uint32_t>(units_.size());
  return units_.try_emplace({stream, launch, block, warp}, number).first->second;
}

Clock& Exploration::clock(std::uint32_t unit) {
  if (unit >= clocks_.size()) clocks_.resize(unit + 1);
  return clocks_[unit];
}

bool Exploration::conflict(const Touches& a, const Touches& b) {
  return std::ranges::any_of(a, [&b](const Touch& one) {
    return std::ranges::any_of(b, [&one](const Touch& other) {
      return one.cell == other.cell && (one.bytes & other.bytes) != 0 && (one.store || other.store);
    });
  });
}

std::uint32_t Exploration::decide(std::span<const std::uint32_t> candidates) {
  end_step();
  ++counts_.steps;
  if (depth_ == path_.size()) {
    Decision decision;
    decision.candidates.assign(candidates.begin(), candidates.end());
    if (step_ != 0) {
      // Still asleep: whoever's step commutes with the one just taken.
      const Decision& before = path_[step_ - 1];
      decision.preemptions = before.preemptions + (preempts(before, before.picked) ? 1 : 0);
      if (std::ranges::find(candidates, running_) != candidates.end()) decision.before = running_;
      for (const auto& [unit, touches] : before.sleeping) {
        if (!bounded() && unit != before.picked && !conflict(touches, before.touches)) {
          decision.sleeping.emplace(unit, touches);
        }
      }
    }
    decision.picked = kNone;
    if (replaying_ && depth_ < script_.size()) {
      if (std::ranges::find(candidates, script_[depth_]) != candidates.end()) {
        decision.picked = script_[depth_];
      }
    }
    if (decision.picked == kNone) {
      // The same unit as long as it can go on: fewest switches first.
      const auto awake = [&](std::uint32_t unit) { return !decision.sleeping.contains(unit); };
      if (std::ranges::find(candidates, running_) != candidates.end() && awake(running_)) {
        decision.picked = running_;
      } else {
        const auto found = std::ranges::find_if(candidates, awake);
        if (found == candidates.end()) {
          redundant_ = true;
          return kNone;
        }
        decision.picked = *found;
      }
    }
    decision.wanted.insert(decision.picked);
    path_.push_back(std::move(decision));
  }
  Decision& decision = path_[depth_];
  AFDEP_CHECK(std::ranges::equal(decision.candidates, candidates),
              "the same choices did not lead to the same place");
  decision.touches.clear();
  ++depth_;
  step_ = depth_;
  running_ = decision.picked;
  before_ = clock(running_);
  clock(running_).set(running_, step_);
  return running_;
}

std::uint32_t Exploration::pick(std::uint32_t options) {
  if (depth_ == path_.size()) {
    Decision decision;
    decision.options = options;
    if (replaying_ && depth_ < script_.size())
      decision.picked = std::min(script_[depth_], options - 1);
    // Beyond the bound there is one option left.
    if (stale_ >= stale_loads_) decision.options = decision.picked + 1;
    if (decision.options > 1) ++counts_.values;
    path_.push_back(std::move(decision));
  }
  const std::uint32_t picked = path_[depth_++].picked;
  stale_ += picked != 0 ? 1 : 0;
  return picked;
}

void Exploration::race(std::uint32_t step, std::uint32_t unit) {
  if (!bounded()) {
    races_.insert(step);
    return;
  }
  want(step, unit);
  // Within the bound there may be no preemption left at the step: where its unit took its turn, the
  // other takes it for nothing.
  std::uint32_t first = step;
  for (std::uint32_t i = step; i-- > 1;) {
    const Decision& later = path_[first - 1];
    if (later.before != later.picked) break;
    if (!path_[i - 1].candidates.empty()) first = i;
  }
  if (first != step) want(first, unit);
}

// What a step's races ask for is known once everything that comes before it is.
void Exploration::end_step() {
  if (step_ == 0 || bounded()) return;
  path_[step_ - 1].clock = clock(running_);
  for (const std::uint32_t step : std::exchange(races_, {})) want_initial(step);
}

// Source sets (Abdulla, Aronis, Jonsson, Sagonas, 2014): of the steps behind `step` that do not
// come after it, and the newest, some unit must be tried there whose first one comes after none of
// the others. Only such a unit may be left out because it sleeps.
void Exploration::want_initial(std::uint32_t step) {
  Decision& at = path_[step - 1];
  std::vector<std::uint32_t> behind;
  std::set<std::uint32_t> seen;
  std::vector<std::uint32_t> initials;
  for (std::uint32_t k = step + 1; k <= step_; ++k) {
    const Decision& one = path_[k - 1];
    if (one.candidates.empty()) continue;
    if (k != step_ && one.clock.at(at.picked) >= step) continue;
    if (seen.insert(one.picked).second && std::ranges::none_of(behind, [&](std::uint32_t other) {
          return one.clock.at(path_[other - 1].picked) >= other;
        })) {
      initials.push_back(one.picked);
    }
    behind.push_back(k);
  }
  std::uint32_t found = kNone;
  for (const std::uint32_t unit : initials) {
    if (at.wanted.contains(unit) || at.sleeping.contains(unit)) return;
    if (std::ranges::find(at.candidates, unit) == at.candidates.end()) continue;
    if (found == kNone || unit == running_) found = unit;
  }
  if (found != kNone) {
    at.wanted.insert(found);
  } else {
    at.wanted.insert(at.candidates.begin(), at.candidates.end());
  }
}

// Somebody else at `step`, so that `unit` comes before it.
void Exploration::want(std::uint32_t step, std::uint32_t unit) {
  Decision& at = path_[step - 1];
  if (at.wanted.contains(unit)) return;
  if (std::ranges::find(at.candidates, unit) != at.candidates.end()) {
    at.wanted.insert(unit);
    return;
  }
  // It could not go on there: one who comes before it must come before the step.
  std::uint32_t found = kNone;
  for (const std::uint32_t candidate : at.candidates) {
    if (before_.at(candidate) <= step) continue;
    if (at.wanted.contains(candidate)) return;
    if (found == kNone) found = candidate;
  }
  if (found != kNone) {
    at.wanted.insert(found);
  } else {
    at.wanted.insert(at.candidates.begin(), at.candidates.end());
  }
}

void Exploration::accessed(std::uint32_t unit, std::uint64_t at, bool store, std::uint32_t bytes) {
  AFDEP_CHECK(unit == running_, "an access outside a step");
  std::vector<Part>& parts = cells_[at];
  Clock& mine = clock(unit);
  const auto unordered = [&](std::uint32_t other, std::uint32_t step) {
    return step != 0 && other != unit && before_.at(other) < step;
  };
  Part* own = nullptr;
  for (Part& part : parts) {
    if (part.bytes == bytes) own = &part;
    if ((part.bytes & bytes) == 0) continue;
    if (part.writer != kNone && unordered(part.writer, part.write_step)) {
      race(part.write_step, unit);
    }
    mine.join(part.write_clock);
    if (!store) continue;
    for (const auto& [reader, reads] : part.reads) {
      if (unordered(reader, reads.newest.step)) race(reads.newest.step, unit);
      mine.join(reads.newest.clock);
    }
  }
  if (own == nullptr) {
    own = &parts.emplace_back();
    own->bytes = bytes;
  }
  if (store) {
    own->writer = unit;
    own->write_step = step_;
    own->write_clock = mine;
    own->reads.clear();
  } else {
    Reads& reads = own->reads[unit];
    if (reads.newest.step != step_) {
      if (reads.newest.step != 0) reads.before = std::move(reads.newest);
      reads.newest = {step_, mine};
      reads.lanes = 0;
    }
    ++reads.lanes;
  }
  path_[step_ - 1].touches.push_back({at, store, bytes});
}

void Exploration::poll_missed(std::uint32_t unit, std::uint64_t at, std::uint32_t byte) {
  for (Part& part : cells_[at]) {
    if ((part.bytes >> byte & 1u) == 0) continue;
    const auto found = part.reads.find(unit);
    if (found == part.reads.end()) continue;
    Reads& reads = found->second;
    if (reads.newest.step != step_ || reads.lanes == 0) continue;
    // An earlier look at the same bytes was no poll, and stays.
    if (--reads.lanes == 0) reads.newest = std::exchange(reads.before, {});
    Touches& touches = path_[step_ - 1].touches;
    const auto touch = std::ranges::find_if(touches, [&](const Touch& each) {
      return each.cell == at && !each.store && each.bytes == part.bytes;
    });
    if (touch != touches.end()) touches.erase(touch);
    return;
  }
}

}  // namespace afdep::emulator
