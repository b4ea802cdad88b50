// Put and signal: what arrives before what, over many seeds.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "runtime/emulator/choices.h"
#include "runtime/emulator/network.h"

namespace afdep::emulator {
namespace {

constexpr std::uint64_t kSeeds = 500;

struct World {
  std::array<std::uint32_t, 4> source{1, 1, 1, 1};
  std::array<std::uint32_t, 4> inbox{};
  std::uint64_t signal = 0;
};

// The words of the inbox as they are when the signal arrives.
std::string at_signal(Network& network, World& world) {
  while (world.signal == 0) EXPECT_TRUE(network.deliver());
  std::string words;
  for (const std::uint32_t word : world.inbox) words += std::to_string(word);
  while (network.deliver()) {
  }
  EXPECT_EQ(world.inbox, world.source);
  return words;
}

TEST(Network, ASignalComesAfterThePutsOfItsContextAndPeer) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Choices choices(seed);
    Network network(choices);
    World world;
    network.put({0, 3, 1}, &world.inbox[2], &world.source[2], 8);
    network.put({0, 3, 1}, &world.inbox[0], &world.source[0], 8);
    network.signal({0, 3, 1}, &world.signal, 1);
    ASSERT_EQ(at_signal(network, world), "1111");
  }
}

TEST(Network, NothingOrdersContextsOrPeers) {
  std::set<std::string> contexts;
  std::set<std::string> peers;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Choices choices(seed);
    Network network(choices);
    World world;
    network.put({0, 4, 1}, world.inbox.data(), world.source.data(), 16);
    network.signal({0, 3, 1}, &world.signal, 1);
    contexts.insert(at_signal(network, world));
    World other;
    network.put({0, 3, 2}, other.inbox.data(), other.source.data(), 16);
    network.signal({0, 3, 1}, &other.signal, 1);
    peers.insert(at_signal(network, other));
  }
  // Every subset of the words: puts are split at each of them.
  EXPECT_EQ(contexts.size(), 16u);
  EXPECT_EQ(peers.size(), 16u);
}

TEST(Network, LaterPutsDoNotWaitForASignalNorItForThem) {
  std::set<std::string> found;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Choices choices(seed);
    Network network(choices);
    World world;
    network.put({0, 3, 1}, &world.inbox[0], &world.source[0], 4);
    network.signal({0, 3, 1}, &world.signal, 1);
    network.put({0, 3, 1}, &world.inbox[1], &world.source[1], 4);
    network.put({0, 3, 1}, &world.inbox[2], &world.source[2], 8);
    found.insert(at_signal(network, world).substr(0, 2));
  }
  EXPECT_EQ(found, (std::set<std::string>{"10", "11"}));
}

TEST(Network, ASourceIsReadUntilTheFlush) {
  std::set<std::uint32_t> found;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Choices choices(seed);
    Network network(choices);
    World world;
    network.put({0, 3, 1}, world.inbox.data(), world.source.data(), 16);
    network.deliver();
    world.source[0] = 9;  // too early
    while (!network.flushed(0, 3)) network.deliver();
    world.source[0] = 1;
    found.insert(world.inbox[0]);
  }
  EXPECT_EQ(found, (std::set<std::uint32_t>{1, 9}));
}

TEST(Network, NothingArrivesTwice) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Choices choices(seed);
    Network network(choices);
    World world;
    network.signal({0, 3, 1}, &world.signal, 1);
    network.signal({0, 3, 1}, &world.signal, 2);
    int steps = 0;
    while (network.deliver()) ++steps;
    EXPECT_EQ(steps, 2);
    EXPECT_EQ(world.signal, 3u);
    EXPECT_TRUE(network.idle());
  }
}

}  // namespace
}  // namespace afdep::emulator
