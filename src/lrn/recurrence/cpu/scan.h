// The time loop, once for all cells and types: forward and backward over one tile.
#pragma once

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "cells.h"
#include "kernels.h"

namespace lrn {

template <int count>
using Indices = std::make_integer_sequence<int, count>;

// Room for a row that is narrower than a vector.
constexpr int64_t kPadding = 32;

template <class T, class Storage, int... plane>
LRN_INLINE auto load_planes([[maybe_unused]] const Storage* x, [[maybe_unused]] int64_t stride,
                            std::integer_sequence<int, plane...>) {
  return std::make_tuple(Memory<T>::load(x + plane * stride)...);
}

template <class T, class Storage, class... Values, int... plane>
LRN_INLINE void store_planes(Storage* x, int64_t stride, const std::tuple<Values...>& values,
                             std::integer_sequence<int, plane...>) {
  (Memory<T>::store(x + plane * stride, std::get<plane>(values)), ...);
}

// One tensor's rows at a tile's direction and first column.
template <class Storage>
struct View {
  Storage* data;
  Grid grid;
  const int64_t* first_row;

  View(const Problem& p, const Grid& grid, int64_t direction, int64_t column)
      : data(static_cast<Storage*>(grid.data)), grid(grid), first_row(p.first_row) {
    if (data) data += direction * grid.direction + column;
  }
  explicit operator bool() const { return data != nullptr; }
  Storage* token(int64_t t, int64_t b) const {
    return data + (first_row ? (first_row[t] + b) * grid.batch : t * grid.time + b * grid.batch);
  }
  Storage* row(int64_t b, int64_t plane = 0) const { return data + b * grid.batch + plane * grid.plane; }
};

struct Tile {
  int64_t direction, row, rows, column, columns;

  Tile(const Problem& p, int64_t index) {
    direction = index / (p.row_tiles * p.column_tiles);
    index %= p.row_tiles * p.column_tiles;
    column = index / p.row_tiles * p.tile_columns;
    columns = std::min(p.tile_columns, p.hidden - column);
    // Neighbouring rows are often of like length: deal them out so that each thread gets of all.
    const int64_t place = index % p.row_tiles, each = p.row_tiles / p.interleave;
    const int64_t dealt = place < each * p.interleave ? place % each * p.interleave + place / each : place;
    row = dealt * p.tile_rows;
    rows = std::min(p.tile_rows, p.batch - row);
  }
};

// What each row carries from step to step. Twice, the step's input and its result: a row's last vector
// overlaps the one before it, and must find its input unchanged.
template <class Lane, int planes>
struct Carry {
  alignas(64) Lane data[2][planes > 0 ? planes : 1][kTile + kPadding];
};

// The rows of a tile in time: which steps are real, where the state comes from.
struct Walk {
  const Problem& p;
  bool reverse;

  int64_t length(int64_t b) const { return p.lengths ? p.lengths[b] : p.steps; }
  int64_t time(int64_t s) const { return reverse ? p.steps - 1 - s : s; }
  int64_t before(int64_t t) const { return reverse ? t + 1 : t - 1; }
  bool starts(int64_t t, int64_t b) const { return t == (reverse ? length(b) - 1 : 0); }
  bool ends(int64_t t, int64_t b) const { return t == (reverse ? 0 : length(b) - 1); }
  // Whether a border between documents lies between step t and the step walked before it.
  bool border(const View<const bool>& reset, int64_t t, int64_t b) const {
    if (!reset) return false;
    if (!reverse) return *reset.token(t, b);
    return t + 1 < length(b) && *reset.token(t + 1, b);
  }
};

// A row too narrow for a vector, its planes copied to a vector's width and back.
template <class Storage, int planes>
struct Narrow {
  Storage data[planes > 0 ? planes : 1][kPadding] = {};

