// Rows of BF16: loads, stores and sums, as packets (12 bytes a lane) or as vectors (16 bytes a
// lane). Sums are FP32 in a fixed order, rounded once to BF16: the order is that of the calls.
#pragma once

#include "afdep/bf16.cuh"
#include "afdep/packet.cuh"
#include "afdep/rank.cuh"
#include "afdep/thread.cuh"

namespace afdep {

// A lane's part of a row that travels in packets: three runs of kRun words (1, or 4: a vector),
// each run in another third of the row. Packet q of the part takes word q of each run, so that
// neighbouring lanes touch neighbouring addresses both in the row and among its packets. A row has
// kShares parts.
template <int kRun>
struct Share {
  uint32_t run[kPacketWords][kRun];
};

// A row of kWords words in parts of kPacketWords * kRun.
template <int kWords, int kRun>
struct RowShares {
  static constexpr int kShares = (kWords + kPacketWords * kRun - 1) / (kPacketWords * kRun);

  // Word of the row at which run `i` of a part begins; a run is inside the row or beyond it as a
  // whole.
  AFDEP_DEVICE static int word(int share, int i) { return (i * kShares + share) * kRun; }
  AFDEP_DEVICE static bool inside(int share, int i) {
    return share < kShares && word(share, i) < kWords;
  }
  // Run `i` of a part lies so many bytes into its row: the first term is a lane's own for all rows,
  // the second one the same for all lanes.
  AFDEP_DEVICE static int64_t lane_byte(int share) {
    return static_cast<int64_t>(share) * (kRun * 4);
  }
  AFDEP_DEVICE static constexpr int64_t run_byte(int i) { return int64_t{i} * kShares * kRun * 4; }
  // Packet `q` of a part lies so many bytes into the row's packets: the same two terms.
  AFDEP_DEVICE static int64_t lane_packet_byte(int share) {
    return static_cast<int64_t>(share) * kPacketBytes;
  }
  AFDEP_DEVICE static constexpr int64_t packet_byte(int q) {
    return int64_t{q} * kShares * kPacketBytes;
  }
};

template <int kRun>
AFDEP_DEVICE Packet packet_of(const Share<kRun>& part, int q, uint32_t generation) {
  return Packet{{part.run[0][q], part.run[1][q], part.run[2][q]}, generation};
}

namespace detail {

template <int kRun, typename LoadWord, typename LoadVector>
AFDEP_DEVICE void load_run(uint32_t (&run)[kRun], const uint8_t* from, const LoadWord& load_word,
                           const LoadVector& load_vector) {
  static_assert(kRun == 1 || kRun == 4, "a run is a word or a vector");
  if constexpr (kRun == 1) {
    run[0] = load_word(from);
  } else {
    const Vector v = load_vector(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) run[i] = v.word[i];
  }
}

}  // namespace detail

// Part `share` of a row that no kernel writes now; beyond the row 0.
template <int kWords, int kRun>
AFDEP_DEVICE Share<kRun> load_input_share(const uint8_t* row, int share) {
  using Row = RowShares<kWords, kRun>;
  const uint8_t* const lane_row = row + Row::lane_byte(share);
  Share<kRun> part{};
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
    if (!Row::inside(share, i)) continue;
    detail::load_run<kRun>(
        part.run[i], lane_row + Row::run_byte(i),
        [](const uint8_t* from) { return load_input_word(from); },
        [](const uint8_t* from) { return load_input_vector(from); });
  }
  return part;
}

// The same of a row that kernels write; lane_row: the row's address plus lane_byte(share).
template <int kWords, int kRun>
AFDEP_DEVICE Share<kRun> load_share_at(const uint8_t* lane_row, int share) {
  using Row = RowShares<kWords, kRun>;
  Share<kRun> part{};
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
    if (!Row::inside(share, i)) continue;
    detail::load_run<kRun>(
        part.run[i], lane_row + Row::run_byte(i),
        [](const uint8_t* from) { return load_word(from); },
        [](const uint8_t* from) { return load_vector(from); });
  }
  return part;
}

