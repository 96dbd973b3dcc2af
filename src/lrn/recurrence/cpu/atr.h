// ATR's walk over time: at each step a small matrix product and an elementwise pass.
//
// The rows of a batch know nothing of each other, so a thread takes its rows through all of time alone,
// with the matrix in its own cache.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "product.h"
#include "scan.h"

namespace lrn {

// One row's elementwise function: Function::of takes a vector of each input and returns one of each output.
template <class Function, class Number, int inputs, int outputs>
struct RowFunction {
  using Lane = Number;
  const Number* in[inputs];
  Number* out[outputs];

  template <class T, int... i, int... o>
  LRN_INLINE void apply(int64_t c, std::integer_sequence<int, i...>, std::integer_sequence<int, o...>) const {
    const auto results = Function::of(Memory<T>::load(in[i] + c)...);
    (Memory<T>::store(out[o] + c, std::get<o>(results)), ...);
  }
  template <class T>
  LRN_INLINE void chunk(int64_t c) const {
    apply<T>(c, Indices<inputs>(), Indices<outputs>());
  }
  template <class T>
  LRN_INLINE void narrow(int64_t n) const {
    Number from[inputs][kPadding] = {}, to[outputs][kPadding];
    RowFunction wide;
    for (int i = 0; i < inputs; ++i) {
      std::memcpy(from[i], in[i], n * sizeof(Number));
      wide.in[i] = from[i];
    }
    for (int o = 0; o < outputs; ++o) wide.out[o] = to[o];
    wide.template chunk<T>(0);
    for (int o = 0; o < outputs; ++o) std::memcpy(out[o], to[o], n * sizeof(Number));
  }
};

// What both passes read. A tile is every row_tiles-th row of one direction: rows of like length, often
// neighbours, are spread over all tiles.
template <class Number>
struct AtrTile {
  const Problem& p;
  const int64_t direction, first;
  const Walk walk;
  const View<Number> x, state, bias, output, q;
  const View<const bool> reset;
  const std::vector<Number> zeros;

  AtrTile(const Problem& p, int64_t index)
      : p(p),
        direction(index / p.row_tiles),
        first(index % p.row_tiles),
        walk{p, p.reverse[direction]},
        x(view(p.x)),
        state(view(p.state)),
        bias(view(p.bias)),
        output(view(p.output)),
        q(view(p.q)),
        reset(p, p.reset, 0, 0),
        zeros(p.hidden) {}

