// One small struct per cell: a step forward, and its gradient. The equations are those of ../cells.py.
#pragma once

#include <tuple>

#include "numbers.h"

namespace lrn {

// What a step leaves: its output h, and the memory that the next step reads (h itself but for SRU).
template <class T>
struct Step {
  T output, memory;
};

// What goes back through a step: to its gates, to the previous memory, to the cell's own vectors.
template <class X, class T, class W>
struct Gradient {
  X x;
  T previous;
  W weight;
};

template <class T>
using Two = std::tuple<T, T>;
template <class T>
using Three = std::tuple<T, T, T>;
template <class T>
using Four = std::tuple<T, T, T, T>;
using None = std::tuple<>;

// The output activation g, and a gradient d back through it, given its output y.
struct Tanh {
  template <class T>
  static LRN_INLINE T of(const T& x) { return tanh(x); }
  template <class T>
  static LRN_INLINE T back(const T& d, const T& y) { return d * one_minus(y * y); }
};

struct Identity {
  template <class T>
  static LRN_INLINE T of(const T& x) { return x; }
  template <class T>
  static LRN_INLINE T back(const T& d, const T&) { return d; }
};

// Cells whose memory is their output: h before the step, y after it. In `backward`, dy is the gradient
// of the output from above, dm that of the memory from later steps.
template <int count>
struct SingleState {
  static constexpr int gates = count, vectors = 0;
  static constexpr bool own_memory = false, matrix = false;
};

template <class G>
struct Lrn : SingleState<3> {
  template <class T>
  static LRN_INLINE Step<T> forward(const Three<T>& x, const T& h, const None&) {
    const auto& [q, k, v] = x;
    const T y = G::of(sigmoid(k + h) * v + sigmoid(q - h) * h);
    return {y, y};
  }

  template <class T>
  static LRN_INLINE Gradient<Three<T>, T, None> backward(
      const Three<T>& x, const T& h, const T& y, const None&, const T& dy, const T& dm) {
    const auto& [q, k, v] = x;
    const T i = sigmoid(k + h), f = sigmoid(q - h);
    const T d = G::back(dy + dm, y);
    const T dk = d * v * (i * one_minus(i)), dq = d * h * (f * one_minus(f));
    return {{dq, dk, d * i}, d * f + (dk - dq), {}};
  }
};

struct Olrn : SingleState<4> {
  template <class T>
  static LRN_INLINE Step<T> forward(const Four<T>& x, const T& h, const None&) {
    const auto& [q, k, v, o] = x;
    const T c = sigmoid(k + h) * v + sigmoid(q - h) * h;
    const T y = sigmoid(o - c) * c;
    return {y, y};
  }

  template <class T>
  static LRN_INLINE Gradient<Four<T>, T, None> backward(
      const Four<T>& x, const T& h, const T&, const None&, const T& dy, const T& dm) {
    const auto& [q, k, v, o] = x;
    const T i = sigmoid(k + h), f = sigmoid(q - h), c = i * v + f * h, g = sigmoid(o - c);
    const T d = dy + dm;
    const T d_o = d * c * (g * one_minus(g)), dc = d * g - d_o;
    const T dk = dc * v * (i * one_minus(i)), dq = dc * h * (f * one_minus(f));
    return {{dq, dk, dc * i, d_o}, dc * f + (dk - dq), {}};
  }
};

template <class G>
struct Glrn : SingleState<2> {
  template <class T>
  static LRN_INLINE Step<T> forward(const Two<T>& x, const T& h, const None&) {
    const auto& [q, v] = x;
    const T f = sigmoid(q - h);
    const T y = G::of(one_minus(f) * v + f * h);
    return {y, y};
  }

  template <class T>
  static LRN_INLINE Gradient<Two<T>, T, None> backward(
      const Two<T>& x, const T& h, const T& y, const None&, const T& dy, const T& dm) {
    const auto& [q, v] = x;
    const T f = sigmoid(q - h);
    const T d = G::back(dy + dm, y);
    const T dq = (d * h - d * v) * (f * one_minus(f));
    return {{dq, d * one_minus(f)}, d * f - dq, {}};
  }
};

template <class G>
struct Elrn : SingleState<1> {
  template <class T>
  static LRN_INLINE Step<T> forward(const std::tuple<T>& x, const T& h, const None&) {
    const auto& [v] = x;
    const T f = sigmoid(-h);
    const T y = G::of(one_minus(f) * v + f * h);
    return {y, y};
  }

  template <class T>
  static LRN_INLINE Gradient<std::tuple<T>, T, None> backward(
      const std::tuple<T>& x, const T& h, const T& y, const None&, const T& dy, const T& dm) {
    const auto& [v] = x;
    const T f = sigmoid(-h);
    const T d = G::back(dy + dm, y);
    const T df = (d * h - d * v) * (f * one_minus(f));
    return {{d * one_minus(f)}, d * f - df, {}};
  }
};

// The memory is c; the output h is read by nobody later.
struct Sru {
  static constexpr int gates = 4, vectors = 2;
  static constexpr bool own_memory = true, matrix = false;

  template <class T>
  static LRN_INLINE Step<T> forward(const Four<T>& x, const T& c, const Two<T>& weight) {
    const auto& [x_r, x_f, x_c, x_h] = x;
    const auto& [v_r, v_f] = weight;
    const T r = sigmoid(x_r + v_r * c), f = sigmoid(x_f + v_f * c);
    const T memory = f * c + one_minus(f) * x_c;
    return {r * memory + one_minus(r) * x_h, memory};
  }

  template <class T>
  static LRN_INLINE Gradient<Four<T>, T, Two<T>> backward(
      const Four<T>& x, const T& c, const T& memory, const Two<T>& weight, const T& dy, const T& dm) {
    const auto& [x_r, x_f, x_c, x_h] = x;
    const auto& [v_r, v_f] = weight;
    const T r = sigmoid(x_r + v_r * c), f = sigmoid(x_f + v_f * c);
    const T dr = (dy * memory - dy * x_h) * (r * one_minus(r));
    const T d = dm + dy * r;
    const T df = (d * c - d * x_c) * (f * one_minus(f));
    return {{dr, df, d * one_minus(f), dy * one_minus(r)}, d * f + (df * v_f + dr * v_r), {dr * c, df * c}};
  }
};

// p is the projected input, q the product of the previous h, which atr.h sees to.
template <class G>
struct Atr : SingleState<1> {
  static constexpr bool matrix = true;

  struct Forward {
    template <class T>
    static LRN_INLINE std::tuple<T> of(const T& p, const T& q, const T& h) {
      return {G::of(sigmoid(p + q) * p + sigmoid(p - q) * h)};
    }
  };

  // To p, to q, and to the previous h, but for what goes there by way of q.
  struct Backward {
    template <class T>
    static LRN_INLINE Three<T> of(const T& p, const T& q, const T& h, const T& y, const T& dy, const T& dm) {
      const T i = sigmoid(p + q), f = sigmoid(p - q);
      const T d = G::back(dy + dm, y);
      const T di = d * p * (i * one_minus(i)), df = d * h * (f * one_minus(f));
      return {d * i + (di + df), di - df, d * f};
    }
  };
};

}  // namespace lrn