template <int kWords, int kRun>
AFDEP_DEVICE Share<kRun> load_share(const uint8_t* row, int share) {
  return load_share_at<kWords, kRun>(row + RowShares<kWords, kRun>::lane_byte(share), share);
}

// Stores a part; lane_row as above.
template <int kWords, int kRun>
AFDEP_DEVICE void store_share_at(uint8_t* lane_row, int share, const Share<kRun>& part) {
  using Row = RowShares<kWords, kRun>;
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
    if (!Row::inside(share, i)) continue;
    uint8_t* const to = lane_row + Row::run_byte(i);
    if constexpr (kRun == 1) {
      store_word(to, part.run[i][0]);
    } else {
      store_vector(to, Vector{{part.run[i][0], part.run[i][1], part.run[i][2], part.run[i][3]}});
    }
  }
}

template <int kWords, int kRun>
AFDEP_DEVICE void store_share(uint8_t* row, int share, const Share<kRun>& part) {
  store_share_at<kWords, kRun>(row + RowShares<kWords, kRun>::lane_byte(share), share, part);
}

// Sends a part: its packets, into a row's place in a peer's inbox.
template <int kWords, int kRun>
AFDEP_DEVICE void store_packets(uint8_t* packets, int share, const Share<kRun>& part,
                                uint32_t generation) {
  using Row = RowShares<kWords, kRun>;
  if (share >= Row::kShares) return;
  uint8_t* const to = packets + Row::lane_packet_byte(share);
#pragma unroll
  for (int q = 0; q < kRun; ++q) {
    store_packet(to + Row::packet_byte(q), packet_of(part, q, generation));
  }
}

// A part's packets as they are now, arrived or not: a first look whose loads travel while the
// caller does something else.
template <int kRun>
struct ShareLook {
  Packet packet[kRun];
};

template <int kWords, int kRun>
AFDEP_DEVICE ShareLook<kRun> look_at_share(const uint8_t* packets, int share) {
  using Row = RowShares<kWords, kRun>;
  ShareLook<kRun> look{};
  if (share >= Row::kShares) return look;
  const uint8_t* const from = packets + Row::lane_packet_byte(share);
#pragma unroll
  for (int q = 0; q < kRun; ++q) look.packet[q] = load_packet(from + Row::packet_byte(q));
  return look;
}

// Waits for those packets of a part that the first look found missing. A part beyond the row is 0.
template <int kWords, int kRun>
AFDEP_DEVICE Share<kRun> finish_share(const CommonArgs& args, ShareLook<kRun> look,
                                      const uint8_t* packets, int share, uint32_t generation,
                                      const Awaited& awaited) {
  using Row = RowShares<kWords, kRun>;
  const uint8_t* at[kRun];
  Awaited whom[kRun];
  uint32_t missing = 0;
#pragma unroll
  for (int q = 0; q < kRun; ++q) {
    at[q] = packets + Row::lane_packet_byte(share) + Row::packet_byte(q);
    whom[q] = awaited;
    if (share < Row::kShares && look.packet[q].generation != generation) missing |= 1u << q;
  }
  await_packets(args, look.packet, at, missing, generation, whom);
  Share<kRun> part;
#pragma unroll
  for (int q = 0; q < kRun; ++q) {
#pragma unroll
    for (int i = 0; i < kPacketWords; ++i) part.run[i][q] = look.packet[q].word[i];
  }
  return part;
}

// Waits for a part. A part beyond the row is 0 at once.
template <int kWords, int kRun>
AFDEP_DEVICE Share<kRun> await_share(const CommonArgs& args, const uint8_t* packets, int share,
                                     uint32_t generation, const Awaited& awaited) {
  return finish_share<kWords, kRun>(args, look_at_share<kWords, kRun>(packets, share), packets,
                                    share, generation, awaited);
}

// FP32 sums of kWords BF16 pairs. The first row sets them where it is known at compile time which
// one that is; else they are cleared, to -0, the one value to which adding x gives x for every x.
template <int kWords>
struct RowSum {
  float low[kWords];
  float high[kWords];

