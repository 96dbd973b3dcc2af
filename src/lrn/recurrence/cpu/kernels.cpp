// Every cell in every type, and attention, for one instruction set. Compiled once for each of them, with
//   LRN_SET     its name here
//   LRN_TARGET  its name for the compiler, if it is not the default one
//   LRN_BYTES   the width of its vectors
#include "atr.h"
#include "attention.h"
#include "scan.h"

namespace lrn::LRN_SET {

namespace {

template <class Cell, class Storage>
LRN_INLINE void forward(const Problem& p, int64_t first, int64_t last) {
  if constexpr (Cell::matrix) {
    atr_forward<LRN_BYTES, Cell, Storage>(p, first, last);
  } else {
    for (int64_t i = first; i < last; ++i) forward_tile<LRN_BYTES, Cell, Storage>(p, Tile(p, i));
  }
}

template <class Cell, class Storage>
LRN_INLINE void backward(const Problem& p, int64_t first, int64_t last) {
  if constexpr (Cell::matrix) {
    atr_backward<LRN_BYTES, Cell, Storage>(p, first, last);
  } else {
    for (int64_t i = first; i < last; ++i) backward_tile<LRN_BYTES, Cell, Storage>(p, Tile(p, i));
  }
}

#define LRN_DEFINE(name, Cell, type, Storage)                                                        \
  LRN_KERNEL void name##_##type##_forward(const Problem& p, int64_t first, int64_t last) {           \
    forward<Cell, Storage>(p, first, last);                                                          \
  }                                                                                                  \
  LRN_KERNEL void name##_##type##_backward(const Problem& p, int64_t first, int64_t last) {          \
    backward<Cell, Storage>(p, first, last);                                                         \
  }

#define LRN_LIST(name, Cell, type, Storage)                                                          \
  {#name, Type::type, Cell::gates, Cell::own_memory ? 2 : 1, Cell::vectors, Cell::matrix,            \
   name##_##type##_forward, name##_##type##_backward},

#define LRN_TYPES(what, name, Cell)                                                                  \
  what(name, Cell, f32, float) what(name, Cell, f64, double) what(name, Cell, bf16, BFloat16)        \
      what(name, Cell, f16, Float16)

// Cells with a matrix inside are computed in the type they are stored in.
#define LRN_WIDE_TYPES(what, name, Cell) what(name, Cell, f32, float) what(name, Cell, f64, double)

#define LRN_CELLS(what)                                                                              \
  LRN_TYPES(what, lrn_tanh, Lrn<Tanh>)                                                               \
  LRN_TYPES(what, lrn_identity, Lrn<Identity>)                                                       \
  LRN_TYPES(what, olrn, Olrn)                                                                        \
  LRN_TYPES(what, glrn_tanh, Glrn<Tanh>)                                                             \
  LRN_TYPES(what, glrn_identity, Glrn<Identity>)                                                     \
  LRN_TYPES(what, elrn_tanh, Elrn<Tanh>)                                                             \
  LRN_TYPES(what, elrn_identity, Elrn<Identity>)                                                     \
  LRN_TYPES(what, sru, Sru)                                                                          \
  LRN_WIDE_TYPES(what, atr_tanh, Atr<Tanh>)                                                          \
  LRN_WIDE_TYPES(what, atr_identity, Atr<Identity>)

LRN_CELLS(LRN_DEFINE)

#define LRN_DEFINE_ATTENTION(type, Number)                                                           \
  LRN_KERNEL void attention_##type##_forward(const Attention& p, int64_t first, int64_t last) {      \
    attention_forward<Vector<Number, LRN_BYTES>>(p, first, last);                                    \
  }                                                                                                  \
  LRN_KERNEL void attention_##type##_backward(const Attention& p, int64_t first, int64_t last) {     \
    attention_backward<Vector<Number, LRN_BYTES>>(p, first, last);                                   \
  }

LRN_DEFINE_ATTENTION(f32, float)
LRN_DEFINE_ATTENTION(f64, double)

}  // namespace

const std::vector<Kernels>& kernels() {
  static const std::vector<Kernels> all = {LRN_CELLS(LRN_LIST)};
  return all;
}

const std::vector<AttentionKernels>& attention_kernels() {
  static const std::vector<AttentionKernels> all = {{Type::f32, attention_f32_forward, attention_f32_backward},
                                                    {Type::f64, attention_f64_forward, attention_f64_backward}};
  return all;
}

}  // namespace lrn::LRN_SET