  const Storage* read(const Storage* row, int64_t stride, int64_t n) {
    for (int k = 0; k < planes; ++k) std::memcpy(data[k], row + k * stride, n * sizeof(Storage));
    return data[0];
  }
  void write(Storage* row, int64_t stride, int64_t n) const {
    for (int k = 0; k < planes; ++k) std::memcpy(row + k * stride, data[k], n * sizeof(Storage));
  }
};

// Runs a row of n features, a vector at a time; the last one overlaps.
template <int bytes, class Row>
LRN_INLINE void run_row(const Row& row, int64_t n) {
  using T = Vector<typename Row::Lane, bytes>;
  if (n < kLanes<T>) return row.template narrow<T>(n);
  int64_t c = 0;
  for (; c + kLanes<T> <= n; c += kLanes<T>) row.template chunk<T>(c);
  if (c < n) row.template chunk<T>(n - kLanes<T>);
}

template <class Cell, class Storage>
struct ForwardRow {
  using Lane = Compute<Storage>;
  const Storage* x;
  int64_t x_plane;
  const Storage* weight;
  int64_t weight_plane;
  const Lane* previous;
  Lane* next;
  Storage* output;
  Storage* memory;

  template <class T>
  LRN_INLINE void chunk(int64_t c) const {
    const auto gates = load_planes<T>(x + c, x_plane, Indices<Cell::gates>());
    const auto vectors = load_planes<T>(weight + c, weight_plane, Indices<Cell::vectors>());
    const Step<T> step = Cell::forward(gates, Memory<T>::load(previous + c), vectors);
    Memory<T>::store(next + c, step.memory);
    Memory<T>::store(output + c, step.output);
    if constexpr (Cell::own_memory) Memory<T>::store(memory + c, step.memory);
  }

  template <class T>
  LRN_INLINE void narrow(int64_t n) const {
    Narrow<Storage, Cell::gates> gates;
    Narrow<Storage, Cell::vectors> vectors;
    Narrow<Storage, 1> out, kept;
    ForwardRow{gates.read(x, x_plane, n), kPadding, vectors.read(weight, weight_plane, n), kPadding,
               previous, next, out.data[0], kept.data[0]}
        .template chunk<T>(0);
    out.write(output, 0, n);
    if constexpr (Cell::own_memory) kept.write(memory, 0, n);
  }
};

template <class Cell, class Storage>
struct BackwardRow {
  using Lane = Compute<Storage>;
  const Storage* x;
  int64_t x_plane;
  const Storage* weight;
  int64_t weight_plane;
  const Storage* previous;    // memory before the step
  const Storage* memory;      // memory after it
  const Storage* grad_output;
  const Storage* grad_last;   // SRU: gradient of the final h, at the row's last step
  const Lane* grad_memory;    // from the later step, on to the earlier one
  Lane* grad_previous;
  const Lane* sums;           // gradient of the vectors, before and after
  Lane* new_sums;
  int64_t sums_plane;
  Storage* grad_x;
  int64_t grad_x_plane;

  template <class T>
  LRN_INLINE void chunk(int64_t c) const {
    const auto gates = load_planes<T>(x + c, x_plane, Indices<Cell::gates>());
    const auto vectors = load_planes<T>(weight + c, weight_plane, Indices<Cell::vectors>());
    T d = Memory<T>::load(grad_output + c);
    if constexpr (Cell::own_memory) d = d + Memory<T>::load(grad_last + c);
    const auto gradient = Cell::backward(gates, Memory<T>::load(previous + c), Memory<T>::load(memory + c),
                                         vectors, d, Memory<T>::load(grad_memory + c));
    store_planes<T>(grad_x + c, grad_x_plane, gradient.x, Indices<Cell::gates>());
    Memory<T>::store(grad_previous + c, gradient.previous);
    add_sums<T>(c, gradient.weight, Indices<Cell::vectors>());
  }

  template <class T, class Values, int... v>
  LRN_INLINE void add_sums([[maybe_unused]] int64_t c, [[maybe_unused]] const Values& values,
                           std::integer_sequence<int, v...>) const {
    (Memory<T>::store(new_sums + v * sums_plane + c,
                      Memory<T>::load(sums + v * sums_plane + c) + std::get<v>(values)),
     ...);
  }