  AFDEP_DEVICE void clear() {
#pragma unroll
    for (int i = 0; i < kWords; ++i) low[i] = high[i] = -0.0f;
  }
  AFDEP_DEVICE void add_pair(int i, uint32_t pair, bool first = false) {
    low[i] = first ? low_bf16(pair) : add(low[i], low_bf16(pair));
    high[i] = first ? high_bf16(pair) : add(high[i], high_bf16(pair));
  }
  AFDEP_DEVICE uint32_t pair(int i) const { return pack_bf16(low[i], high[i]); }
};

template <int kRun>
AFDEP_DEVICE void add_share(RowSum<kPacketWords * kRun>& sum, const Share<kRun>& part, bool first) {
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
#pragma unroll
    for (int q = 0; q < kRun; ++q) sum.add_pair(i * kRun + q, part.run[i][q], first);
  }
}

template <int kRun>
AFDEP_DEVICE Share<kRun> rounded_share(const RowSum<kPacketWords * kRun>& sum) {
  Share<kRun> part;
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
#pragma unroll
    for (int q = 0; q < kRun; ++q) part.run[i][q] = sum.pair(i * kRun + q);
  }
  return part;
}

// Rows of a token in flight behind the first ones, while its sums are in registers too.
template <int kRun, int kFirst>
constexpr int kNextRows = kRun == 1 || kFirst < 2 ? kFirst : 2;

namespace detail {

// The first kBatch rows of those in `left`, at least one, which they leave. Where there is none the
// one before is loaded again, so that no branch holds up the others. kBegin: they begin the sum.
template <bool kBegin, int kBatch, int kWords, int kRun>
AFDEP_DEVICE void add_rows(RowSum<kPacketWords * kRun>& sum, const uint8_t* lane_rows, int lane_row,
                           uint32_t& left, int share) {
  Share<kRun> part[kBatch];
  bool present[kBatch];
  int lane = 0;
#pragma unroll
  for (int j = 0; j < kBatch; ++j) {
    present[j] = left != 0;
    lane = present[j] ? lowest_bit(left) : lane;
    const int64_t row = static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lane));
    left &= left - 1;
    part[j] = load_share_at<kWords, kRun>(lane_rows + row * kWords * 4, share);
  }
#pragma unroll
  for (int j = 0; j < kBatch; ++j) {
    if (j == 0 || present[j]) add_share<kRun>(sum, part[j], kBegin && j == 0);
  }
}

// Those of the kBatch rows from `first` on that a unit has, at least one. Where there is none the
// first of them is loaded again, so that no branch holds up the others. Row 0 begins the sum.
template <int kBatch, int kWords, int kRun, typename Unit>
AFDEP_DEVICE void add_unit_rows(RowSum<kPacketWords * kRun>& sum, const uint8_t* lane_rows,
                                const Unit& unit, int first, int share) {
  Share<kRun> part[kBatch];
#pragma unroll
  for (int j = 0; j < kBatch; ++j) {
    if (first + j >= Unit::kChoices) continue;
    const uint32_t word = unit.has(first + j) ? unit.word(first + j) : unit.word(first);
    const int64_t row = static_cast<int>(word);
    part[j] = load_share_at<kWords, kRun>(lane_rows + row * kWords * 4, share);
  }
#pragma unroll
  for (int j = 0; j < kBatch; ++j) {
    if (j == 0 || (first + j < Unit::kChoices && unit.has(first + j))) {
      add_share<kRun>(sum, part[j], first + j == 0);
    }
  }
}

}  // namespace detail

// Part `share` of a token's rows on this worker, summed over its choices in top-k order, the first
// kFirst in flight together. lane_row: lane k's row; chosen: the lanes that have one, at least one.
// All lanes of a warp take part.
template <int kFirst, int kWords, int kRun>
AFDEP_DEVICE Share<kRun> sum_rows_share(const uint8_t* rows, int lane_row, uint32_t chosen,
                                        int share) {
  const uint8_t* const lane_rows = kept(rows + RowShares<kWords, kRun>::lane_byte(share));
  RowSum<kPacketWords * kRun> sum;
  uint32_t left = chosen;
  detail::add_rows</*kBegin=*/true, kFirst, kWords, kRun>(sum, lane_rows, lane_row, left, share);
#pragma unroll 1
  while (left != 0) {
    detail::add_rows</*kBegin=*/false, kNextRows<kRun, kFirst>, kWords, kRun>(
        sum, lane_rows, lane_row, left, share);
  }
  return rounded_share<kRun>(sum);
}