  View<Number> view(const Grid& grid) const { return {p, grid, direction, 0}; }
  int64_t rows() const { return (p.batch - first + p.row_tiles - 1) / p.row_tiles; }
  bool real(int64_t t, int64_t b) const { return t < walk.length(b); }
  const Number* previous(int64_t t, int64_t b) const {
    if (walk.border(reset, t, b)) return zeros.data();
    return walk.starts(t, b) ? state.row(b) : output.token(walk.before(t), b);
  }
  void copy(Number* to, const Number* from) const { std::memcpy(to, from, p.hidden * sizeof(Number)); }
  void pad(const View<Number>& rows, int64_t t, int64_t b) const {
    if (rows && !p.first_row) copy(rows.token(t, b), zeros.data());  // in packed form there is no padding
  }
};

template <int bytes, class Cell, class Number>
LRN_INLINE void atr_forward_tile(const AtrTile<Number>& tile, const Panels<Vector<Number, bytes>>& matrix) {
  const Problem& p = tile.p;
  const Number* bias = tile.bias ? tile.bias.row(0) : tile.zeros.data();
  std::vector<Number> passing(tile.q ? 0 : tile.rows() * p.hidden);  // where q is not kept
  std::vector<int64_t> active;
  ProductRows<Number> product;
  for (int64_t s = 0; s < p.steps; ++s) {
    const int64_t t = tile.walk.time(s);
    active.clear(), product.clear();
    for (int64_t b = tile.first; b < p.batch; b += p.row_tiles) {
      if (tile.real(t, b)) {
        active.push_back(b);
        Number* q = tile.q ? tile.q.token(t, b) : &passing[product.size() * p.hidden];
        product.add(tile.previous(t, b), bias, q);
      } else {
        tile.pad(tile.output, t, b), tile.pad(tile.q, t, b);
      }
    }
    multiply(matrix, product);
    for (size_t r = 0; r < active.size(); ++r) {
      const int64_t b = active[r];
      run_row<bytes>(RowFunction<typename Cell::Forward, Number, 3, 1>{
                         {tile.x.token(t, b), product.out[r], product.in[r]}, {tile.output.token(t, b)}},
                     p.hidden);
    }
  }
  const View<Number> final = tile.view(p.final);
  for (int64_t b = tile.first; b < p.batch; b += p.row_tiles) {
    const int64_t length = tile.walk.length(b);
    tile.copy(final.row(b), length ? tile.output.token(tile.walk.reverse ? 0 : length - 1, b) : tile.state.row(b));
  }
}

// Row b's token t, among all tokens of all rows with no padding between.
template <class Number>
LRN_INLINE Number* dense(const View<Number>& tokens, int64_t t, int64_t b, const int64_t* first_token) {
  return tokens.data + (first_token[b] + t) * tokens.grid.batch;
}

template <int bytes, class Cell, class Number>
LRN_INLINE void atr_backward_tile(const AtrTile<Number>& tile, const Panels<Vector<Number, bytes>>& matrix) {
  const Problem& p = tile.p;
  const auto grad_output = tile.view(p.grad_output), grad_final = tile.view(p.grad_final),
             grad_x = tile.view(p.grad_x), grad_state = tile.view(p.grad_state), grad_q = tile.view(p.grad_q),
             previous = tile.view(p.previous);
  const auto from_end = [&](int64_t b) { return grad_final ? grad_final.row(b) : tile.zeros.data(); };
  // The gradient of each row's state, after the step and before it.
  std::vector<Number> after(tile.rows() * p.hidden), before(tile.rows() * p.hidden);
  std::vector<int64_t> active;
  ProductRows<Number> product;
  for (int64_t s = p.steps - 1; s >= 0; --s) {
    const int64_t t = tile.walk.time(s);
    active.clear(), product.clear();
    for (int64_t b = tile.first, r = 0; b < p.batch; b += p.row_tiles, r += p.hidden) {
      if (!tile.real(t, b)) {
        tile.pad(grad_x, t, b);
        continue;
      }
      if (tile.walk.ends(t, b)) tile.copy(&after[r], from_end(b));
      const Number* h = tile.previous(t, b);
      Number* dq = dense(grad_q, t, b, p.first_token);
      tile.copy(dense(previous, t, b, p.first_token), h);
      run_row<bytes>(
          RowFunction<typename Cell::Backward, Number, 6, 3>{
              {tile.x.token(t, b), tile.q.token(t, b), h, tile.output.token(t, b),
               grad_output ? grad_output.token(t, b) : tile.zeros.data(), &after[r]},
              {grad_x.token(t, b), dq, &before[r]}},
          p.hidden);
      active.push_back(b);
      product.add(dq, &before[r], &before[r]);
    }
    multiply(matrix, product);
    for (size_t r = 0; r < active.size(); ++r) {
      if (tile.walk.border(tile.reset, t, active[r])) tile.copy(product.out[r], tile.zeros.data());
      if (tile.walk.starts(t, active[r])) tile.copy(grad_state.row(active[r]), product.out[r]);
    }
    std::swap(after, before);
  }
  for (int64_t b = tile.first; b < p.batch; b += p.row_tiles) {
    if (tile.walk.length(b) == 0) tile.copy(grad_state.row(b), from_end(b));
  }
}

// The product of the state is U h', that of its gradient Uᵀ dq.
template <int bytes, class Cell, class Number>
LRN_INLINE void atr_forward(const Problem& p, int64_t first, int64_t last) {
  Panels<Vector<Number, bytes>> matrix(p.hidden);
  for (int64_t index = first; index < last; ++index) {
    const AtrTile<Number> tile(p, index);
    if (index == first || tile.first == 0) matrix.fill(tile.view(p.weight).data, p.weight.plane, p.weight.batch);
    atr_forward_tile<bytes, Cell>(tile, matrix);
  }
}

template <int bytes, class Cell, class Number>
LRN_INLINE void atr_backward(const Problem& p, int64_t first, int64_t last) {
  Panels<Vector<Number, bytes>> matrix(p.hidden);
  for (int64_t index = first; index < last; ++index) {
    const AtrTile<Number> tile(p, index);
    if (index == first || tile.first == 0) matrix.fill(tile.view(p.weight).data, p.weight.batch, p.weight.plane);
    atr_backward_tile<bytes, Cell>(tile, matrix);
  }
}

}  // namespace lrn
