// Additive attention over a ragged memory: one sequence and one head of it at a time, all in the nearest cache.
//
// The backward pass computes tanh again: nothing is kept but the weights.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels.h"
#include "numbers.h"

namespace lrn {

template <class T>
LRN_INLINE Lane<T> sum_of(const T& x) {
  if constexpr (sizeof(T) > 16) {
    Vector<Lane<T>, sizeof(T) / 2> halves[2];
    std::memcpy(halves, &x, sizeof(T));
    return sum_of<Vector<Lane<T>, sizeof(T) / 2>>(halves[0] + halves[1]);
  } else if constexpr (kLanes<T> == 4) {
    return (x[0] + x[2]) + (x[1] + x[3]);
  } else {
    return x[0] + x[1];
  }
}

// How the features of a head lie in vectors. Where they do not fill the last vector, it overlaps the one before it;
// fewer features than a vector has lanes stand in rows of a whole vector.
//
// What is read over and over, or summed up, is "laid out": a vector after the other, the overlap left empty.
// Zeros there, in the score and in the gradient from above, keep the overlap from counting twice.
template <class T>
struct Slices {
  using Number = Lane<T>;
  const int64_t size;  // features

  bool narrow() const { return size < kLanes<T>; }
  int64_t whole() const { return size / kLanes<T> * kLanes<T>; }         // features in whole vectors
  int64_t room() const { return (size + kLanes<T> - 1) / kLanes<T> * kLanes<T>; }
  int64_t last() const { return std::max<int64_t>(size - kLanes<T>, 0); }  // where the last vector begins
  int64_t tail() const { return whole() + (whole() - last()); }  // where what it alone has stands, laid out

  LRN_INLINE void lay_out(Number* to, const Number* from) const {
    std::memcpy(to, from, whole() * sizeof(Number));
    if (whole() == size) return;
    std::memset(to + whole(), 0, sizeof(T));
    std::memcpy(to + tail(), from + whole(), (size - whole()) * sizeof(Number));
  }
  LRN_INLINE void take_up(Number* to, const Number* from) const {
    std::memcpy(to, from, whole() * sizeof(Number));
    if (whole() < size) std::memcpy(to + whole(), from + tail(), (size - whole()) * sizeof(Number));
  }

  // Calls with numbers of vectors, where they begin in a row and where laid out: `most` at a time, then one by one.
  template <int most, class Function>
  LRN_INLINE void each(const Function& function) const {
    constexpr int64_t lanes = kLanes<T>;
    int64_t c = 0;
    if constexpr (most > 1) {
      for (; c + most * lanes <= size; c += most * lanes) function.template operator()<most>(c, c);
    }
    for (; c + lanes <= size; c += lanes) function.template operator()<1>(c, c);
    if (c < size) function.template operator()<1>(last(), c);
  }
};

// The rows of one sequence, at one head.
template <class Number>
struct HeadRows {
  Number* data;
  int64_t stride;

  HeadRows(Number* data, int64_t stride) : data(data), stride(stride) {}
  HeadRows(const Grid& grid, int64_t row, int64_t column)
      : data(grid.data ? static_cast<Number*>(grid.data) + row * grid.batch + column : nullptr), stride(grid.batch) {}
  LRN_INLINE Number* operator[](int64_t j) const { return data + j * stride; }
  explicit operator bool() const { return data != nullptr; }
};

// What a thread works with.
template <class T>
class AttentionRoom {
 public:
  using Number = Lane<T>;
  const Attention& p;
  const Slices<T> slices;
  const int64_t steps;  // of the longest sequence, in whole vectors
  Number *score, *query, *above, *sums;  // laid out

  explicit AttentionRoom(const Attention& p)
      : p(p),
        slices{p.size},
        steps((p.longest + kLanes<T> - 1) / kLanes<T> * kLanes<T>),
        numbers_(4 * slices.room() + 2 * steps),
        wide_(slices.narrow() ? 4 * p.longest * kLanes<T> : 0) {
    score = numbers_.data();
    query = score + slices.room();
    above = query + slices.room();
    sums = above + slices.room();
    slices.lay_out(score, static_cast<const Number*>(p.score));
  }

  // One number for each position, twice.
  Number* positions(int which) { return numbers_.data() + 4 * slices.room() + which * steps; }