  template <class T>
  LRN_INLINE void narrow(int64_t n) const {
    Narrow<Storage, Cell::gates> gates, d_gates;
    Narrow<Storage, Cell::vectors> vectors;
    Narrow<Storage, 1> before, after, d_out, d_last;
    BackwardRow{gates.read(x, x_plane, n),
                kPadding,
                vectors.read(weight, weight_plane, n),
                kPadding,
                before.read(previous, 0, n),
                after.read(memory, 0, n),
                d_out.read(grad_output, 0, n),
                d_last.read(grad_last, 0, n),
                grad_memory,
                grad_previous,
                sums,
                new_sums,
                sums_plane,
                d_gates.data[0],
                kPadding}
        .template chunk<T>(0);
    d_gates.write(grad_x, grad_x_plane, n);
  }
};

// Whole rows between storage and what is carried, in single vectors or, where too narrow, one by one.
template <int bytes, class To, class From>
LRN_INLINE void convert_row(To* to, const From* from, int64_t n) {
  if constexpr (std::is_same_v<To, From>) {
    std::memcpy(to, from, n * sizeof(To));
  } else {
    using T = Vector<float, bytes>;
    Narrow<From, 1> in;
    To out[kPadding];
    for (int64_t c = 0; c < n; c += kLanes<T>) {
      const int64_t width = std::min<int64_t>(kLanes<T>, n - c);
      Memory<T>::store(out, Memory<T>::load(in.read(from + c, 0, width)));
      std::memcpy(to + c, out, width * sizeof(To));
    }
  }
}

template <int bytes, class Cell, class Storage>
LRN_INLINE void forward_tile(const Problem& p, const Tile& tile) {
  using Lane = Compute<Storage>;
  const auto view = [&](const Grid& grid) { return View<Storage>(p, grid, tile.direction, tile.column); };
  const auto x = view(p.x), state = view(p.state), weight = view(p.weight), output = view(p.output),
             final = view(p.final), memory = view(p.memory);
  const View<const bool> reset(p, p.reset, 0, 0);
  const Walk walk{p, p.reverse[tile.direction]};
  const int64_t n = tile.columns, pitch = p.tile_columns;  // a narrow row is carried in a whole vector
  constexpr int64_t memory_part = Cell::own_memory ? 1 : 0;

  Carry<Lane, 1> carry = {};
  uint8_t side[kTile] = {};  // which of a row's two carries is current
  for (int64_t r = 0; r < tile.rows; ++r) {
    convert_row<bytes>(carry.data[0][0] + r * pitch, state.row(tile.row + r, memory_part), n);
  }
  for (int64_t s = 0; s < p.steps; ++s) {
    const int64_t t = walk.time(s);
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t b = tile.row + r;
      if (t >= walk.length(b)) {  // padding; in packed form there is none
        if (!p.first_row) {
          std::memset(output.token(t, b), 0, n * sizeof(Storage));
          if constexpr (Cell::own_memory) std::memset(memory.token(t, b), 0, n * sizeof(Storage));
        }
        continue;
      }
      Lane* previous = carry.data[side[r]][0] + r * pitch;
      Lane* next = carry.data[side[r] ^= 1][0] + r * pitch;
      if (walk.border(reset, t, b)) std::memset(previous, 0, n * sizeof(Lane));
      const Storage* in = x.token(t, b);
      Storage* out = output.token(t, b);
      run_row<bytes>(
          ForwardRow<Cell, Storage>{in, p.x.plane, Cell::vectors ? weight.row(b) : in, p.weight.plane, previous,
                                    next, out, Cell::own_memory ? memory.token(t, b) : out},
          n);
    }
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t b = tile.row + r, length = walk.length(b);
    convert_row<bytes>(final.row(b, memory_part), carry.data[side[r]][0] + r * pitch, n);
    if constexpr (Cell::own_memory) {
      const Storage* h = length ? output.token(walk.reverse ? 0 : length - 1, b) : state.row(b, 0);
      std::memcpy(final.row(b, 0), h, n * sizeof(Storage));
    }
  }
}