// The same of rows that every lane knows: the first words of a unit, none left out in between.
template <int kFirst, int kWords, int kRun, typename Unit>
AFDEP_DEVICE Share<kRun> sum_unit_share(const uint8_t* rows, const Unit& unit, int share) {
  const uint8_t* const lane_rows = kept(rows + RowShares<kWords, kRun>::lane_byte(share));
  RowSum<kPacketWords * kRun> sum;
  detail::add_unit_rows<kFirst, kWords, kRun>(sum, lane_rows, unit, 0, share);
#pragma unroll
  for (int first = kFirst; first < Unit::kChoices; first += kNextRows<kRun, kFirst>) {
    if (!unit.has(first)) break;
    detail::add_unit_rows<kNextRows<kRun, kFirst>, kWords, kRun>(sum, lane_rows, unit, first,
                                                                 share);
  }
  return rounded_share<kRun>(sum);
}

// Part `share` of a token's replies, waited for and summed in ascending worker order. `from`: the
// workers that reply, at least one. replies: the token's packets in slot 0; slots are slot_bytes
// apart. kBySlot: a worker's slot is its place among the token's workers, else its index.
template <int kSlots, bool kBySlot, int kWords, int kRun>
AFDEP_DEVICE Share<kRun> sum_replies_share(const CommonArgs& args, const uint8_t* replies,
                                           int64_t slot_bytes, const Destinations& from, int token,
                                           int share, uint32_t generation) {
  using Row = RowShares<kWords, kRun>;
  // Replies in flight: with long runs two, but only where no sum has to be kept meanwhile.
  constexpr int kBatch = kRun > 1 ? (kSlots == 2 ? 2 : 1) : kSlots < 4 ? kSlots : 4;
  constexpr bool kOnce = kSlots <= kBatch;
  const uint8_t* const lane_replies = replies + Row::lane_packet_byte(share);
  RowSum<kPacketWords * kRun> sum;
  if (!kOnce) sum.clear();
  uint64_t left = from.mask;
  int next_slot = 0;
  do {
    const uint8_t* at[kBatch * kRun];
    Awaited awaited[kBatch * kRun];
    Packet packets[kBatch * kRun];
    bool present[kBatch];
    uint32_t wanted = 0;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      present[j] = left != 0;
      const int worker = present[j] ? lowest_bit(left) : 0;
      const int slot = kBySlot ? next_slot : worker;
      ++next_slot;
      left &= left - 1;
#pragma unroll
      for (int q = 0; q < kRun; ++q) {
        at[j * kRun + q] = lane_replies + slot * slot_bytes + Row::packet_byte(q);
        awaited[j * kRun + q] =
            Awaited{kPhaseReply, static_cast<uint32_t>(worker), static_cast<uint32_t>(token)};
        if (present[j]) wanted |= 1u << (j * kRun + q);
      }
    }
    await_packets(args, packets, at, wanted, generation, awaited);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (j != 0 && !present[j]) continue;
#pragma unroll
      for (int q = 0; q < kRun; ++q) {
#pragma unroll
        for (int i = 0; i < kPacketWords; ++i) {
          sum.add_pair(i * kRun + q, packets[j * kRun + q].word[i], kOnce && j == 0);
        }
      }
    }
  } while (!kOnce && left != 0);
  return rounded_share<kRun>(sum);
}

// kCount vectors of a row, a lane's own: first, first + 32, ...; those beyond the row are 0 and are
// not stored.
template <int kCount>
struct Piece {
  Vector vector[kCount];
};