  // The same rows where they have the width of a vector, zeros behind.
  HeadRows<Number> widen(const HeadRows<Number>& rows, int64_t length, int which) {
    if (!slices.narrow() || !rows) return rows;
    const HeadRows<Number> wide(&wide_[which * p.longest * kLanes<T>], kLanes<T>);
    std::memset(wide.data, 0, length * sizeof(T));
    for (int64_t j = 0; j < length; ++j) std::memcpy(wide[j], rows[j], p.size * sizeof(Number));
    return wide;
  }
  // Back to where they came from, once they have been added to.
  void narrow(const HeadRows<Number>& rows, const HeadRows<Number>& wide, int64_t length) const {
    if (!slices.narrow() || !rows) return;
    for (int64_t j = 0; j < length; ++j) std::memcpy(rows[j], wide[j], p.size * sizeof(Number));
  }

 private:
  std::vector<Number> numbers_, wide_;
};

// Scores to weights, in place, with room for whole vectors of them.
template <class T>
LRN_INLINE void softmax(Lane<T>* scores, int64_t length) {
  using Number = Lane<T>;
  const int64_t room = (length + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
  for (int64_t j = length; j < room; ++j) scores[j] = -std::numeric_limits<Number>::infinity();
  Number top = scores[0];
  for (int64_t j = 1; j < length; ++j) top = std::max(top, scores[j]);  // NaN or not, it comes out in the sum
  T total = {};
  for (int64_t j = 0; j < room; j += kLanes<T>) {
    const T power = exp<T>(Memory<T>::load(scores + j) - top);
    Memory<T>::store(scores + j, power);
    total += power;
  }
  const Number sum = sum_of(total);
  for (int64_t j = 0; j < room; j += kLanes<T>) Memory<T>::store(scores + j, Memory<T>::load(scores + j) / sum);
}

// One head of one sequence that is not empty.
template <class T>
LRN_INLINE void attend_head(AttentionRoom<T>& room, int64_t r, int64_t head) {
  using Number = Lane<T>;
  const Attention& p = room.p;
  const Slices<T>& slices = room.slices;
  const int64_t length = p.starts[r + 1] - p.starts[r], column = head * p.size;
  const auto keys = room.widen({p.keys, p.starts[r], column}, length, 0),
             values = room.widen({p.values, p.starts[r], column}, length, 1);
  slices.lay_out(room.query, HeadRows<Number>(p.query, r, column).data);

  Number* weights = room.positions(0);
  for (int64_t j = 0; j < length; ++j) {
    const Number* key = keys[j];
    T sum = {};
    slices.template each<1>([&]<int>(int64_t at, int64_t laid) {
      const T t = tanh<T>(Memory<T>::load(room.query + laid) + Memory<T>::load(key + at));
      sum += Memory<T>::load(room.score + laid) * t;
    });
    weights[j] = sum_of(sum);
  }
  softmax<T>(weights, length);

  slices.template each<4>([&]<int count>(int64_t at, int64_t laid) {
    T sums[count] = {};
    for (int64_t j = 0; j < length; ++j) {
      const Number* value = values[j] + at;
      for (int v = 0; v < count; ++v) sums[v] += weights[j] * Memory<T>::load(value + v * kLanes<T>);
    }
    for (int v = 0; v < count; ++v) Memory<T>::store(room.sums + laid + v * kLanes<T>, sums[v]);
  });
  slices.take_up(HeadRows<Number>(p.context, r, column).data, room.sums);
  Number* kept = static_cast<Number*>(p.weights) + (r * p.heads + head) * p.longest;
  std::memcpy(kept, weights, length * sizeof(Number));
  std::fill_n(kept + length, p.longest - length, Number(0));
}

// Its gradient. That of the score is added to room.sums, laid out.
template <class T>
LRN_INLINE void attend_head_backward(AttentionRoom<T>& room, int64_t r, int64_t head) {
  using Number = Lane<T>;
  const Attention& p = room.p;
  const Slices<T>& slices = room.slices;
  const int64_t length = p.starts[r + 1] - p.starts[r], column = head * p.size;
  const auto rows = [&](const Grid& grid) { return HeadRows<Number>(grid, p.starts[r], column); };
  const auto keys = room.widen(rows(p.keys), length, 0), values = room.widen(rows(p.values), length, 1),
             grad_keys = room.widen(rows(p.grad_keys), length, 2),
             grad_values = room.widen(rows(p.grad_values), length, 3);
  slices.lay_out(room.query, HeadRows<Number>(p.query, r, column).data);
  slices.lay_out(room.above, HeadRows<Number>(p.grad_context, r, column).data);
  const Number* weights = static_cast<const Number*>(p.weights) + (r * p.heads + head) * p.longest;

  Number* grad = room.positions(0);  // of the weights, then of the scores
  Number mean = 0;
  for (int64_t j = 0; j < length; ++j) {
    const Number* value = values[j];
    Number* grad_value = grad_values ? grad_values[j] : nullptr;
    T sum = {};
    slices.template each<1>([&]<int>(int64_t at, int64_t laid) {
      const T above = Memory<T>::load(room.above + laid);
      sum += above * Memory<T>::load(value + at);
      if (grad_value) Memory<T>::store(grad_value + at, Memory<T>::load(grad_value + at) + above * weights[j]);
    });
    grad[j] = sum_of(sum);
    mean += weights[j] * grad[j];
  }
  for (int64_t j = 0; j < length; ++j) grad[j] = weights[j] * (grad[j] - mean);

  slices.template each<2>([&]<int count>(int64_t at, int64_t laid) {
    T query[count], score[count], to_query[count] = {}, to_score[count] = {};
    for (int v = 0; v < count; ++v) {
      query[v] = Memory<T>::load(room.query + laid + v * kLanes<T>);
      score[v] = Memory<T>::load(room.score + laid + v * kLanes<T>);
    }
    for (int64_t j = 0; j < length; ++j) {
      for (int v = 0; v < count; ++v) {
        const int64_t c = at + v * kLanes<T>;
        const T t = tanh<T>(query[v] + Memory<T>::load(keys[j] + c));
        const T back = one_minus(t * t) * score[v] * grad[j];
        to_query[v] += back;
        to_score[v] += t * grad[j];
        if (grad_keys) Memory<T>::store(grad_keys[j] + c, Memory<T>::load(grad_keys[j] + c) + back);
      }
    }
    for (int v = 0; v < count; ++v) {
      const int64_t c = laid + v * kLanes<T>;
      Memory<T>::store(room.query + c, to_query[v]);  // which nobody reads again
      Memory<T>::store(room.sums + c, Memory<T>::load(room.sums + c) + to_score[v]);
    }
  });
  slices.take_up(HeadRows<Number>(p.grad_query, r, column).data, room.query);
  room.narrow(rows(p.grad_keys), grad_keys, length);
  room.narrow(rows(p.grad_values), grad_values, length);
}

// Calls for every sequence whose place is from first to last - 1.
template <class Function>
LRN_INLINE void each_sequence(const Attention& p, int64_t first, int64_t last, const Function& function) {
  int64_t r = 0, end = p.sequences;
  while (r < end) {
    const int64_t middle = (r + end) / 2;
    if (p.place(middle) < first) {
      r = middle + 1;
    } else {
      end = middle;
    }
  }
  for (; r < p.sequences && p.place(r) < last; ++r) function(r, p.starts[r + 1] == p.starts[r]);
}

template <class T>
LRN_INLINE void attention_forward(const Attention& p, int64_t first, int64_t last) {
  using Number = Lane<T>;
  AttentionRoom<T> room(p);
  each_sequence(p, first, last, [&](int64_t r, bool empty) {
    if (empty) {
      std::fill_n(HeadRows<Number>(p.context, r, 0).data, p.heads * p.size, Number(0));
      std::fill_n(static_cast<Number*>(p.weights) + r * p.heads * p.longest, p.heads * p.longest, Number(0));
      return;
    }
    for (int64_t head = 0; head < p.heads; ++head) attend_head(room, r, head);
  });
}

template <class T>
LRN_INLINE void attention_backward(const Attention& p, int64_t first, int64_t last) {
  using Number = Lane<T>;
  AttentionRoom<T> room(p);
  each_sequence(p, first, last, [&](int64_t r, bool empty) {
    std::fill_n(room.sums, room.slices.room(), Number(0));
    if (empty) {
      std::fill_n(HeadRows<Number>(p.grad_query, r, 0).data, p.heads * p.size, Number(0));
    } else {
      for (int64_t head = 0; head < p.heads; ++head) attend_head_backward(room, r, head);
    }
    room.slices.take_up(HeadRows<Number>(p.grad_score, r, 0).data, room.sums);
  });
}

}  // namespace lrn