template <int bytes, class Cell, class Storage>
LRN_INLINE void backward_tile(const Problem& p, const Tile& tile) {
  using Lane = Compute<Storage>;
  const auto view = [&](const Grid& grid) { return View<Storage>(p, grid, tile.direction, tile.column); };
  const auto x = view(p.x), state = view(p.state), weight = view(p.weight),
             memory = view(Cell::own_memory ? p.memory : p.output), grad_output = view(p.grad_output),
             grad_final = view(p.grad_final), grad_x = view(p.grad_x), grad_state = view(p.grad_state),
             grad_weight = view(p.grad_weight);
  const View<const bool> reset(p, p.reset, 0, 0);
  const Walk walk{p, p.reverse[tile.direction]};
  const int64_t n = tile.columns, pitch = p.tile_columns;  // a narrow row is carried in a whole vector
  constexpr int64_t memory_part = Cell::own_memory ? 1 : 0;

  static const Storage zeros[kTile + kPadding] = {};
  Carry<Lane, 1> carry = {};
  Carry<Lane, Cell::vectors> sums = {};
  uint8_t side[kTile] = {};
  if (grad_final) {
    for (int64_t r = 0; r < tile.rows; ++r) {
      convert_row<bytes>(carry.data[0][0] + r * pitch, grad_final.row(tile.row + r, memory_part), n);
    }
  }
  for (int64_t s = p.steps - 1; s >= 0; --s) {
    const int64_t t = walk.time(s);
    for (int64_t r = 0; r < tile.rows; ++r) {
      const int64_t b = tile.row + r;
      if (t >= walk.length(b)) {
        for (int g = 0; !p.first_row && g < Cell::gates; ++g) {
          std::memset(grad_x.token(t, b) + g * p.grad_x.plane, 0, n * sizeof(Storage));
        }
        continue;
      }
      const bool border = walk.border(reset, t, b);
      const Storage* before = border              ? zeros
                              : walk.starts(t, b) ? state.row(b, memory_part)
                                                  : memory.token(walk.before(t), b);
      const bool last = Cell::own_memory && grad_final && walk.ends(t, b);
      const int now = side[r], then = side[r] ^= 1;
      run_row<bytes>(BackwardRow<Cell, Storage>{x.token(t, b),
                                                p.x.plane,
                                                Cell::vectors ? weight.row(b) : zeros,
                                                p.weight.plane,
                                                before,
                                                memory.token(t, b),
                                                grad_output ? grad_output.token(t, b) : zeros,
                                                last ? grad_final.row(b, 0) : zeros,
                                                carry.data[now][0] + r * pitch,
                                                carry.data[then][0] + r * pitch,
                                                sums.data[now][0] + r * pitch,
                                                sums.data[then][0] + r * pitch,
                                                kTile + kPadding,
                                                grad_x.token(t, b),
                                                p.grad_x.plane},
                     n);
      if (border) std::memset(carry.data[then][0] + r * pitch, 0, n * sizeof(Lane));
    }
  }
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t b = tile.row + r;
    convert_row<bytes>(grad_state.row(b, memory_part), carry.data[side[r]][0] + r * pitch, n);
    if constexpr (Cell::own_memory) {  // h is never read: only an empty row passes its gradient on
      const Storage* h = grad_final && walk.length(b) == 0 ? grad_final.row(b, 0) : zeros;
      std::memcpy(grad_state.row(b, 0), h, n * sizeof(Storage));
    }
    for (int v = 0; v < Cell::vectors; ++v) {
      convert_row<bytes>(grad_weight.row(b, v), sums.data[side[r]][v] + r * pitch, n);
    }
  }
}

}  // namespace lrn