template <int kRowVectors, int kCount>
AFDEP_DEVICE Piece<kCount> load_input_piece(const uint8_t* row, int first) {
  Piece<kCount> piece{};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int v = first + i * 32;
    if (v < kRowVectors) piece.vector[i] = load_input_vector(row + v * 16);
  }
  return piece;
}

template <int kRowVectors, int kCount>
AFDEP_DEVICE Piece<kCount> load_piece(const uint8_t* row, int first) {
  Piece<kCount> piece{};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int v = first + i * 32;
    if (v < kRowVectors) piece.vector[i] = load_vector(row + v * 16);
  }
  return piece;
}

template <int kRowVectors, int kCount>
AFDEP_DEVICE void store_piece(uint8_t* row, int first, const Piece<kCount>& piece) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int v = first + i * 32;
    if (v < kRowVectors) store_vector(row + v * 16, piece.vector[i]);
  }
}

template <int kCount>
AFDEP_DEVICE void add_piece(RowSum<4 * kCount>& sum, const Piece<kCount>& piece) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int w = 0; w < 4; ++w) sum.add_pair(4 * i + w, piece.vector[i].word[w]);
  }
}

template <int kCount>
AFDEP_DEVICE Piece<kCount> rounded(const RowSum<4 * kCount>& sum) {
  Piece<kCount> piece;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int w = 0; w < 4; ++w) piece.vector[i].word[w] = sum.pair(4 * i + w);
  }
  return piece;
}

// Bytes of piece `piece` of a row: the last one may be short.
template <int64_t kRowBytes, int64_t kPieceBytes>
AFDEP_DEVICE uint32_t piece_bytes(int piece) {
  const int64_t rest = kRowBytes - piece * kPieceBytes;
  return static_cast<uint32_t>(rest < kPieceBytes ? rest : kPieceBytes);
}

// Adds this lane's vectors of a row, or of a piece of it, that lies in shared memory.
template <int kCount>
AFDEP_DEVICE void add_staged(RowSum<4 * kCount>& sum, const uint8_t* staged) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const Vector v = reinterpret_cast<const Vector*>(staged)[lane_index() + i * 32];
#pragma unroll
    for (int w = 0; w < 4; ++w) sum.add_pair(4 * i + w, v.word[w]);
  }
}

// A token's rows on this worker, summed over its choices in top-k order. chosen: the lanes whose
// lane_row is a row, at least one. All lanes of a warp take part.
template <int kRowVectors, int kCount, int kBatch>
AFDEP_DEVICE Piece<kCount> sum_rows_piece(const uint8_t* rows, int lane_row, uint32_t chosen,
                                          int first) {
  RowSum<4 * kCount> sum;
  sum.clear();
  uint32_t left = chosen;
  while (left != 0) {
    Piece<kCount> piece[kBatch];
    bool present[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      present[j] = left != 0;
      if (!present[j]) continue;
      const int64_t row =
          static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lowest_bit(left)));
      left &= left - 1;
      piece[j] = load_piece<kRowVectors, kCount>(rows + row * kRowVectors * 16, first);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (present[j]) add_piece(sum, piece[j]);
    }
  }
  return rounded<kCount>(sum);
}

// A token's replies, which have all arrived, summed in ascending worker order. Slots as in
// sum_replies_packet.
template <int kRowVectors, int kCount, int kBatch, bool kBySlot>
AFDEP_DEVICE Piece<kCount> sum_replies_piece(const uint8_t* replies, int64_t slot_bytes,
                                             const Destinations& from, int first) {
  RowSum<4 * kCount> sum;
  sum.clear();
  uint64_t left = from.mask;
  int next_slot = 0;
  while (left != 0) {
    Piece<kCount> piece[kBatch];
    bool present[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      present[j] = left != 0;
      if (!present[j]) continue;
      const int slot = kBySlot ? next_slot : lowest_bit(left);
      ++next_slot;
      left &= left - 1;
      piece[j] = load_piece<kRowVectors, kCount>(replies + slot * slot_bytes, first);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (present[j]) add_piece(sum, piece[j]);
    }
  }
  return rounded<kCount>(sum);
}

}  // namespace afdep
